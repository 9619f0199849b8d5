#include "copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fds.h"

struct copy {
	struct {
		DIR *from;
		int to;
	} levels[KS_COPY_DEPTH];
	int depth; /* levels that are open */
	int64_t entries, bytes, max_bytes;
};

static void finish(struct copy *copy)
{
	for (; copy->depth > 0; copy->depth--) {
		(void)closedir(copy->levels[copy->depth - 1].from);
		ks_close(&copy->levels[copy->depth - 1].to);
	}
}

static int too_large(struct ks_error *err)
{
	return ks_fail(err, KS_E_TOO_LARGE, "more than %d entries or %d levels are not copied", KS_COPY_ENTRIES, KS_COPY_DEPTH);
}

static int enter(struct copy *copy, int from, int to, struct ks_error *err)
{
	DIR *dir = NULL;

	if (copy->depth == KS_COPY_DEPTH)
		(void)too_large(err);
	else if (!(dir = fdopendir(from)))
		(void)ks_fail_errno(err, KS_E_IO, errno, "cannot copy a directory");
	if (!dir) {
		ks_close(&from);
		ks_close(&to);
		return -1;
	}
	copy->levels[copy->depth].from = dir;
	copy->levels[copy->depth++].to = to;
	return 0;
}

static int by_hand(int from, int to)
{
	static char room[65536];
	ssize_t n;

	while ((n = read(from, room, sizeof(room))) > 0)
		for (ssize_t done = 0, put; done < n; done += put)
			if ((put = write(to, room + done, (size_t)(n - done))) < 0)
				return -1;
	return n < 0 ? -1 : 0;
}

static int copy_bytes(int from, int to)
{
	ssize_t n;
	bool any = false;

	while ((n = copy_file_range(from, NULL, to, NULL, SSIZE_MAX >> 1, 0)) > 0)
		any = true;
	if (n == 0)
		return any ? 0 : by_hand(from, to); /* 0 at once: also what files are answered that the kernel makes up */
	return any || (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) ? -1 : by_hand(from, to);
}

static int copy_file(struct copy *copy, int from_dir, int to_dir, const char *name)
{
	KS_AUTOCLOSE int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (from < 0 || fstat(from, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode))
		return 0;
	if ((copy->bytes += st.st_size) > copy->max_bytes) {
		errno = EFBIG;
		return -1;
	}
	KS_AUTOCLOSE int to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	const struct timespec times[] = { st.st_atim, st.st_mtim };
	return to < 0 || copy_bytes(from, to) < 0 || fchmod(to, st.st_mode & 0777) < 0 || futimens(to, times) < 0 ? -1 : 0;
}

static int copy_link(int from_dir, int to_dir, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from_dir, name, target, sizeof(target));

	if (n < 0 || n == (ssize_t)sizeof(target))
		return -1;
	target[n] = '\0';
	return symlinkat(target, to_dir, name);
}

static int enter_directory(struct copy *copy, int from_dir, int to_dir, const char *name, struct ks_error *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	KS_AUTOCLOSE int from = openat(from_dir, name, flags);
	struct stat st;

	if (from < 0 || fstat(from, &st) < 0 || mkdirat(to_dir, name, (st.st_mode & 0777) | 0700) < 0)
		return ks_fail_errno(err, KS_E_IO, errno, "cannot copy the directory %.100s", name);
	int to = openat(to_dir, name, flags);
	if (to < 0)
		return ks_fail_errno(err, KS_E_IO, errno, "cannot copy the directory %.100s", name);
	return enter(copy, KS_TAKE_FD(from), to, err);
}

static int copy_entry(struct copy *copy, const char *name, struct ks_error *err)
{
	const int from = dirfd(copy->levels[copy->depth - 1].from), to = copy->levels[copy->depth - 1].to;
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (++copy->entries > KS_COPY_ENTRIES)
		return too_large(err);
	int rc = fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW);
	if (rc == 0 && S_ISDIR(st.st_mode))
		return enter_directory(copy, from, to, name, err);
	if (rc == 0 && S_ISLNK(st.st_mode))
		rc = copy_link(from, to, name);
	else if (rc == 0 && S_ISREG(st.st_mode))
		rc = copy_file(copy, from, to, name);
	if (rc == 0)
		return 0;
	return ks_fail_errno(err, errno == ENOSPC || errno == EDQUOT ? KS_E_NO_SPACE : KS_E_IO, errno, "cannot copy %.100s", name);
}

int ks_copy_tree(int from, int to, int64_t max_bytes, struct ks_error *err)
{
	struct copy *copy = calloc(1, sizeof(*copy));
	int rc = copy ? 0 : ks_fail(err, KS_E_INTERNAL, "out of memory");

	if (copy)
		copy->max_bytes = max_bytes;
	if (rc == 0)
		rc = enter(copy, openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fcntl(to, F_DUPFD_CLOEXEC, 0), err);
	while (rc == 0 && copy->depth > 0) {
		errno = 0;
		const struct dirent *entry = readdir(copy->levels[copy->depth - 1].from);
		if (entry) {
			rc = copy_entry(copy, entry->d_name, err);
		} else if (errno) {
			rc = ks_fail_errno(err, KS_E_IO, errno, "cannot copy a directory");
		} else {
			copy->depth--;
			(void)closedir(copy->levels[copy->depth].from);
			ks_close(&copy->levels[copy->depth].to);
		}
	}
	if (copy)
		finish(copy);
	free(copy);
	return rc;
}
