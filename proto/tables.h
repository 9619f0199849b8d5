/* tables.h: the message tables and the runs of fields that several of them share. Included by messages_*.c, methods.c,
 * tests. */
#pragma once

#include "proto/field.h"

/* A field of a message that is described and validated but has no C struct: results, notifications, later methods. */
#define KS_DOC(type_name, wire, ...)                                                                                   \
	{                                                                                                              \
		.name = (wire), .type = KS_T_##type_name, __VA_ARGS__                                                  \
	}
#define KS_MUST .flags = KS_F_REQUIRED
#define KS_TABLE(symbol, wire_name, table, ...)                                                                        \
	const struct ks_schema symbol = { .name = (wire_name), .parts = { KS_FIELDS(table) }, __VA_ARGS__ }

/* The same for params of a request, which also take what any request may carry. */
#define KS_PARAMS(symbol, wire_name, table, ...)                                                                       \
	const struct ks_schema symbol = { .name = (wire_name),                                                         \
					  .parts = { KS_FIELDS(table), KS_FIELDS(ks_request_fields) },                 \
					  __VA_ARGS__ }

#define KS_PATH_BYTES 4095 /* PATH_MAX (linux/limits.h) without its NUL */
#define KS_WORD_BYTES                                                                                                  \
	131071 /* one word of argv or of the environment: MAX_ARG_STRLEN (linux/binfmts.h) without its NUL */
#define KS_COMMAND_BYTES 65536 /* of a setup: it becomes a word of argv, with a little of ours around it */
#define KS_CODE_BYTES (4 << 20)
#define KS_TEXT_BYTES (8 << 20) /* a text as large as a line: more goes through blob/write */
#define KS_HANDLE_RULE .min = 1, .max = 64, .pattern = KS_P_HANDLE
#define KS_EXACT (INT64_C(1) << 53) /* the largest integer of the protocol */
#define KS_MAX_TIMEOUT_MS 86400000
#define KS_MAX_MEMORY_MB 1048576
#define KS_MAX_CPUS_MILLI 1024000
#define KS_MAX_PIDS 4194304 /* PID_MAX_LIMIT (linux/threads.h) */
#define KS_MAX_OUTPUT_BYTES (1 << 30)
#define KS_MIN_RENDER_CHARS 500 /* room for what we say about a result */
#define KS_MAX_RENDER_CHARS 262144

extern const struct ks_field ks_request_fields[1]; /* what any request may carry */
extern const char *const ks_encoding_words[], *const ks_stream_words[], *const ks_output_words[];
extern const char *const ks_link_words[];
#define KS_FILE_TYPES 6
extern const char *const ks_file_type_words[KS_FILE_TYPES + 1];

/* {} of a request, of a client's notification, of a result */
extern const struct ks_schema ks_no_params, ks_no_fields, ks_nothing;
extern const struct ks_schema ks_rpc_error; /* the error member of a reply */

/* messages_base.c */
extern const struct ks_schema ks_initialize_params, ks_initialize_result, ks_shutdown_params, ks_schema_params,
	ks_schema_result, ks_cancel_params, ks_progress, ks_log_params, ks_stats_result, ks_plugins_result,
	ks_profiles_result, ks_render_params, ks_render_result, ks_doctor_result, ks_images_result, ks_image_ref_params,
	ks_image_import_params, ks_image_result, ks_blob_read_params, ks_blob_read_result, ks_blob_write_params,
	ks_blob_write_result, ks_blob_free_params;

/* messages_session.c */
extern const struct ks_schema ks_session_params, ks_session_open_params, ks_session_open_result,
	ks_session_handle_params, ks_session_list_result, ks_session_setup_params, ks_session_setup_result,
	ks_session_snapshot_params, ks_session_snapshot_result, ks_session_restore_params, ks_session_restore_result,
	ks_session_closed;

/* messages_run.c */
extern const struct ks_schema ks_run_code_params, ks_run_argv_params, ks_run_result, ks_run_started, ks_run_output,
	ks_run_display, ks_run_stdin_params, ks_run_signal_params, ks_run_credit_params, ks_output_read_params,
	ks_output_read_result, ks_fault;
#define KS_RUN_RESULT_FIELDS 20
extern const struct ks_field ks_run_result_fields[KS_RUN_RESULT_FIELDS];

/* messages_kernel.c */
extern const struct ks_schema ks_kernel_open_params, ks_kernel_open_result, ks_kernel_run_params, ks_kernel_run_result,
	ks_kernel_interrupt_params, ks_kernel_interrupt_result, ks_kernel_handle_params, ks_kernel_list_result,
	ks_kernel_state, ks_kernel_output, ks_input_wanted, ks_shell_open_params, ks_shell_open_result,
	ks_shell_run_params, ks_shell_run_result, ks_shell_write_params, ks_shell_resize_params, ks_shell_signal_params,
	ks_shell_handle_params, ks_shell_output, ks_shell_exited;

/* messages_file.c */
extern const struct ks_schema ks_file_read_params, ks_file_read_result, ks_file_write_params, ks_file_write_result,
	ks_file_path_params, ks_file_stat_result, ks_file_list_params, ks_file_list_result, ks_file_mkdir_params,
	ks_file_move_params, ks_file_remove_params, ks_file_edit_params, ks_file_edit_result, ks_file_glob_params,
	ks_file_glob_result, ks_file_search_params, ks_file_search_result;
