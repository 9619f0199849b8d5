/* messages.h: what a decoded request looks like in C. A member is the field's name in snake_case.
 * Decoding fills every member: the table's default, or "absent": KS_ABSENT for integers, NULL for strings,
 * -1 for enums and tri-state booleans, present = false for texts. ks_params_free() frees what decoding allocated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KS_ABSENT INT64_MIN

/* A Text of the protocol: bytes, or the id of a blob that holds them. `data` has a NUL behind its len bytes. */
struct ks_text {
	bool present;
	char *data;
	size_t len;
	char *blob; /* NULL, or the id: then data is NULL */
};

struct ks_strings {
	char **items; /* NULL-terminated when count > 0 */
	size_t count;
};

/* A JSON object of strings, in the order of the request. */
struct ks_pairs {
	char **names, **values;
	size_t count;
};

enum ks_pull { KS_PULL_MISSING, KS_PULL_NEVER, KS_PULL_ALWAYS };
enum ks_start { KS_START_AUTO, KS_START_COLD, KS_START_TEMPLATE, KS_START_SPARE, KS_START_ZYGOTE };
enum ks_storage { KS_STORAGE_DISK, KS_STORAGE_MEMORY };
enum ks_box_kind { KS_BOX_FRESH, KS_BOX_RESIDENT };
enum ks_encoding { KS_ENCODING_UTF8, KS_ENCODING_AUTO, KS_ENCODING_BASE64 };
enum ks_stream_mode { KS_STREAM_OFF, KS_STREAM_LIVE, KS_STREAM_LOSSLESS };
enum ks_output { KS_STDOUT, KS_STDERR };
enum ks_mount_mode { KS_MOUNT_RO, KS_MOUNT_RW };
enum ks_shutdown_mode { KS_SHUTDOWN_DRAIN, KS_SHUTDOWN_KILL };

struct ks_mount_params {
	char *source, *target;
	int mode; /* enum ks_mount_mode */
};

struct ks_mounts {
	struct ks_mount_params *items;
	size_t count;
};

/* session/open, and the `session` object of run/code and run/argv */
struct ks_session_params {
	char *session_id, *image, *workspace, *workspace_target, *cwd;
	int pull;
	int64_t memory_mb, cpus_milli, pids, timeout_ms, max_output_bytes, workspace_max_mb, prewarm;
	bool network, map_owner, enforce_limits, require_limits, deps_readonly, track_files;
	struct ks_strings egress_allow, preload, profiles, cap_drop;
	bool has_cap_drop, has_tmpfs; /* so that [] and {} differ from absent */
	struct ks_mounts mounts;
	struct ks_pairs tmpfs, env, interpreters;
	char *shm_size, *user, *security_profile, *apparmor;
	int start, box, workspace_storage;
};

/* run/code has language, code, filename, first_line, args; run/argv has argv; the rest is common */
struct ks_run_params {
	char *run_id, *session_id;
	bool has_session;
	struct ks_session_params session;
	char *language, *filename;
	struct ks_text code;
	int64_t first_line;
	struct ks_strings args, argv;
	int64_t timeout_ms, memory_mb, cpus_milli, pids, max_output_bytes;
	struct ks_pairs env;
	char *cwd, *user;
	struct ks_text stdin_text; /* field name: stdin */
	bool interactive, merge;
	int track_files; /* -1 absent, 0, 1 */
	int encoding, stream;
	bool has_render;
	int64_t render_max_chars;
};

/* Nothing but what every request leaves out. */
#define KS_RUN_PARAMS_ABSENT                                                                                           \
	{                                                                                                              \
		.first_line = KS_ABSENT, .timeout_ms = KS_ABSENT, .memory_mb = KS_ABSENT, .cpus_milli = KS_ABSENT,     \
		.pids = KS_ABSENT, .max_output_bytes = KS_ABSENT, .track_files = -1                                    \
	}

struct ks_kernel_open_params {
	char *kernel_id, *session_id, *language, *cwd;
	int64_t timeout_ms, memory_mb;
	struct ks_pairs env;
};

struct ks_kernel_run_params {
	char *run_id, *kernel_id, *filename;
	struct ks_text code;
	int64_t timeout_ms;
	bool allow_input;
	int stream, encoding;
	bool has_render;
	int64_t render_max_chars;
};

struct ks_render_params {
	struct ks_text text;
	int64_t max_chars;
};

struct ks_kernel_interrupt_params {
	char *kernel_id, *run_id;
};

struct ks_kernel_handle_params { /* kernel/close, kernel/restart */
	char *kernel_id;
};

enum ks_shell_mode { KS_SHELL_PIPES, KS_SHELL_PTY };

struct ks_shell_open_params {
	char *shell_id, *session_id, *cwd;
	struct ks_strings argv;
	int mode; /* enum ks_shell_mode */
	int64_t rows, cols;
	struct ks_pairs env;
};

struct ks_shell_run_params {
	char *run_id, *shell_id;
	struct ks_text command, stdin_text;
	int64_t timeout_ms;
	int stream;
	bool merge;
};

struct ks_shell_write_params {
	char *shell_id;
	struct ks_text text; /* fields text | base64: exactly one of them */
};

struct ks_shell_resize_params {
	char *shell_id;
	int64_t rows, cols;
};

struct ks_shell_signal_params {
	char *shell_id, *signal;
};

struct ks_shell_handle_params { /* shell/close */
	char *shell_id;
};

struct ks_initialize_params {
	int64_t protocol_version, process_id;
	char *client_name, *client_version; /* client: {name, version} */
	int64_t max_line_bytes;		    /* capabilities.maxLineBytes */
	bool credits;			    /* capabilities.credits */
	int64_t runs, queued;		    /* limits.runs, limits.queued */
	int64_t fleet_memory_mb, fleet_pids; /* limits.memoryMb, limits.pids */
};

/* A path is text, or bytes when it is not UTF-8: exactly one of the two, unless `path` has a default. */
struct ks_path_params { /* file/stat; the others begin with the same */
	char *session_id, *path;
	struct ks_text path_bytes; /* field pathBase64 */
	bool follow_links;
};

struct ks_file_lines {
	int64_t start, count;
};

struct ks_file_read_params {
	char *session_id, *path;
	struct ks_text path_bytes;
	bool follow_links;
	int64_t offset, length; /* KS_ABSENT: 0, all */
	bool has_lines;
	struct ks_file_lines lines;
	int encoding;
};

enum ks_if_exists { KS_IF_EXISTS_REPLACE, KS_IF_EXISTS_FAIL, KS_IF_EXISTS_APPEND };

struct ks_file_write_params {
	char *session_id, *path;
	struct ks_text path_bytes;
	bool follow_links;
	struct ks_text content;
	int if_exists;
	char *if_match;
	bool mkdirs;
	int64_t mode;
};

struct ks_file_list_params {
	char *session_id, *path;
	struct ks_text path_bytes;
	bool follow_links, recursive;
	int64_t limit;
	struct ks_text cursor;
};

struct ks_file_mkdir_params {
	char *session_id, *path;
	struct ks_text path_bytes;
	bool follow_links, parents;
};

struct ks_file_move_params {
	char *session_id, *path;
	struct ks_text path_bytes;
	bool follow_links;
	char *to;
	struct ks_text to_bytes;
	bool replace;
};

struct ks_file_remove_params {
	char *session_id, *path;
	struct ks_text path_bytes;
	bool follow_links, recursive;
};

struct ks_file_edit {
	char *old_text, *new_text;
	bool all;
};

struct ks_file_edits {
	struct ks_file_edit *items;
	size_t count;
};

struct ks_file_edit_params {
	char *session_id, *path;
	struct ks_text path_bytes;
	bool follow_links;
	struct ks_file_edits edits;
	char *if_match;
};

struct ks_where_params { /* file/glob and file/search begin with it */
	char *session_id, *path; /* NULL: the workspace */
	struct ks_text path_bytes;
};

struct ks_glob_params { /* file/glob */
	char *session_id, *path;
	struct ks_text path_bytes;
	char *pattern;
	struct ks_strings ignore;
	bool hidden, gitignore;
	int64_t limit;
};

struct ks_search_params { /* file/search */
	char *session_id, *path;
	struct ks_text path_bytes;
	char *pattern, *glob;
	bool regex, ignore_case, hidden, gitignore;
	int64_t before, after, limit;
};

struct ks_handle_params { /* session/close */
	char *session_id;
};

struct ks_setup_params { /* session/setup */
	char *session_id, *command;
	int64_t timeout_ms;
	int stream;
};

struct ks_snapshot_params { /* session/snapshot */
	char *session_id, *path;
	int links; /* enum ks_links (worker/archive.h) */
};

struct ks_restore_params { /* session/restore: exactly one of path and blob */
	char *session_id, *path;
	struct ks_text blob;
	int links;
};

struct ks_shutdown_params {
	int mode;
};

struct ks_run_stdin_params {
	char *run_id;
	struct ks_text text; /* fields text | base64: exactly one of them unless eof */
	bool eof;
};

struct ks_run_signal_params {
	char *run_id, *signal;
};

struct ks_run_credit_params {
	char *run_id;
	int64_t bytes;
};

struct ks_output_read_params {
	char *run_id;
	int stream; /* enum ks_output */
	int64_t offset, max_bytes;
};

struct ks_blob_read_params {
	char *id;
	int64_t offset, length;
};

struct ks_blob_write_params {
	char *id; /* NULL: a new one */
	struct ks_text text;
};

struct ks_blob_free_params {
	char *id;
};

struct ks_schema_params { /* rpc/schema */
	char *format;
};

struct ks_cancel_params { /* $/cancel */
	char *id; /* as JSON text: 7 or "abc", to be compared with ks_request_id() */
};
