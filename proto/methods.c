/* methods.c: the method table, in contract order. To switch a method of a later build on: LATER becomes NOW. */
#include "methods.h"

#include <string.h>

#include "proto/tables.h"

#define NOW .supported = true
#define LATER .supported = false
#define ERRORS(...)                                                                                                    \
	.errors = (const enum ks_reason[])                                                                             \
	{                                                                                                              \
		__VA_ARGS__, KS_E_NONE                                                                                 \
	}
#define NO_ERRORS                                                                                                      \
	.errors = (const enum ks_reason[])                                                                             \
	{                                                                                                              \
		KS_E_NONE                                                                                              \
	}

/* Requests and notifications of the client; notifications of the server. */
#define CALL(method, in, out, in_lane, ...)                                                                            \
	{                                                                                                              \
		.name = (method), .kind = KS_REQUEST, .side = KS_FROM_CLIENT, .lane = KS_METHOD_##in_lane,             \
		.params = (in), .result = (out), __VA_ARGS__                                                           \
	}
#define TELL(method, in, ...)                                                                                          \
	{                                                                                                              \
		.name = (method), .kind = KS_NOTIFICATION, .side = KS_FROM_CLIENT, .lane = KS_METHOD_CONTROL,          \
		.params = (in), NO_ERRORS, __VA_ARGS__                                                                 \
	}
#define EVENT(method, in, in_lane, ...)                                                                                \
	{                                                                                                              \
		.name = (method), .kind = KS_NOTIFICATION, .side = KS_FROM_SERVER, .lane = KS_METHOD_##in_lane,        \
		.params = (in), NO_ERRORS, __VA_ARGS__                                                                 \
	}

/* KS_E_OVERLOADED is not in these lists: any request can get it. */
#define OPEN_ERRORS                                                                                                    \
	KS_E_LIMIT, KS_E_DUPLICATE_HANDLE, KS_E_IMAGE_NOT_FOUND, KS_E_IMAGE_INVALID, KS_E_DIGEST_MISMATCH,             \
		KS_E_PULL_FAILED, KS_E_START_FAILED, KS_E_MOUNT_REFUSED, KS_E_LIMITS_UNENFORCED, KS_E_PROFILE_UNKNOWN, \
		KS_E_HOST_UNSUPPORTED, KS_E_PRELOAD_FAILED, KS_E_PLUGIN_ERROR, KS_E_UNKNOWN_LANGUAGE,                  \
		KS_E_PATH_ESCAPE, KS_E_NOT_FOUND, KS_E_NOT_A_DIRECTORY, KS_E_INVALID_PATH, KS_E_IO,                    \
		KS_E_PERMISSION_DENIED, KS_E_NO_SPACE, KS_E_READ_ONLY, KS_E_CANCELLED
#define RUN_ERRORS ERRORS(OPEN_ERRORS, KS_E_UNKNOWN_HANDLE, KS_E_GONE, KS_E_TOO_LARGE)
#define PATH_ERRORS                                                                                                    \
	KS_E_UNKNOWN_HANDLE, KS_E_PATH_ESCAPE, KS_E_NOT_FOUND, KS_E_IO, KS_E_PERMISSION_DENIED, KS_E_INVALID_PATH,     \
		KS_E_NOT_A_DIRECTORY, KS_E_LIMIT, KS_E_CANCELLED
#define CHANGE_ERRORS PATH_ERRORS, KS_E_NO_SPACE, KS_E_READ_ONLY
/* of an archive on the host */
#define HOST_FILE_ERRORS                                                                                               \
	KS_E_NOT_FOUND, KS_E_NOT_REGULAR, KS_E_IS_DIRECTORY, KS_E_NOT_A_DIRECTORY, KS_E_INVALID_PATH,                  \
		KS_E_PERMISSION_DENIED, KS_E_IO

static const struct ks_method methods[] = {
	CALL("initialize", &ks_initialize_params, &ks_initialize_result, CONTROL, NOW,
	     ERRORS(KS_E_UNSUPPORTED_PROTOCOL, KS_E_LIMITS_UNENFORCED, KS_E_HOST_UNSUPPORTED), .before_initialize = true,
	     .text = "The first request: versions, capabilities and limits."),
	TELL("initialized", &ks_no_fields, NOW, .text = "Accepted and ignored."),
	CALL("ping", &ks_no_params, &ks_nothing, CONTROL, NOW, NO_ERRORS, .before_initialize = true,
	     .text = "Are you there?"),
	CALL("shutdown", &ks_shutdown_params, &ks_nothing, CONTROL, NOW, NO_ERRORS,
	     .text = "Answers when all boxes are gone."),
	TELL("exit", &ks_no_fields, NOW, .before_initialize = true, .text = "Ends the sidecar."),
	TELL("$/cancel", &ks_cancel_params, NOW, .text = "Cancels a request; that still gets its one reply."),
	EVENT("$/progress", &ks_progress, CONTROL, NOW, .text = "How far a request with a progressToken is."),
	EVENT("$/log", &ks_log_params, CONTROL, NOW, .text = "One line of the log."),

	CALL("session/open", &ks_session_open_params, &ks_session_open_result, WORK, NOW, ERRORS(OPEN_ERRORS),
	     .text = "Makes a session: what its boxes are like, and their workspace."),
	CALL("session/close", &ks_session_handle_params, &ks_nothing, WORK, NOW, ERRORS(KS_E_UNKNOWN_HANDLE),
	     .text = "Ends a session; its running calls answer `cancelled` first."),
	CALL("session/list", &ks_no_params, &ks_session_list_result, CONTROL, NOW, NO_ERRORS,
	     .text = "The open sessions."),
	CALL("session/setup", &ks_session_setup_params, &ks_session_setup_result, WORK, NOW,
	     ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_BUSY, KS_E_START_FAILED, KS_E_SETUP_FAILED, KS_E_NO_SPACE, KS_E_TOO_LARGE, KS_E_IO, KS_E_LIMIT,
		    KS_E_CANCELLED),
	     .text = "Runs a command with the network on to prepare the session; exclusive with runs."),
	CALL("session/snapshot", &ks_session_snapshot_params, &ks_session_snapshot_result, WORK, NOW,
	     ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_LIMIT, KS_E_GONE, HOST_FILE_ERRORS, KS_E_TOO_LARGE, KS_E_NO_SPACE, KS_E_READ_ONLY,
		    KS_E_CANCELLED),
	     .text = "Packs the workspace into an archive; runs go on meanwhile."),
	CALL("session/restore", &ks_session_restore_params, &ks_session_restore_result, WORK, NOW,
	     ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_LIMIT, KS_E_BUSY, KS_E_START_FAILED, KS_E_GONE, HOST_FILE_ERRORS, KS_E_ARCHIVE_REFUSED, KS_E_CHANGED, KS_E_NO_SPACE,
		    KS_E_CANCELLED),
	     .text = "Replaces the workspace by an archive's content; exclusive with runs."),
	EVENT("session/closed", &ks_session_closed, CONTROL, NOW,
	      .text = "A session that the sidecar ended by itself."),

	CALL("run/code", &ks_run_code_params, &ks_run_result, WORK, NOW, RUN_ERRORS,
	     .text = "Runs code in a fresh box."),
	CALL("run/argv", &ks_run_argv_params, &ks_run_result, WORK, NOW, RUN_ERRORS,
	     .text = "Runs a program in a fresh box."),
	EVENT("run/started", &ks_run_started, WORK, NOW, .text = "The main process is running."),
	EVENT("run/output", &ks_run_output, WORK, NOW, .text = "A piece of output of a run with a stream."),
	EVENT("run/display", &ks_run_display, WORK, NOW, .text = "A rich result while the code runs."),
	EVENT("run/inputWanted", &ks_input_wanted, WORK, NOW,
	      .text = "The code waits for a line; answer with run/stdin."),
	CALL("run/stdin", &ks_run_stdin_params, &ks_nothing, CONTROL, NOW, ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_GONE),
	     .text = "Input for an interactive run; answers when it is accepted."),
	CALL("run/signal", &ks_run_signal_params, &ks_nothing, CONTROL, NOW,
	     ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_BUSY, KS_E_GONE), .text = "Sends a signal to the main process of a run. In kernels of bash, sh and node it is for what the cell has started as well, and TERM leaves the kernel."),
	CALL("run/credit", &ks_run_credit_params, &ks_nothing, CONTROL, NOW, ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_GONE),
	     .text = "Opens the window of a lossless stream."),
	CALL("output/read", &ks_output_read_params, &ks_output_read_result, WORK, NOW,
	     ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_GONE), .text = "A part of the kept output of a run, also while it runs."),
	CALL("blob/read", &ks_blob_read_params, &ks_blob_read_result, WORK, NOW, ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_GONE),
	     .text = "A part of a blob."),
	CALL("blob/write", &ks_blob_write_params, &ks_blob_write_result, WORK, NOW,
	     ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_GONE, KS_E_LIMIT), .text = "Makes a blob or appends to one."),
	CALL("blob/free", &ks_blob_free_params, &ks_nothing, WORK, NOW, ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_GONE),
	     .text = "Forgets a blob."),

	CALL("kernel/open", &ks_kernel_open_params, &ks_kernel_open_result, WORK, NOW,
	     ERRORS(KS_E_LIMIT, KS_E_UNKNOWN_HANDLE, KS_E_DUPLICATE_HANDLE, KS_E_BUSY, KS_E_HOST_UNSUPPORTED, KS_E_START_FAILED,
		    KS_E_PLUGIN_ERROR, KS_E_UNKNOWN_LANGUAGE, KS_E_CANCELLED),
	     .text = "Starts an interpreter that keeps its state between cells."),
	CALL("kernel/run", &ks_kernel_run_params, &ks_kernel_run_result, WORK, NOW,
	     ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_DUPLICATE_HANDLE, KS_E_BUSY, KS_E_KERNEL_DEAD, KS_E_CANCELLED),
	     .text = "Runs a cell; cells of a kernel run in order."),
	CALL("kernel/interrupt", &ks_kernel_interrupt_params, &ks_kernel_interrupt_result, CONTROL, NOW,
	     ERRORS(KS_E_UNKNOWN_HANDLE), .text = "Interrupts the running cell; never kills, never hits a later one."),
	CALL("kernel/restart", &ks_kernel_handle_params, &ks_nothing, WORK, NOW,
	     ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_START_FAILED), .text = "A new interpreter under the same id."),
	CALL("kernel/close", &ks_kernel_handle_params, &ks_nothing, WORK, NOW, ERRORS(KS_E_UNKNOWN_HANDLE),
	     .text = "Ends a kernel."),
	CALL("kernel/list", &ks_no_params, &ks_kernel_list_result, CONTROL, NOW, NO_ERRORS, .text = "The kernels."),
	EVENT("kernel/state", &ks_kernel_state, CONTROL, NOW, .text = "A kernel changed its state."),
	EVENT("kernel/output", &ks_kernel_output, WORK, NOW, .text = "Bytes between cells."),

	CALL("shell/open", &ks_shell_open_params, &ks_shell_open_result, WORK, NOW,
	     ERRORS(KS_E_LIMIT, KS_E_UNKNOWN_HANDLE, KS_E_DUPLICATE_HANDLE, KS_E_BUSY, KS_E_HOST_UNSUPPORTED, KS_E_START_FAILED,
		    KS_E_PLUGIN_ERROR, KS_E_UNKNOWN_LANGUAGE, KS_E_CANCELLED),
	     .text = "Starts a shell that keeps its state between commands."),
	CALL("shell/run", &ks_shell_run_params, &ks_shell_run_result, WORK, NOW,
	     ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_DUPLICATE_HANDLE, KS_E_BUSY, KS_E_SHELL_DEAD, KS_E_CANCELLED),
	     .text = "Runs a command in a shell of mode pipes."),
	CALL("shell/write", &ks_shell_write_params, &ks_nothing, CONTROL, NOW,
	     ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_SHELL_DEAD), .text = "Types into a shell of mode pty."),
	CALL("shell/resize", &ks_shell_resize_params, &ks_nothing, CONTROL, NOW,
	     ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_SHELL_DEAD),
	     .text = "Tells a shell of mode pty the size of its terminal."),
	CALL("shell/signal", &ks_shell_signal_params, &ks_nothing, CONTROL, NOW,
	     ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_SHELL_DEAD), .text = "Sends a signal to the job in front."),
	CALL("shell/close", &ks_shell_handle_params, &ks_nothing, WORK, NOW, ERRORS(KS_E_UNKNOWN_HANDLE),
	     .text = "Ends a shell."),
	EVENT("shell/output", &ks_shell_output, WORK, NOW,
	      .text = "Bytes outside any command; everything of a terminal."),
	EVENT("shell/exited", &ks_shell_exited, WORK, NOW, .text = "A shell ended; it is not restarted."),

	CALL("file/read", &ks_file_read_params, &ks_file_read_result, WORK, NOW,
	     ERRORS(PATH_ERRORS, KS_E_IS_DIRECTORY, KS_E_NOT_REGULAR, KS_E_TOO_LARGE),
	     .text = "Reads a file of the workspace."),
	CALL("file/write", &ks_file_write_params, &ks_file_write_result, WORK, NOW,
	     ERRORS(CHANGE_ERRORS, KS_E_IS_DIRECTORY, KS_E_NOT_REGULAR, KS_E_EXISTS, KS_E_CHANGED, KS_E_TOO_LARGE, KS_E_GONE),
	     .text = "Writes a file: whole or not at all."),
	CALL("file/stat", &ks_file_path_params, &ks_file_stat_result, WORK, NOW, ERRORS(PATH_ERRORS),
	     .text = "Looks at a file."),
	CALL("file/list", &ks_file_list_params, &ks_file_list_result, WORK, NOW, ERRORS(PATH_ERRORS),
	     .text = "Lists a directory."),
	CALL("file/mkdir", &ks_file_mkdir_params, &ks_nothing, WORK, NOW, ERRORS(CHANGE_ERRORS, KS_E_EXISTS),
	     .text = "Makes a directory."),
	CALL("file/move", &ks_file_move_params, &ks_nothing, WORK, NOW,
	     ERRORS(CHANGE_ERRORS, KS_E_EXISTS, KS_E_NOT_EMPTY, KS_E_IS_DIRECTORY), .text = "Moves a file or directory."),
	CALL("file/remove", &ks_file_remove_params, &ks_nothing, WORK, NOW,
	     ERRORS(CHANGE_ERRORS, KS_E_NOT_EMPTY, KS_E_CHANGED), .text = "Removes a file or directory."),
	CALL("file/edit", &ks_file_edit_params, &ks_file_edit_result, WORK, NOW,
	     ERRORS(CHANGE_ERRORS, KS_E_IS_DIRECTORY, KS_E_NOT_REGULAR, KS_E_TOO_LARGE, KS_E_CHANGED,
		    KS_E_EDIT_NO_MATCH, KS_E_EDIT_NOT_UNIQUE),
	     .text = "Replaces pieces of text, all or nothing."),
	CALL("file/glob", &ks_file_glob_params, &ks_file_glob_result, WORK, NOW, ERRORS(PATH_ERRORS, KS_E_LIMIT),
	     .text = "Finds names."),
	CALL("file/search", &ks_file_search_params, &ks_file_search_result, WORK, NOW,
	     ERRORS(PATH_ERRORS, KS_E_NOT_REGULAR, KS_E_LIMIT),
	     .text = "Finds text."),

	CALL("image/list", &ks_no_params, &ks_images_result, WORK, LATER, NO_ERRORS,
	     .text = "The images of the store."),
	CALL("image/pull", &ks_image_ref_params, &ks_image_result, WORK, LATER,
	     ERRORS(KS_E_IMAGE_NOT_FOUND, KS_E_IMAGE_INVALID, KS_E_DIGEST_MISMATCH, KS_E_PULL_FAILED, KS_E_NO_SPACE,
		    KS_E_CANCELLED),
	     .text = "Gets an image from its registry."),
	CALL("image/import", &ks_image_import_params, &ks_image_result, WORK, LATER,
	     ERRORS(KS_E_IMAGE_NOT_FOUND, KS_E_IMAGE_INVALID, KS_E_DIGEST_MISMATCH, KS_E_NO_SPACE, KS_E_CANCELLED),
	     .text = "Puts an image of the host into the store."),
	CALL("image/remove", &ks_image_ref_params, &ks_nothing, WORK, LATER, ERRORS(KS_E_IMAGE_NOT_FOUND, KS_E_BUSY),
	     .text = "Takes an image out of the store."),
	CALL("host/doctor", &ks_no_params, &ks_doctor_result, WORK, NOW, NO_ERRORS,
	     .text = "Can this host run boxes, and how well?"),
	CALL("profiles/list", &ks_no_params, &ks_profiles_result, WORK, LATER, NO_ERRORS, .text = "The profiles."),
	CALL("plugin/list", &ks_no_params, &ks_plugins_result, CONTROL, NOW, NO_ERRORS,
	     .text = "All plugins that were found."),
	CALL("stats/get", &ks_no_params, &ks_stats_result, CONTROL, NOW, NO_ERRORS, .text = "Counters."),
	CALL("rpc/schema", &ks_schema_params, &ks_schema_result, CONTROL, NOW, NO_ERRORS, .before_initialize = true,
	     .text = "The schema of this very build."),
	CALL("render", &ks_render_params, &ks_render_result, WORK, NOW, ERRORS(KS_E_UNKNOWN_HANDLE, KS_E_GONE),
	     .text = "Text that is safe to show a model."),
};

const struct ks_method *ks_method_at(size_t i)
{
	return i < KS_COUNT(methods) ? &methods[i] : NULL;
}

const struct ks_method *ks_method_find(const char *name)
{
	for (size_t i = 0; i < KS_COUNT(methods); i++)
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	return NULL;
}

static const char *method_name_at(const void *arg, size_t i)
{
	(void)arg;
	return i < KS_COUNT(methods) ? methods[i].name : NULL;
}

const struct ks_method *ks_method_for_client(const char *name, bool has_id, struct ks_error *err)
{
	const struct ks_method *method = ks_method_find(name);

	if (method && method->supported && method->side == KS_FROM_CLIENT) {
		if (has_id == (method->kind == KS_REQUEST))
			return method;
		(void)ks_fail(err, KS_E_INVALID_REQUEST,
			      has_id ? "%s is a notification: send it without id" : "%s needs an id", name);
		return NULL;
	}
	if (method && method->side == KS_FROM_SERVER) {
		(void)ks_fail(err, KS_E_UNKNOWN_METHOD, "%s is sent by the server only", name);
	} else if (method) {
		(void)ks_fail(err, KS_E_UNKNOWN_METHOD, "%s is not in this build", name);
	} else {
		const char *guess = ks_did_you_mean(name, method_name_at, NULL);
		(void)ks_fail(err, KS_E_UNKNOWN_METHOD, "there is no method \"%.40s\"", name);
		if (guess)
			(void)ks_error_hint(err, "did you mean \"%s\"?", guess);
	}
	return NULL;
}
