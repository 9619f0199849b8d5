#include "session/doctor_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int open_fact(const struct ks_doctor_facts *facts, const char *path)
{
	char full[PATH_MAX];
	int n = snprintf(full, sizeof(full), "%s%s", facts->root, path);

	if (n < 0 || (size_t)n >= sizeof(full))
		return -ENAMETOOLONG;
	/* a FIFO or a terminal must not hold us up */
	int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

bool ks_facts_exists(const struct ks_doctor_facts *facts, const char *path)
{
	char full[PATH_MAX];
	struct stat st;
	int n = snprintf(full, sizeof(full), "%s%s", facts->root, path);

	return n > 0 && (size_t)n < sizeof(full) && stat(full, &st) == 0;
}

/* *ret ends with a NUL that is not counted. */
static int read_all(const struct ks_doctor_facts *facts, const char *path, struct ks_buf *ret)
{
	int opened = open_fact(facts, path);
	ssize_t n = 1;

	if (opened < 0)
		return opened;
	KS_AUTOCLOSE int fd = opened;
	while (n > 0 && ret->len < KS_DOCTOR_FILE_MAX) {
		char *room = ks_buf_reserve(ret, 4096);
		if (!room)
			return -ENOMEM;
		n = read(fd, room, 4096);
		if (n < 0)
			return -errno;
		ret->len += (size_t)n;
	}
	ks_buf_char(ret, '\0');
	return ret->failed ? -ENOMEM : 0;
}

int ks_facts_text(const struct ks_doctor_facts *facts, const char *path, char *ret, size_t size)
{
	int opened = open_fact(facts, path);

	ret[0] = '\0';
	if (opened < 0)
		return opened;
	KS_AUTOCLOSE int fd = opened;
	ssize_t n = read(fd, ret, size - 1);
	if (n < 0)
		return -errno;
	while (n > 0 && (ret[n - 1] == '\n' || ret[n - 1] == '\0'))
		n--;
	ret[n] = '\0';
	return 0;
}

bool ks_facts_number(const struct ks_doctor_facts *facts, const char *path, int64_t *ret)
{
	char text[64], *end;

	if (ks_facts_text(facts, path, text, sizeof(text)) < 0 || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (*end || errno)
		return false;
	*ret = value;
	return true;
}

bool ks_facts_field(const struct ks_doctor_facts *facts, const char *path, const char *key, char *ret, size_t size)
{
	KS_AUTOBUF struct ks_buf text = { 0 };
	size_t len = strlen(key);

	if (read_all(facts, path, &text) < 0)
		return false;
	for (const char *line = text.data; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, key, len) != 0)
			continue;
		const char *value = line + len + strspn(line + len, " \t");
		(void)snprintf(ret, size, "%.*s", (int)strcspn(value, "\n"), value);
		return true;
	}
	return false;
}

/* mountinfo writes space, tab, newline and backslash as three octal digits. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *c = text; *c; to++) {
		bool octal = c[0] == '\\' && c[1] >= '0' && c[1] <= '3' && c[2] >= '0' && c[2] <= '7' && c[3] >= '0' &&
			     c[3] <= '7';
		*to = octal ? (char)((c[1] - '0') * 64 + (c[2] - '0') * 8 + (c[3] - '0')) : *c;
		c += octal ? 4 : 1;
	}
	*to = '\0';
}

/* Fields: id parent device root mount-point options … - type source super-options. */
static bool parse_mount(const char *line, struct ks_facts_mount *ret)
{
	char super[256] = "";
	const char *rest = strstr(line, " - ");

	if (!rest || sscanf(line, "%*d %*d %*s %255s %255s %255s", ret->root, ret->point, ret->options) != 3 ||
	    sscanf(rest, " - %31s %*s %255s", ret->type, super) < 1)
		return false;
	if (strlen(ret->root) == sizeof(ret->root) - 1 || strlen(ret->point) == sizeof(ret->point) - 1)
		return false; /* cut: the fields behind it are not what they seem */
	unescape(ret->root);
	unescape(ret->point);
	/* a read-only file system has it in its own options only */
	size_t at = strlen(ret->options);
	if (ks_facts_has_option(super, "ro") && !ks_facts_has_option(ret->options, "ro"))
		(void)snprintf(ret->options + at, sizeof(ret->options) - at, ",ro");
	return true;
}

bool ks_facts_mounts(const struct ks_doctor_facts *facts, bool (*each)(void *arg, const struct ks_facts_mount *mount),
		     void *arg)
{
	KS_AUTOBUF struct ks_buf text = { 0 };
	char *save = NULL;

	if (read_all(facts, "/proc/self/mountinfo", &text) < 0)
		return false;
	for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct ks_facts_mount mount;
		if (parse_mount(line, &mount) && !each(arg, &mount))
			break;
	}
	return true;
}

bool ks_facts_is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	if (len == 1) /* "/" */
		return path[0] == '/';
	return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

struct lookup {
	const char *path;
	struct ks_facts_mount *ret;
	size_t len;
};

static bool look_up(void *arg, const struct ks_facts_mount *mount)
{
	struct lookup *lookup = arg;
	size_t len = strlen(mount->point);

	if (ks_facts_is_below(lookup->path, mount->point) && len >= lookup->len) {
		*lookup->ret = *mount;
		lookup->len = len;
	}
	return true;
}

bool ks_facts_mount_of(const struct ks_doctor_facts *facts, const char *path, struct ks_facts_mount *ret)
{
	struct lookup lookup = { .path = path, .ret = ret };

	return ks_facts_mounts(facts, look_up, &lookup) && lookup.len > 0;
}

bool ks_facts_has_option(const char *options, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = options; *at; at += strcspn(at, ","), at += *at == ',')
		if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0'))
			return true;
	return false;
}
