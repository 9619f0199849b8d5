/* error.h: the one error record. Fixed size and no pointers, so that it can be filled after a fork
 * without malloc and sent up a socket in one write. A sandbox fault is not an error: it has its own type. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base.h"

/* X(symbol, wire number, wire name, retryable). The numbers and names are the protocol's section 8. */
#define KS_REASONS(X)                                             \
	X(PARSE, -32700, "parse", false)                          \
	X(INVALID_REQUEST, -32600, "invalid_request", false)      \
	X(DUPLICATE_ID, -32600, "duplicate_id", false)            \
	X(BATCH_UNSUPPORTED, -32600, "batch_unsupported", false)  \
	X(UNKNOWN_METHOD, -32601, "unknown_method", false)        \
	X(UNKNOWN_OPTION, -32602, "unknown_option", false)        \
	X(UNSUPPORTED_OPTION, -32602, "unsupported_option", false) \
	X(INVALID_TYPE, -32602, "invalid_type", false)            \
	X(INVALID_VALUE, -32602, "invalid_value", false)          \
	X(OUT_OF_RANGE, -32602, "out_of_range", false)            \
	X(MISSING, -32602, "missing", false)                      \
	X(INTERNAL, -32603, "internal", false)                    \
	X(NOT_INITIALIZED, -32002, "not_initialized", false)      \
	X(CANCELLED, -32800, "cancelled", false)                  \
	X(UNSUPPORTED_PROTOCOL, 1002, "unsupported_protocol", false) \
	X(OVERLOADED, 1003, "overloaded", true)                   \
	X(LIMIT, 1004, "limit", false)                            \
	X(LINE_TOO_LONG, 1005, "line_too_long", false)            \
	X(UNKNOWN_HANDLE, 1100, "unknown_handle", false)          \
	X(DUPLICATE_HANDLE, 1101, "duplicate_handle", false)      \
	X(BUSY, 1103, "busy", true)                               \
	X(KERNEL_DEAD, 1104, "kernel_dead", false)                \
	X(SHELL_DEAD, 1105, "shell_dead", false)                  \
	X(GONE, 1106, "gone", false)                              \
	X(IMAGE_NOT_FOUND, 1200, "image_not_found", false)        \
	X(IMAGE_INVALID, 1201, "image_invalid", false)            \
	X(DIGEST_MISMATCH, 1202, "digest_mismatch", false)        \
	X(PULL_FAILED, 1203, "pull_failed", true)                 \
	X(PATH_ESCAPE, 1300, "path_escape", false)                \
	X(NOT_FOUND, 1301, "not_found", false)                    \
	X(NOT_REGULAR, 1302, "not_regular", false)                \
	X(TOO_LARGE, 1303, "too_large", false)                    \
	X(EXISTS, 1304, "exists", false)                          \
	X(IO, 1305, "io", false)                                  \
	X(PERMISSION_DENIED, 1306, "permission_denied", false)    \
	X(IS_DIRECTORY, 1307, "is_directory", false)              \
	X(NOT_A_DIRECTORY, 1308, "not_a_directory", false)        \
	X(INVALID_PATH, 1309, "invalid_path", false)              \
	X(CHANGED, 1310, "changed", false)                        \
	X(EDIT_NO_MATCH, 1311, "edit_no_match", false)            \
	X(EDIT_NOT_UNIQUE, 1312, "edit_not_unique", false)        \
	X(NO_SPACE, 1313, "no_space", false)                      \
	X(READ_ONLY, 1314, "read_only", false)                    \
	X(NOT_EMPTY, 1315, "not_empty", false)                    \
	X(START_FAILED, 1400, "start_failed", false)              \
	X(MOUNT_REFUSED, 1401, "mount_refused", false)            \
	X(LIMITS_UNENFORCED, 1402, "limits_unenforced", false)    \
	X(PROFILE_UNKNOWN, 1403, "profile_unknown", false)        \
	X(HOST_UNSUPPORTED, 1404, "host_unsupported", false)      \
	X(PRELOAD_FAILED, 1405, "preload_failed", false)          \
	X(SETUP_FAILED, 1500, "setup_failed", false)              \
	X(ARCHIVE_REFUSED, 1600, "archive_refused", false)        \
	X(PLUGIN_ERROR, 1700, "plugin_error", false)              \
	X(UNKNOWN_LANGUAGE, 1701, "unknown_language", false)

enum ks_reason {
	KS_E_NONE = 0,
#define KS_REASON_ENUM(symbol, number, name, retryable) KS_E_##symbol,
	KS_REASONS(KS_REASON_ENUM)
#undef KS_REASON_ENUM
	KS_REASON_MAX
};

struct ks_error {
	enum ks_reason reason;
	int sys_errno;	  /* 0 when the kernel had no part in it */
	char pointer[128]; /* JSON Pointer (RFC 6901) into the request, or "" */
	char step[40];	  /* the set-up step that failed, or "" */
	char text[320];	  /* one sentence for a person */
	char hint[256];	  /* what to do about it, or "" */
};

_Static_assert(sizeof(struct ks_error) <= 1024, "must fit one socket message beside a header");

/* Clears *err, fills it, returns -1, so that the call can be the return statement. */
int ks_fail(struct ks_error *err, enum ks_reason reason, const char *fmt, ...) KS_PRINTF(3, 4);
/* Same with errno recorded and its text appended to the sentence. `sys_errno` is positive. */
int ks_fail_errno(struct ks_error *err, enum ks_reason reason, int sys_errno, const char *fmt, ...) KS_PRINTF(4, 5);
/* Same with the field that is wrong. */
int ks_fail_at(struct ks_error *err, enum ks_reason reason, const char *pointer, const char *fmt, ...)
	KS_PRINTF(4, 5);
/* These add to an error that is already there and return -1. */
int ks_error_at(struct ks_error *err, const char *pointer);
int ks_error_step(struct ks_error *err, const char *step);
int ks_error_hint(struct ks_error *err, const char *fmt, ...) KS_PRINTF(2, 3);

const char *ks_reason_name(enum ks_reason reason);
int ks_reason_number(enum ks_reason reason);
bool ks_reason_retryable(enum ks_reason reason);
