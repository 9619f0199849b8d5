#include "pick.h"

#include <stdio.h>
#include <string.h>

#include "base/grow.h"

#include "ignore.h"

#define RULES_BYTES ((size_t)32 << 20) /* memory for the rules of all .gitignore files on the way */
#define STATES_MAX ((size_t)16 << 20)  /* of patterns, in the directories on the way */

static const char git_exclude[] = ".git/info/exclude";

/* Of a directory on the way, or one above where it began. */
struct level {
	size_t pattern_at, pattern_count; /* in states */
	size_t ignore_at, ignore_count;
	struct ks_ignore *rules, *exclude; /* .gitignore, and what the repository that begins here leaves out */
	size_t path_len;		   /* names in it begin there */
};

struct ks_pick {
	struct ks_pick_config config;
	struct ks_visit *visit;
	struct level *levels;
	size_t count, cap;
	size_t above; /* levels that lie above where it began */
	uint32_t *states; /* a stack */
	size_t state_count, state_cap;
	size_t rules_bytes;
	struct ks_wild_states pattern, ignore; /* behind the name at hand */
};

static int no_memory(struct ks_error *err)
{
	return ks_fail(err, KS_E_INTERNAL, "out of memory");
}

int ks_pattern_add(struct ks_wild *wild, const char *pattern, const char *pointer, struct ks_error *err)
{
	const char *wrong = ks_wild_add(wild, pattern, strlen(pattern), 0);

	return wrong ? ks_fail_at(err, KS_E_INVALID_VALUE, pointer, "the pattern is %s: %.100s", wrong, pattern) : 0;
}

/* ---- levels ---- */

static void pop_level(struct ks_pick *pick)
{
	struct level *level = &pick->levels[--pick->count];

	pick->state_count = level->pattern_at;
	pick->rules_bytes -= level->rules ? ks_ignore_bytes(level->rules) : 0;
	pick->rules_bytes -= level->exclude ? ks_ignore_bytes(level->exclude) : 0;
	ks_ignore_free(level->rules);
	ks_ignore_free(level->exclude);
}

static int push_level(struct ks_pick *pick, size_t path_len, struct ks_error *err)
{
	if (!ks_grow(&pick->levels, &pick->cap, pick->count + 1, sizeof(*pick->levels)))
		return no_memory(err);
	pick->levels[pick->count++] = (struct level){ .path_len = path_len, .pattern_at = pick->state_count,
						      .ignore_at = pick->state_count };
	return 0;
}

static int keep_states(struct ks_pick *pick, const struct ks_wild_states *states, struct ks_error *err)
{
	const size_t want = pick->state_count + states->count;

	if (want > STATES_MAX)
		return ks_fail(err, KS_E_LIMIT, "the patterns are too large for a tree that is as deep as this one");
	if (!ks_grow(&pick->states, &pick->state_cap, want, sizeof(*pick->states)))
		return no_memory(err);
	if (states->count == 0)
		return 0;
	memcpy(pick->states + pick->state_count, states->list, states->count * sizeof(*states->list));
	pick->state_count = want;
	return 0;
}

/* The states in `pattern` and `ignore` are those of the level on top. */
static int keep_level_states(struct ks_pick *pick, struct ks_error *err)
{
	struct level *level = &pick->levels[pick->count - 1];

	level->pattern_count = pick->pattern.count;
	level->ignore_at = pick->state_count + pick->pattern.count;
	level->ignore_count = pick->ignore.count;
	return keep_states(pick, &pick->pattern, err) < 0 || keep_states(pick, &pick->ignore, err) < 0 ? -1 : 0;
}

static int read_rules(struct ks_pick *pick, int dir_fd, const char *name, const char *shown, struct ks_ignore **ret,
		      struct ks_error *err)
{
	if (ks_ignore_read(dir_fd, name, shown, ret, err) < 0)
		return -1;
	pick->rules_bytes += *ret ? ks_ignore_bytes(*ret) : 0;
	return pick->rules_bytes > RULES_BYTES ? ks_fail(err, KS_E_LIMIT, "the rules of .gitignore files up to %s are too large", shown) :
						 0;
}

/* ---- what a name is ---- */

/* Rules of a directory further down come first; what a repository leaves out comes behind the .gitignore files in it. */
static bool git_ignores(const struct ks_pick *pick, const struct ks_visit_item *item)
{
	const bool directory = item->type == KS_TYPE_DIRECTORY;

	if (strcmp(item->name, ".git") == 0)
		return true;
	for (size_t i = pick->count; i-- > 0;) {
		const struct level *level = &pick->levels[i];
		struct ks_ignore *const sets[] = { level->rules, level->exclude };
		for (size_t s = 0; s < KS_COUNT(sets); s++) {
			if (!sets[s])
				continue;
			const enum ks_ignored said =
				ks_ignore_match(sets[s], item->path + level->path_len, item->path_len - level->path_len, item->name,
						item->name_len, directory);
			if (said != KS_IGNORE_SILENT)
				return said == KS_IGNORE_YES;
		}
	}
	return false;
}

static void step_name(struct ks_pick *pick, const struct level *level, const char *name, size_t len)
{
	const struct ks_pick_config *config = &pick->config;
	const struct ks_wild_states pattern = { pick->states + level->pattern_at, level->pattern_count };
	const struct ks_wild_states ignore = { pick->states + level->ignore_at, level->ignore_count };

	if (config->pattern->start_count > 0)
		ks_wild_step(config->pattern, &pattern, name, len, !config->hidden, &pick->pattern);
	if (config->ignore->start_count > 0)
		ks_wild_step(config->ignore, &ignore, name, len, false, &pick->ignore);
}

static void step_slash(struct ks_pick *pick)
{
	ks_wild_step(pick->config.pattern, &pick->pattern, "/", 1, false, &pick->pattern);
	ks_wild_step(pick->config.ignore, &pick->ignore, "/", 1, false, &pick->ignore);
}

/* Is it asked for? A directory in which something may be is entered, asked for or not. */
static bool judge(struct ks_pick *pick, const struct ks_visit_item *item)
{
	const struct ks_pick_config *config = &pick->config;
	const bool all = config->pattern->start_count == 0, directory = item->type == KS_TYPE_DIRECTORY;

	if (all && !config->hidden && item->name[0] == '.')
		return false;
	step_name(pick, &pick->levels[pick->count - 1], item->name, item->name_len);
	if (!all && pick->pattern.count == 0)
		return false;
	const bool wanted = all || ks_wild_match(config->pattern, &pick->pattern, directory) >= 0;
	if (!wanted && !directory)
		return false;
	if (pick->ignore.count > 0 && ks_wild_match(config->ignore, &pick->ignore, directory) >= 0)
		return false;
	if (config->gitignore && git_ignores(pick, item))
		return false;
	if (directory) {
		step_slash(pick);
		if ((all || pick->pattern.count > 0) && !ks_wild_covers(config->ignore, &pick->ignore))
			ks_visit_enter(pick->visit);
	}
	return wanted;
}

static int begin_directory(struct ks_pick *pick, const struct ks_visit_item *item, struct ks_error *err)
{
	const size_t parent = pick->above + item->depth;

	while (pick->count > parent)
		pop_level(pick);
	if (item->depth == 0) {
		ks_wild_begin(pick->config.pattern, &pick->pattern);
		ks_wild_begin(pick->config.ignore, &pick->ignore);
	} else {
		step_name(pick, &pick->levels[parent - 1], item->name, item->name_len);
		step_slash(pick);
	}
	if (push_level(pick, item->path_len, err) < 0 || keep_level_states(pick, err) < 0)
		return -1;
	struct level *level = &pick->levels[pick->count - 1];
	if (!pick->config.gitignore)
		return 0;
	if (ks_visit_has(pick->visit, ".gitignore") &&
	    read_rules(pick, item->dir_fd, ".gitignore", item->path, &level->rules, err) < 0)
		return -1;
	return ks_visit_has(pick->visit, ".git") ? read_rules(pick, item->dir_fd, git_exclude, item->path, &level->exclude, err) : 0;
}

int ks_pick_next(struct ks_pick *pick, struct ks_visit_item *ret, struct ks_error *err)
{
	for (;;) {
		if (ks_visit_next(pick->visit, ret, err) < 0)
			return -1;
		if (ret->what == KS_VISIT_END)
			return 0;
		if (ret->what == KS_VISIT_DIRECTORY) {
			if (begin_directory(pick, ret, err) < 0)
				return -1;
			continue;
		}
		while (pick->count > pick->above + ret->depth + 1)
			pop_level(pick);
		if (judge(pick, ret))
			return 1;
	}
}

/* The rules of the directories that lead to where it begins. */
static int read_above(struct ks_pick *pick, struct ks_error *err)
{
	const char *path = pick->config.path;
	char name[KS_VISIT_PATH + sizeof(git_exclude) + 1], shown[KS_VISIT_PATH + 1];

	for (size_t len = 0; strcmp(path, ".") != 0; len++) {
		if (push_level(pick, len, err) < 0)
			return -1;
		struct level *level = &pick->levels[pick->count - 1];
		(void)snprintf(shown, sizeof(shown), "%.*s", (int)len, path);
		(void)snprintf(name, sizeof(name), "%s.gitignore", shown);
		if (read_rules(pick, pick->config.root_fd, name, "", &level->rules, err) < 0)
			return -1;
		(void)snprintf(name, sizeof(name), "%s%s", shown, git_exclude);
		if (read_rules(pick, pick->config.root_fd, name, "", &level->exclude, err) < 0)
			return -1;
		const char *slash = strchr(path + len, '/');
		if (!slash)
			break;
		len = (size_t)(slash - path);
	}
	pick->above = pick->count;
	return 0;
}

static int prepare(struct ks_pick *pick, struct ks_error *err)
{
	const struct ks_pick_config *config = &pick->config;

	if (!ks_wild_ready(config->pattern) || !ks_wild_ready(config->ignore))
		return no_memory(err);
	pick->pattern.list = calloc(ks_wild_width(config->pattern) + 1, sizeof(*pick->pattern.list));
	pick->ignore.list = calloc(ks_wild_width(config->ignore) + 1, sizeof(*pick->ignore.list));
	if (!pick->pattern.list || !pick->ignore.list)
		return no_memory(err);
	if (ks_visit_start(config->root_fd, config->path, &pick->visit, err) < 0)
		return -1;
	return config->gitignore ? read_above(pick, err) : 0;
}

int ks_pick_start(const struct ks_pick_config *config, struct ks_pick **ret, struct ks_error *err)
{
	struct ks_pick *pick = calloc(1, sizeof(*pick));

	if (!pick)
		return no_memory(err);
	pick->config = *config;
	if (prepare(pick, err) < 0) {
		ks_pick_free(pick);
		return -1;
	}
	*ret = pick;
	return 0;
}

uint64_t ks_pick_unreadable(const struct ks_pick *pick)
{
	return ks_visit_unreadable(pick->visit);
}

void ks_pick_free(struct ks_pick *pick)
{
	if (!pick)
		return;
	while (pick->count > 0)
		pop_level(pick);
	ks_visit_free(pick->visit);
	free(pick->levels);
	free(pick->states);
	free(pick->pattern.list);
	free(pick->ignore.list);
	free(pick);
}
