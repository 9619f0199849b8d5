/* image.h: image references, the root file system behind one, and the programs inside it.
 * Reads only; what is mounted how is the box's business. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define KS_IMAGE_MAX_ENTRIES 1024u /* top-level names of a root file system */
#define KS_IMAGE_MAX_REF 4096u

enum ks_image_kind {
	KS_IMAGE_HOST,	   /* absent or "host": the host's own /usr, /bin, /sbin, /lib* */
	KS_IMAGE_DIR,	   /* "dir:/path": a ready root file system */
	KS_IMAGE_OCI,	   /* "oci:/path[:tag]" */
	KS_IMAGE_ARCHIVE,  /* "docker-archive:/path" */
	KS_IMAGE_REGISTRY, /* "[host[:port]/]name[:tag][@digest]" */
};

struct ks_image_entry {
	char *name;
	char *link_target; /* only of a link */
	bool is_link, is_dir;
};

struct ks_image {
	enum ks_image_kind kind;
	char *ref;    /* "host" when absent */
	char *path;   /* canonical; "/" for the host */
	int root_fd;  /* O_PATH|O_DIRECTORY */
	/* Top-level files, links and directories for the box's tree, sorted bytewise; of the host only those above. */
	struct ks_image_entry *entries;
	size_t count;
};

/* What kind of reference it is; KS_E_INVALID_VALUE at /image when it is none. NULL and "" : host. */
int ks_image_parse(const char *ref, enum ks_image_kind *ret, struct ks_error *err);
/* Errors point at /image. The caller puts `path` of a dir image through ks_source_check as well. */
int ks_image_open(const char *ref, struct ks_image **ret, struct ks_error *err);
void ks_image_free(struct ks_image *image);

/* The first of `names` (NULL-terminated, best first) in /usr/local/bin, /usr/bin, /bin, /usr/local/sbin, /usr/sbin,
 * /sbin of the image, as an absolute path in the box. Links are resolved inside the image; of the host every step
 * must be something that the box sees. KS_E_NOT_FOUND names the program and the image. */
int ks_image_find_program(const struct ks_image *image, const char *const names[], char **ret_path,
			  struct ks_error *err);
/* Whether `path` (absolute, as the box sees it) is an executable regular file of the image. */
int ks_image_check_program(const struct ks_image *image, const char *path, struct ks_error *err);
