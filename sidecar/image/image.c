#include "image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define POINTER "/image"

static int no_memory(struct ks_error *err)
{
	return ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot open an image");
}

/* Files, links and directories; what is neither is not part of a root file system's top. */
static int read_entry(int root_fd, const char *name, struct ks_image_entry *ret, bool *ret_taken)
{
	char link[PATH_MAX];
	struct stat st;
	KS_AUTOFREE char *copy = NULL;
	KS_AUTOFREE char *target = NULL;

	*ret_taken = false;
	if (fstatat(root_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return 0;
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlinkat(root_fd, name, link, sizeof(link) - 1);
		if (n < 0)
			return -errno;
		link[n] = '\0';
		target = strdup(link);
		if (!target)
			return -ENOMEM;
	}
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	*ret = (struct ks_image_entry){
		.name = KS_TAKE_PTR(copy),
		.is_link = S_ISLNK(st.st_mode),
		.is_dir = S_ISDIR(st.st_mode),
		.link_target = KS_TAKE_PTR(target),
	};
	*ret_taken = true;
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct ks_image_entry *x = a, *y = b;

	return strcmp(x->name, y->name); /* bytewise: C17 7.24.4 compares as unsigned char */
}

/* Exactly these: a host may well keep data in a "/library". */
static bool host_shows(const char *name)
{
	static const char *const shown[] = { "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

	for (size_t i = 0; i < KS_COUNT(shown); i++)
		if (strcmp(name, shown[i]) == 0)
			return true;
	return false;
}

static int read_entries(struct ks_image *image, struct ks_error *err)
{
	int fd = openat(image->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int rc = 0;

	if (!dir) {
		ks_fail_errno(err, KS_E_IMAGE_INVALID, errno, "the image \"%.150s\" cannot be read", image->ref);
		ks_close(&fd);
		return ks_error_at(err, POINTER);
	}
	image->entries = calloc(KS_IMAGE_MAX_ENTRIES, sizeof(*image->entries));
	if (!image->entries)
		rc = -ENOMEM;
	for (const struct dirent *d; rc == 0 && (d = readdir(dir));) {
		bool taken;
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
		    (image->kind == KS_IMAGE_HOST && !host_shows(d->d_name)))
			continue;
		if (image->count == KS_IMAGE_MAX_ENTRIES)
			rc = -E2BIG;
		else
			rc = read_entry(image->root_fd, d->d_name, &image->entries[image->count], &taken);
		image->count += rc == 0 && taken;
	}
	(void)closedir(dir);
	if (rc == -ENOMEM)
		return no_memory(err);
	if (rc == -E2BIG)
		return ks_fail_at(err, KS_E_IMAGE_INVALID, POINTER,
				  "the root of the image \"%.150s\" has more than %u names", image->ref, KS_IMAGE_MAX_ENTRIES);
	if (rc < 0) {
		ks_fail_errno(err, KS_E_IMAGE_INVALID, -rc, "the root of the image \"%.150s\" cannot be read", image->ref);
		return ks_error_at(err, POINTER);
	}
	qsort(image->entries, image->count, sizeof(*image->entries), compare_entries);
	return 0;
}

/* Something to run programs from: a /usr or a /bin, directory or link. */
static int check_rootfs(const struct ks_image *image, struct ks_error *err)
{
	for (size_t i = 0; i < image->count; i++) {
		const struct ks_image_entry *e = &image->entries[i];
		if ((e->is_dir || e->is_link) && (strcmp(e->name, "usr") == 0 || strcmp(e->name, "bin") == 0))
			return 0;
	}
	ks_fail_at(err, KS_E_IMAGE_INVALID, POINTER, "\"%.150s\" is no root file system: it has neither /usr nor /bin",
		   image->path);
	return ks_error_hint(err, "name the directory that holds usr, bin, lib and so on, as debootstrap or \"docker export\" "
				  "make it");
}

static int open_root(struct ks_image *image, struct ks_error *err)
{
	struct stat st, root;
	const char *path = image->kind == KS_IMAGE_DIR ? image->ref + strlen("dir:") : "/";

	image->path = realpath(path, NULL);
	image->root_fd = image->path ? open(image->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (image->root_fd < 0 || fstat(image->root_fd, &st) < 0) {
		enum ks_reason reason = errno == ENOTDIR ? KS_E_IMAGE_INVALID : KS_E_IMAGE_NOT_FOUND;
		ks_fail_errno(err, reason, errno, "the image \"%.150s\" cannot be opened", image->ref);
		(void)ks_error_hint(err, "dir: wants the path of a directory with a root file system in it");
		return ks_error_at(err, POINTER);
	}
	if (image->kind == KS_IMAGE_DIR && stat("/", &root) == 0 && st.st_dev == root.st_dev && st.st_ino == root.st_ino) {
		ks_fail_at(err, KS_E_IMAGE_INVALID, POINTER, "\"%.150s\" is the host's own root, with everything in it",
			   image->ref);
		return ks_error_hint(err, "use \"host\" for the host's programs without its files");
	}
	return 0;
}

int ks_image_open(const char *ref, struct ks_image **ret, struct ks_error *err)
{
	enum ks_image_kind kind;

	if (ks_image_parse(ref, &kind, err) < 0)
		return -1;
	if (kind != KS_IMAGE_HOST && kind != KS_IMAGE_DIR) {
		ks_fail_at(err, KS_E_UNSUPPORTED_OPTION, POINTER, "images like \"%.150s\" are not in this build", ref);
		return ks_error_hint(err, "use \"host\", or unpack the image and use \"dir:/path/to/rootfs\"");
	}
	struct ks_image *image = calloc(1, sizeof(*image));
	if (!image)
		return no_memory(err);
	image->kind = kind;
	image->root_fd = -1;
	image->ref = strdup(ref && *ref ? ref : "host");
	if (!image->ref ? no_memory(err) < 0 :
			  open_root(image, err) < 0 || read_entries(image, err) < 0 || check_rootfs(image, err) < 0) {
		ks_image_free(image);
		return -1;
	}
	*ret = image;
	return 0;
}

void ks_image_free(struct ks_image *image)
{
	if (!image)
		return;
	for (size_t i = 0; i < image->count; i++) {
		free(image->entries[i].name);
		free(image->entries[i].link_target);
	}
	free(image->entries);
	ks_close(&image->root_fd);
	free(image->path);
	free(image->ref);
	free(image);
}
