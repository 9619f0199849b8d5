/* resolve.h: resolving a path the way a process would whose root is the image. */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include "image.h"

/* Follows every link inside the image ("/.." is "/") and writes the link-free absolute path. 0, or -errno; of the
 * host image, -EXDEV when a step lies where the box sees nothing. The answer is good for a message or a choice, not
 * for opening: what the box executes it resolves itself, in its own root. */
int ks_image_resolve(const struct ks_image *image, const char *path, char ret_path[PATH_MAX], struct stat *ret_st);
