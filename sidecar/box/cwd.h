/* cwd.h: opening the directory that a command starts in, without following a link of /proc. */
#pragma once

/* `path` is absolute. An O_PATH descriptor, or -errno: -ELOOP when a link of a proc file system is on the way, or too many links. Not
 * by openat2(2): a box's filter refuses that (seccomp_list.h says why). */
int ks_open_cwd(const char *path);
