/* etag.h: the tag that changes with a file's content. Of a small file it is made of the bytes: before Linux 6.13 two writes within one
 * clock tick leave the same ctime. Of a large one it is made of inode, size, mtime and ctime. */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

#define KS_ETAG_CONTENT ((size_t)1 << 20) /* up to this: of the bytes */
#define KS_ETAG_TEXT 34			  /* with its NUL */

void ks_etag_of_bytes(const void *data, size_t len, char ret[KS_ETAG_TEXT]);
void ks_etag_of_stat(const struct stat *st, char ret[KS_ETAG_TEXT]);
/* Reads it, unless it is large. The descriptor's position stays. 0 or -errno. */
int ks_etag_of_file(int fd, char ret[KS_ETAG_TEXT]);
