/* Image references, root file systems, and the programs in them. */
#include "scratch.h"

#include "image/image.h"
#include "image/resolve.h"

#define SHA64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_parse(void **unused)
{
	struct ks_error err;
	enum ks_image_kind kind;
	static const struct {
		const char *ref;
		int kind; /* -1: none */
	} cases[] = {
		{ NULL, KS_IMAGE_HOST },
		{ "", KS_IMAGE_HOST },
		{ "host", KS_IMAGE_HOST },
		{ "dir:/srv/rootfs", KS_IMAGE_DIR },
		{ "dir:/with:colon", KS_IMAGE_DIR },
		{ "oci:/srv/layout", KS_IMAGE_OCI },
		{ "oci:/srv/layout:3.12", KS_IMAGE_OCI },
		{ "docker-archive:/srv/a.tar", KS_IMAGE_ARCHIVE },
		{ "python", KS_IMAGE_REGISTRY },
		{ "python:3.12-slim", KS_IMAGE_REGISTRY },
		{ "library/python", KS_IMAGE_REGISTRY },
		{ "ghcr.io/a/b/c:v1", KS_IMAGE_REGISTRY },
		{ "localhost/x", KS_IMAGE_REGISTRY },
		{ "localhost:5000/x:y", KS_IMAGE_REGISTRY },
		{ "Registry.Example.com:443/a_b/c__d/e--f.g", KS_IMAGE_REGISTRY },
		{ "a@sha256:" SHA64, KS_IMAGE_REGISTRY },
		{ "a:t@sha256:" SHA64, KS_IMAGE_REGISTRY },
		{ "a@sha512:" SHA64 SHA64, KS_IMAGE_REGISTRY },
		{ "a:5000/x", KS_IMAGE_REGISTRY }, /* host "a" with a port */
		{ "dir:relative", -1 },
		{ "dir:", -1 },
		{ "oci:", -1 },
		{ "oci:/x:", -1 },
		{ "oci:/x:-t", -1 },
		{ "oci:/x:a:b", -1 },
		{ "oci:/:t", -1 },
		{ "docker-archive:a.tar", -1 },
		{ "Python", -1 },
		{ "HOST", -1 },
		{ "a//b", -1 },
		{ "/a", -1 },
		{ "a/", -1 },
		{ "a:", -1 },
		{ ":t", -1 },
		{ "a:.t", -1 },
		{ "a:b:c", -1 },
		{ "a___b", -1 },
		{ "a..b", -1 },
		{ "-a", -1 },
		{ "a-", -1 },
		{ "a b", -1 },
		{ "a\n", -1 },
		{ "a@", -1 },
		{ "a@sha256:1234", -1 },
		{ "a@sha256:" SHA64 "0", -1 },
		{ "a@md5:" SHA64, -1 },
		{ "a@sha256:" SHA64 "@sha256:" SHA64, -1 },
		{ "localhost:x/y", -1 },
		{ "h.io:123456/y", -1 },
		{ "-h.io/y", -1 },
		{ "../../etc", -1 },
		{ "caf\xc3\xa9", -1 },
	};

	(void)unused;
	for (size_t i = 0; i < KS_COUNT(cases); i++) {
		const char *shown = cases[i].ref ? cases[i].ref : "(null)";
		int wanted = cases[i].kind;
		memset(&err, 0, sizeof(err));
		int rc = ks_image_parse(cases[i].ref, &kind, &err);
		if (rc != (wanted < 0 ? -1 : 0) || (rc == 0 && (int)kind != wanted))
			fail_msg("%s: %d %d %s", shown, rc, (int)kind, err.text);
		if (rc < 0) {
			assert_int_equal(err.reason, KS_E_INVALID_VALUE);
			assert_string_equal(err.pointer, "/image");
			assert_non_null(strstr(err.hint, "python:3.12-slim"));
		}
	}
}

static void test_parse_limits(void **unused)
{
	struct ks_error err;
	enum ks_image_kind kind;
	char ref[KS_IMAGE_MAX_REF + 2];

	(void)unused;
	for (size_t len = 254; len <= 256; len++) { /* repository name */
		memset(ref, 'a', len);
		ref[len] = '\0';
		assert_int_equal(ks_image_parse(ref, &kind, &err), len <= 255 ? 0 : -1);
	}
	for (size_t len = 127; len <= 129; len++) { /* tag */
		memset(ref, 'a', len + 2);
		ref[1] = ':';
		ref[len + 2] = '\0';
		assert_int_equal(ks_image_parse(ref, &kind, &err), len <= 128 ? 0 : -1);
	}
	for (size_t len = KS_IMAGE_MAX_REF - 1; len <= KS_IMAGE_MAX_REF + 1; len++) {
		memset(ref, 'a', len);
		memcpy(ref, "dir:/", 5);
		ref[len] = '\0';
		assert_int_equal(ks_image_parse(ref, &kind, &err), len <= KS_IMAGE_MAX_REF ? 0 : -1);
	}
}

static const struct ks_image_entry *entry(const struct ks_image *image, const char *name)
{
	for (size_t i = 0; i < image->count; i++)
		if (strcmp(image->entries[i].name, name) == 0)
			return &image->entries[i];
	return NULL;
}

static void test_host(void **unused)
{
	struct ks_image *image;
	struct ks_error err;
	struct stat st;
	char *path, link[PATH_MAX];
	const char *const refs[] = { NULL, "", "host" };

	(void)unused;
	for (size_t i = 0; i < KS_COUNT(refs); i++) {
		assert_int_equal(ks_image_open(refs[i], &image, &err), 0);
		assert_int_equal(image->kind, KS_IMAGE_HOST);
		assert_string_equal(image->ref, "host");
		assert_string_equal(image->path, "/");
		assert_true(entry(image, "usr")->is_dir && !entry(image, "usr")->is_link);
		assert_int_equal(lstat("/bin", &st), 0);
		assert_int_equal(entry(image, "bin")->is_link, S_ISLNK(st.st_mode));
		if (S_ISLNK(st.st_mode)) {
			ssize_t n = readlink("/bin", link, sizeof(link) - 1);
			link[n] = '\0';
			assert_string_equal(entry(image, "bin")->link_target, link);
		}
		const char *const hidden[] = { "etc", "root", "home", "var", "opt", "tmp", "proc", "dev" };
		for (size_t h = 0; h < KS_COUNT(hidden); h++)
			assert_null(entry(image, hidden[h]));
		for (size_t n = 1; n < image->count; n++)
			assert_true(strcmp(image->entries[n - 1].name, image->entries[n].name) < 0);
		const char *const sh[] = { "no-such-shell-here", "sh", NULL };
		assert_int_equal(ks_image_find_program(image, sh, &path, &err), 0);
		assert_true(strcmp(path, "/usr/bin/sh") == 0 || strcmp(path, "/bin/sh") == 0);
		assert_int_equal(ks_image_check_program(image, path, &err), 0);
		free(path);
		ks_image_free(image);
	}
	ks_image_free(NULL);
}

static void test_open_errors(void **unused)
{
	struct scratch s;
	struct ks_image *image;
	struct ks_error err;
	char ref[PATH_MAX + 32];
	static const struct {
		const char *name; /* below the scratch directory, or a whole reference */
		enum ks_reason reason;
		const char *text;
	} cases[] = {
		{ "missing", KS_E_IMAGE_NOT_FOUND, "cannot be opened" },
		{ "file", KS_E_IMAGE_INVALID, "Not a directory" },
		{ "empty", KS_E_IMAGE_INVALID, "it has neither /usr nor /bin" },
		{ "odd", KS_E_IMAGE_INVALID, "it has neither /usr nor /bin" },
		{ "up", KS_E_IMAGE_INVALID, "the host's own root" },
		{ "dir:/", KS_E_IMAGE_INVALID, "the host's own root" },
		{ "oci:/x:y", KS_E_UNSUPPORTED_OPTION, "not in this build" },
		{ "docker-archive:/x", KS_E_UNSUPPORTED_OPTION, "not in this build" },
		{ "python:3.12-slim", KS_E_UNSUPPORTED_OPTION, "not in this build" },
		{ "NO", KS_E_INVALID_VALUE, "is no image reference" },
	};

	(void)unused;
	scratch_open(&s);
	put(s.fd, "file", "x");
	assert_int_equal(mkdirat(s.fd, "empty", 0755) | mkdirat(s.fd, "odd", 0755) | symlinkat("/", s.fd, "up"), 0);
	put(s.fd, "odd/usr", "a file");
	for (size_t i = 0; i < KS_COUNT(cases); i++) {
		bool whole = strchr(cases[i].name, ':') || strcmp(cases[i].name, "NO") == 0;
		(void)snprintf(ref, sizeof(ref), "%s%s%s%s", whole ? "" : "dir:", whole ? "" : s.path, whole ? "" : "/",
			       cases[i].name);
		memset(&err, 0, sizeof(err));
		assert_int_equal(ks_image_open(ref, &image, &err), -1);
		if (err.reason != cases[i].reason || !strstr(err.text, cases[i].text))
			fail_msg("%s: %s", ref, err.text);
		assert_string_equal(err.pointer, "/image");
		assert_true(err.hint[0] != '\0');
	}
	scratch_close(&s);
}

/* A small root file system in scratch/r, with a secret beside it. */
static void make_rootfs(struct scratch *s)
{
	static const char *const dirs[] = { "r", "r/usr", "r/usr/bin", "r/usr/sbin", "r/usr/local", "r/usr/local/bin",
					    "r/etc", "r/opt", "r/etc/alternatives", "r/usr/bin/adir" };
	static const char *const links[][2] = {
		{ "usr/bin", "r/bin" },
		{ "/usr/sbin", "r/sbin" },
		{ "python3.12", "r/usr/bin/python3" },
		{ "/etc/alternatives/awk", "r/usr/bin/awk" },
		{ "/usr/bin/mawk", "r/etc/alternatives/awk" },
		{ "/opt/tool", "r/usr/bin/tool" },
		{ "/opt/back", "r/usr/bin/around" },
		{ "/usr/bin/mawk", "r/opt/back" },
		{ "../../../../../secret", "r/usr/bin/climb" },
		{ "/../../../usr/bin/mawk", "r/usr/bin/clamped" },
		{ "loop", "r/usr/bin/loop" },
		{ "nowhere", "r/usr/bin/dangling" },
	};

	scratch_open(s);
	for (size_t i = 0; i < KS_COUNT(dirs); i++)
		assert_int_equal(mkdirat(s->fd, dirs[i], 0755), 0);
	for (size_t i = 0; i < KS_COUNT(links); i++)
		assert_int_equal(symlinkat(links[i][0], s->fd, links[i][1]), 0);
	put_mode(s->fd, "secret", "x", 1, 0755);
	put_mode(s->fd, "r/usr/bin/python3.12", "x", 1, 0755);
	put_mode(s->fd, "r/usr/bin/mawk", "x", 1, 0755);
	put_mode(s->fd, "r/usr/sbin/both", "x", 1, 0755);
	put_mode(s->fd, "r/usr/local/bin/both", "x", 1, 0755);
	put_mode(s->fd, "r/opt/tool", "x", 1, 0755);
	put_mode(s->fd, "r/usr/bin/plain", "x", 1, 0644);
	put(s->fd, "r/note", "a file at the top");
	assert_int_equal(mkfifoat(s->fd, "r/pipe", 0644) | mkfifoat(s->fd, "r/usr/bin/pipe", 0755), 0);
}

static struct ks_image *open_rootfs(const struct scratch *s)
{
	struct ks_image *image;
	struct ks_error err;
	char ref[PATH_MAX + 16];

	(void)snprintf(ref, sizeof(ref), "dir:%s/r", s->path);
	assert_int_equal(ks_image_open(ref, &image, &err), 0);
	return image;
}

static void test_rootfs(void **unused)
{
	struct scratch s;
	char text[256] = "";

	(void)unused;
	make_rootfs(&s);
	struct ks_image *image = open_rootfs(&s);
	for (size_t i = 0; i < image->count; i++) {
		const struct ks_image_entry *e = &image->entries[i];
		size_t at = strlen(text);
		(void)snprintf(text + at, sizeof(text) - at, "%s%s%s%s ", e->name, e->is_dir ? "/" : "", e->is_link ? "->" : "",
			       e->is_link ? e->link_target : "");
	}
	assert_string_equal(text, "bin->usr/bin etc/ note opt/ sbin->/usr/sbin usr/ "); /* no pipe */
	size_t len = strlen(s.path);
	assert_memory_equal(image->path, s.path, len);
	assert_string_equal(image->path + len, "/r");
	ks_image_free(image);
	scratch_close(&s);
}

static void test_resolve(void **unused)
{
	struct scratch s;
	struct stat st;
	char path[PATH_MAX];
	static const struct {
		const char *path, *resolved;
		int rc;
	} cases[] = {
		{ "/", "/", 0 },
		{ "/usr", "/usr", 0 },
		{ "//usr///bin/./python3", "/usr/bin/python3.12", 0 },
		{ "/bin/python3", "/usr/bin/python3.12", 0 },
		{ "/sbin/both", "/usr/sbin/both", 0 },
		{ "/bin/awk", "/usr/bin/mawk", 0 },
		{ "/bin/tool", "/opt/tool", 0 },
		{ "/usr/bin/../../../../../etc", "/etc", 0 },
		{ "/bin/../etc", "/usr/etc", -ENOENT }, /* the link is followed before ".." */
		{ "/..", "/", 0 },
		{ "/bin/clamped", "/usr/bin/mawk", 0 },
		{ "/bin/climb", NULL, -ENOENT },
		{ "/bin/loop", NULL, -ELOOP },
		{ "/bin/dangling", NULL, -ENOENT },
		{ "/usr/bin/mawk/x", NULL, -ENOTDIR },
		{ "/usr/bin/mawk/..", NULL, -ENOTDIR },
		{ "usr", NULL, -EINVAL },
		{ "", NULL, -EINVAL },
	};

	(void)unused;
	make_rootfs(&s);
	struct ks_image *image = open_rootfs(&s);
	for (size_t i = 0; i < KS_COUNT(cases); i++) {
		int rc = ks_image_resolve(image, cases[i].path, path, &st);
		if (rc != cases[i].rc)
			fail_msg("%s: %d", cases[i].path, rc);
		if (rc == 0)
			assert_string_equal(path, cases[i].resolved);
	}
	/* 40 links are followed, 41 are not: path_resolution(7) */
	char name[32], target[32];
	for (int i = 1; i <= 41; i++) {
		(void)snprintf(name, sizeof(name), "r/opt/l%d", i);
		(void)snprintf(target, sizeof(target), i == 1 ? "tool" : "l%d", i - 1);
		assert_int_equal(symlinkat(target, s.fd, name), 0);
	}
	assert_int_equal(ks_image_resolve(image, "/opt/l39", path, &st), 0);
	assert_int_equal(ks_image_resolve(image, "/opt/l40", path, &st), 0);
	assert_string_equal(path, "/opt/tool");
	assert_int_equal(ks_image_resolve(image, "/opt/l41", path, &st), -ELOOP);
	ks_image_free(image);
	scratch_close(&s);
}

static void test_programs(void **unused)
{
	struct scratch s;
	struct ks_error err;
	char *path;
	static const struct {
		const char *names[3];
		const char *found; /* NULL: not */
	} finds[] = {
		{ { "python3", "python" }, "/usr/bin/python3" },
		{ { "python", "python3" }, "/usr/bin/python3" },
		{ { "mawk", "python3" }, "/usr/bin/mawk" }, /* the name decides before the directory */
		{ { "both" }, "/usr/local/bin/both" },
		{ { "tool" }, "/usr/bin/tool" },
		{ { "plain" }, NULL },
		{ { "adir" }, NULL },
		{ { "pipe" }, NULL },
		{ { "climb" }, NULL },
		{ { "loop" }, NULL },
		{ { "ruby" }, NULL },
	};
	static const struct {
		const char *path;
		enum ks_reason reason; /* KS_E_NONE: fine */
	} checks[] = {
		{ "/usr/bin/python3", KS_E_NONE },	     { "/bin/awk", KS_E_NONE },
		{ "/opt/tool", KS_E_NONE },		     { "/usr/bin/plain", KS_E_PERMISSION_DENIED },
		{ "/usr/bin/adir", KS_E_NOT_REGULAR },	     { "/usr/bin/pipe", KS_E_NOT_REGULAR },
		{ "/usr/bin/ruby", KS_E_NOT_FOUND },	     { "/bin/climb", KS_E_NOT_FOUND },
		{ "/bin/loop", KS_E_NOT_FOUND },	     { "python3", KS_E_INVALID_VALUE },
		{ "/usr/bin/mawk/", KS_E_NOT_FOUND },	     { "", KS_E_INVALID_VALUE },
	};

	(void)unused;
	make_rootfs(&s);
	struct ks_image *image = open_rootfs(&s);
	for (size_t i = 0; i < KS_COUNT(finds); i++) {
		int rc = ks_image_find_program(image, finds[i].names, &path, &err);
		assert_int_equal(rc, finds[i].found ? 0 : -1);
		if (rc < 0) {
			assert_int_equal(err.reason, KS_E_NOT_FOUND);
			assert_non_null(strstr(err.text, finds[i].names[0]));
			assert_non_null(strstr(err.text, image->ref));
			continue;
		}
		assert_string_equal(path, finds[i].found);
		free(path);
	}
	const char *const bad[][2] = { { "../etc/passwd", NULL }, { "", NULL }, { "/bin/sh", NULL } };
	for (size_t i = 0; i < KS_COUNT(bad); i++) {
		assert_int_equal(ks_image_find_program(image, bad[i], &path, &err), -1);
		assert_int_equal(err.reason, KS_E_INVALID_VALUE);
	}
	for (size_t i = 0; i < KS_COUNT(checks); i++) {
		memset(&err, 0, sizeof(err));
		int rc = ks_image_check_program(image, checks[i].path, &err);
		if (rc != (checks[i].reason == KS_E_NONE ? 0 : -1) || err.reason != checks[i].reason)
			fail_msg("%s: %s", checks[i].path, err.text);
	}
	ks_image_free(image);
	scratch_close(&s);
}

/* Of the host a box sees a part: what leads out of it does not count, not even when it leads back in. */
static void test_host_programs(void **unused)
{
	struct scratch s;
	struct ks_error err;
	char *path;

	(void)unused;
	make_rootfs(&s);
	char usr[] = "usr", bin[] = "bin", host[] = "host";
	struct ks_image_entry entries[] = { { .name = bin, .is_link = true }, { .name = usr, .is_dir = true } };
	struct ks_image image = { .kind = KS_IMAGE_HOST, .ref = host, .entries = entries, .count = 2 };
	image.root_fd = openat(s.fd, "r", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *const good[] = { "/usr/bin/python3", "/bin/awk", "/usr/bin/clamped" };
	const char *const out[] = { "/usr/bin/tool", "/usr/bin/around", "/opt/tool", "/sbin/both", "/etc/passwd" };
	for (size_t i = 0; i < KS_COUNT(good); i++)
		assert_int_equal(ks_image_check_program(&image, good[i], &err), 0);
	for (size_t i = 0; i < KS_COUNT(out); i++) {
		assert_int_equal(ks_image_check_program(&image, out[i], &err), -1);
		assert_int_equal(err.reason, KS_E_NOT_FOUND);
		assert_non_null(strstr(err.text, "not visible in a box"));
	}
	const char *const tool[] = { "tool", NULL };
	assert_int_equal(ks_image_find_program(&image, tool, &path, &err), -1);
	assert_string_equal(err.text, "there is no \"tool\" in the image \"host\"");
	(void)close(image.root_fd);
	scratch_close(&s);
}

static void test_entry_limit(void **unused)
{
	struct scratch s;
	struct ks_image *image;
	struct ks_error err;
	char ref[PATH_MAX + 16], name[32];

	(void)unused;
	scratch_open(&s);
	assert_int_equal(mkdirat(s.fd, "r", 0755) | mkdirat(s.fd, "r/usr", 0755), 0);
	(void)snprintf(ref, sizeof(ref), "dir:%s/r", s.path);
	for (unsigned i = 1; i <= KS_IMAGE_MAX_ENTRIES; i++) {
		(void)snprintf(name, sizeof(name), "r/%u", i);
		put(s.fd, name, "");
		if (i + 2 < KS_IMAGE_MAX_ENTRIES)
			continue;
		int rc = ks_image_open(ref, &image, &err);
		assert_int_equal(rc, i < KS_IMAGE_MAX_ENTRIES ? 0 : -1);
		if (rc < 0) {
			assert_int_equal(err.reason, KS_E_IMAGE_INVALID);
			assert_non_null(strstr(err.text, "more than 1024 names"));
			continue;
		}
		assert_int_equal(image->count, i + 1);
		ks_image_free(image);
	}
	scratch_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),	      cmocka_unit_test(test_parse_limits),  cmocka_unit_test(test_host),
		cmocka_unit_test(test_open_errors),   cmocka_unit_test(test_rootfs),	    cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_programs),      cmocka_unit_test(test_host_programs), cmocka_unit_test(test_entry_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
