#include "survey.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "workspace/beneath.h"

static int no_memory(struct ks_error *err)
{
	return ks_fail(err, KS_E_INTERNAL, "out of memory");
}

static int add(struct ks_survey *survey, const char *path, const struct stat *st, struct ks_error *err)
{
	const size_t len = strlen(path);

	if (survey->count >= KS_ARCHIVE_ENTRIES || survey->name_bytes + len > KS_ARCHIVE_NAMES) {
		(void)ks_fail(err, KS_E_TOO_LARGE, "the workspace has more than %u names", KS_ARCHIVE_ENTRIES);
		return ks_error_hint(err, "a snapshot that could not be restored is not made: remove what can be made again");
	}
	if (survey->count == survey->cap) {
		const size_t cap = survey->cap ? 2 * survey->cap : 1024;
		struct ks_surveyed *more = realloc(survey->items, cap * sizeof(*more));
		if (!more)
			return no_memory(err);
		survey->items = more;
		survey->cap = cap;
	}
	char *copy = strdup(path);
	if (!copy)
		return no_memory(err);
	survey->items[survey->count++] = (struct ks_surveyed){ copy, st->st_mode & S_IFMT, st->st_size };
	survey->name_bytes += len;
	survey->bytes += S_ISREG(st->st_mode) ? st->st_size : 0;
	return 0;
}

static const char *reason_against(const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
		return NULL;
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	default:
		return "device";
	}
}

static size_t depth_of(const char *path)
{
	size_t depth = 1;

	for (; *path; path++)
		depth += *path == '/';
	return depth;
}

static int take(struct ks_survey *survey, int dir, const char *above, const char *name, struct ks_error *err)
{
	char path[2 * KS_ARCHIVE_PATH];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s%s%s", above, above[0] ? "/" : "", name);
	if (strcmp(path, KS_RESTORE_NAME) == 0)
		return 0;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			survey->skip(survey->arg, path, "unreadable");
		return 0;
	}
	const char *reason = reason_against(&st);
	if (strlen(path) > KS_ARCHIVE_PATH || depth_of(path) > KS_ARCHIVE_DEPTH)
		reason = "name_too_long";
	if (reason) {
		survey->skip(survey->arg, path, reason);
		return 0;
	}
	return add(survey, path, &st, err);
}

static int list(struct ks_survey *survey, const char *path, struct ks_error *err)
{
	int fd = ks_open_beneath(survey->root, path[0] ? path : ".", O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int rc = 0;

	if (!dir) {
		survey->skip(survey->arg, path, fd == -EXDEV ? "mount_point" : "unreadable");
		ks_close(&fd);
		return 0;
	}
	for (struct dirent *d; rc == 0 && (errno = 0, d = readdir(dir));)
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			rc = take(survey, dirfd(dir), path, d->d_name, err);
	if (rc == 0 && errno)
		survey->skip(survey->arg, path, "unreadable");
	(void)closedir(dir);
	return rc;
}

static int compare(const void *a, const void *b)
{
	const struct ks_surveyed *one = a, *two = b;

	return strcmp(one->path, two->path);
}

/* The list is its own queue: a directory is listed when its turn comes, however deep it lies. */
int ks_survey_tree(struct ks_survey *survey, struct ks_error *err)
{
	if (list(survey, "", err) < 0)
		return -1;
	for (size_t i = 0; i < survey->count; i++) {
		const char *path = survey->items[i].path;
		if (survey->items[i].type == S_IFDIR && list(survey, path, err) < 0)
			return -1;
	}
	if (survey->count > 0)
		qsort(survey->items, survey->count, sizeof(*survey->items), compare);
	return 0;
}

void ks_survey_free(struct ks_survey *survey)
{
	for (size_t i = 0; i < survey->count; i++)
		free(survey->items[i].path);
	free(KS_TAKE_PTR(survey->items));
	survey->count = 0;
}
