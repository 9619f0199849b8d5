/* messages_kernel.c: tables of kernels and of shells. */
#include "proto/messages.h"
#include "proto/tables.h"


static const struct ks_field kernel_open_fields[] = {
	{ KS_STRING("kernelId", struct ks_kernel_open_params, kernel_id), KS_HANDLE_RULE,
	  .text = "Chosen by the client; absent: by the server." },
	{ KS_STRING("sessionId", struct ks_kernel_open_params, session_id), KS_MUST, KS_HANDLE_RULE, .text = "The session." },
	{ KS_STRING("language", struct ks_kernel_open_params, language), .min = 1, .max = 32, .pattern = KS_P_LANGUAGE,
	  .fallback = "\"python\"", .text = "Its language." },
	{ KS_INT("timeoutMs", struct ks_kernel_open_params, timeout_ms), .min = 1, .max = KS_MAX_TIMEOUT_MS, .unit = "ms",
	  .text = "Deadline of each cell; absent: the session's." },
	{ KS_PAIRS("env", struct ks_kernel_open_params, env), .max = 256, .item_max = KS_WORD_BYTES,
	  .key_pattern = KS_P_ENV_NAME, .pattern = KS_P_ONE_LINE, .text = "Added to the session's environment." },
	{ KS_STRING("cwd", struct ks_kernel_open_params, cwd), .min = 1, .max = KS_PATH_BYTES,
	  .text = "Working directory; absent: the session's." },
	{ KS_INT("memoryMb", struct ks_kernel_open_params, memory_mb), .min = 4, .max = KS_MAX_MEMORY_MB, .unit = "MiB",
	  .text = "Cap of the kernel and all that its cells start; absent: the session's." },
};
KS_PARAMS(ks_kernel_open_params, "KernelOpenParams", kernel_open_fields, .size = sizeof(struct ks_kernel_open_params),
	  .text = "An interpreter that keeps its state.");
static const struct ks_field kernel_open_result_fields[] = {
	KS_DOC(STRING, "kernelId", KS_MUST, .text = "The kernel."),
	KS_DOC(STRING, "language", KS_MUST, .text = "Its language."),
	KS_DOC(STRING, "interpreter", KS_MUST, .text = "Its path in the image."),
};
KS_TABLE(ks_kernel_open_result, "KernelOpenResult", kernel_open_result_fields, .text = "The kernel.");

static const struct ks_field cell_render_fields[] = {
	{ KS_INT("maxChars", struct ks_kernel_run_params, render_max_chars), KS_MUST, .min = KS_MIN_RENDER_CHARS,
	  .max = KS_MAX_RENDER_CHARS, .text = "How many characters `rendered` may have." },
};
static KS_TABLE(cell_render_options, "CellRenderOptions", cell_render_fields, .text = "Ask for `rendered`.");

static const struct ks_field kernel_run_fields[] = {
	{ KS_STRING("runId", struct ks_kernel_run_params, run_id), KS_HANDLE_RULE,
	  .text = "Chosen by the client; absent: by the server." },
	{ KS_STRING("kernelId", struct ks_kernel_run_params, kernel_id), KS_MUST, KS_HANDLE_RULE, .text = "The kernel." },
	{ KS_TEXT("code", struct ks_kernel_run_params, code), KS_MUST, .max = KS_CODE_BYTES, .text = "The cell." },
	{ KS_INT("timeoutMs", struct ks_kernel_run_params, timeout_ms), .min = 1, .max = KS_MAX_TIMEOUT_MS, .unit = "ms",
	  .text = "Deadline: the cell is interrupted (SIGINT, and again after 500 ms), after 1 s the kernel is killed; absent: the kernel's." },
	{ KS_BOOL("allowInput", struct ks_kernel_run_params, allow_input), .fallback = "false",
	  .text = "The cell has an open stdin, which run/stdin writes to; what it asks for comes as run/inputWanted. Else its stdin is at its end." },
	{ KS_ENUM("stream", struct ks_kernel_run_params, stream, ks_stream_words), .fallback = "\"off\"", .text = "As in run/code." },
	{ KS_ENUM("encoding", struct ks_kernel_run_params, encoding, ks_encoding_words), .fallback = "\"utf8\"",
	  .text = "As in run/code." },
	{ KS_STRING("filename", struct ks_kernel_run_params, filename), .min = 1, .max = 1024,
	  .text = "Its name in messages; absent: [cell N]." },
	{ KS_FLAT("render", &cell_render_options), KS_PRESENT(struct ks_kernel_run_params, has_render), .text = "Ask for `rendered`." },
};
KS_PARAMS(ks_kernel_run_params, "KernelRunParams", kernel_run_fields, .size = sizeof(struct ks_kernel_run_params), .text = "A cell.");
static const char *const cell_words[] = { "ok", "error", "interrupted", "dead", NULL };
static const struct ks_field kernel_run_result_fields[] = {
	KS_DOC(WORD, "cellStatus", KS_MUST, .choices = cell_words, .text = "How the cell ended; a claim unless dead."),
	KS_DOC(INT, "executionCount", .text = "From 1."),
	KS_DOC(BOOL, "stateKept", KS_MUST, .text = "The kernel lives on."),
};
const struct ks_schema ks_kernel_run_result = { .name = "KernelRunResult",
						.text = "An ExecutionResult, and:",
						.parts = { { ks_run_result_fields, KS_RUN_RESULT_FIELDS },
							   KS_FIELDS(kernel_run_result_fields) } };

static const struct ks_field kernel_interrupt_fields[] = {
	{ KS_STRING("kernelId", struct ks_kernel_interrupt_params, kernel_id), KS_MUST, KS_HANDLE_RULE, .text = "The kernel." },
	{ KS_STRING("runId", struct ks_kernel_interrupt_params, run_id), KS_HANDLE_RULE, .text = "Only when this run is the one." },
};
KS_PARAMS(ks_kernel_interrupt_params, "KernelInterruptParams", kernel_interrupt_fields,
	  .size = sizeof(struct ks_kernel_interrupt_params), .text = "Which kernel.");
static const struct ks_field kernel_interrupt_result_fields[] = {
	KS_DOC(BOOL, "running", KS_MUST, .text = "Something was running."),
};
KS_TABLE(ks_kernel_interrupt_result, "KernelInterruptResult", kernel_interrupt_result_fields, .text = "At once.");

static const struct ks_field kernel_handle_fields[] = {
	{ KS_STRING("kernelId", struct ks_kernel_handle_params, kernel_id), KS_MUST, KS_HANDLE_RULE, .text = "The kernel." },
};
KS_PARAMS(ks_kernel_handle_params, "KernelHandleParams", kernel_handle_fields, .size = sizeof(struct ks_kernel_handle_params),
	  .text = "Which kernel.");

static const char *const state_words[] = { "idle", "busy", "dead", NULL };
static const struct ks_field kernel_item_fields[] = {
	KS_DOC(STRING, "kernelId", KS_MUST, .text = "The kernel."),
	KS_DOC(STRING, "sessionId", KS_MUST, .text = "Its session."),
	KS_DOC(STRING, "language", KS_MUST, .text = "Its language."),
	KS_DOC(WORD, "state", KS_MUST, .choices = state_words, .text = "What it is doing."),
};
static KS_TABLE(kernel_item, "KernelItem", kernel_item_fields, .text = "A kernel.");
static const struct ks_field kernel_list_fields[] = {
	KS_DOC(LIST, "kernels", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &kernel_item,
	       .text = "In the order of opening."),
};
KS_TABLE(ks_kernel_list_result, "KernelListResult", kernel_list_fields, .text = "The kernels.");

static const struct ks_field kernel_state_fields[] = {
	KS_DOC(STRING, "kernelId", KS_MUST, .text = "The kernel."),
	KS_DOC(WORD, "state", KS_MUST, .choices = state_words, .text = "What it does now."),
	KS_DOC(OBJECT, "fault", .sub = &ks_fault, .text = "Why it is dead."),
};
KS_TABLE(ks_kernel_state, "KernelState", kernel_state_fields, .text = "A kernel changed its state.");

#define OUTPUT                                                                                                         \
	KS_DOC(WORD, "stream", KS_MUST, .choices = ks_output_words, .text = "Which."),                                 \
		KS_DOC(STRING, "text", .text = "The bytes as text; a code point is never split."),                     \
		KS_DOC(BASE64, "base64", .text = "Instead of text.")

static const struct ks_field kernel_output_fields[] = { KS_DOC(STRING, "kernelId", KS_MUST, .text = "The kernel."),
							OUTPUT };
KS_TABLE(ks_kernel_output, "KernelOutput", kernel_output_fields, .text = "Bytes between cells.");

static const struct ks_field input_wanted_fields[] = {
	KS_DOC(STRING, "runId", KS_MUST, .text = "The run; answer with run/stdin."),
	KS_DOC(STRING, "prompt", KS_MUST, .text = "What to show."),
	KS_DOC(BOOL, "password", KS_MUST, .text = "Do not show what is typed."),
};
KS_TABLE(ks_input_wanted, "InputWanted", input_wanted_fields, .text = "The code waits for a line.");

/* ---- shells ---- */

#define SHELL(T) { KS_STRING("shellId", T, shell_id), KS_MUST, KS_HANDLE_RULE, .text = "The shell." }
#define ROWS(T) KS_INT("rows", T, rows), .min = 1, .max = 1000, .unit = "lines"
#define COLS(T) KS_INT("cols", T, cols), .min = 1, .max = 1000, .unit = "columns"

static const char *const mode_words[] = { "pipes", "pty", NULL };
static const struct ks_field shell_open_fields[] = {
	{ KS_STRING("shellId", struct ks_shell_open_params, shell_id), KS_HANDLE_RULE,
	  .text = "Chosen by the client; absent: by the server." },
	{ KS_STRING("sessionId", struct ks_shell_open_params, session_id), KS_MUST, KS_HANDLE_RULE, .text = "The session." },
	{ KS_STRINGS("argv", struct ks_shell_open_params, argv), .min = 1, .max = 1024, .item_max = KS_WORD_BYTES,
	  .text = "The shell; absent: bash, else sh. Of mode pipes one word: bash, sh, dash or ash, or a path to one of them." },
	{ KS_ENUM("mode", struct ks_shell_open_params, mode, mode_words), .fallback = "\"pipes\"",
	  .text = "Commands with results, or a terminal." },
	{ ROWS(struct ks_shell_open_params), .fallback = "24", .text = "Of the terminal." },
	{ COLS(struct ks_shell_open_params), .fallback = "80", .text = "Of the terminal." },
	{ KS_PAIRS("env", struct ks_shell_open_params, env), .max = 256, .item_max = KS_WORD_BYTES,
	  .key_pattern = KS_P_ENV_NAME, .pattern = KS_P_ONE_LINE, .text = "Added to the session's environment. TERM of a terminal: xterm-256color." },
	{ KS_STRING("cwd", struct ks_shell_open_params, cwd), .min = 1, .max = KS_PATH_BYTES,
	  .text = "Working directory; absent: the session's." },
};
KS_PARAMS(ks_shell_open_params, "ShellOpenParams", shell_open_fields, .size = sizeof(struct ks_shell_open_params),
	  .text = "A shell that keeps its state.");
static const struct ks_field shell_open_result_fields[] = { KS_DOC(STRING, "shellId", KS_MUST, .text = "The shell.") };
KS_TABLE(ks_shell_open_result, "ShellOpenResult", shell_open_result_fields, .text = "The shell.");

static const struct ks_field shell_run_fields[] = {
	{ KS_STRING("runId", struct ks_shell_run_params, run_id), KS_HANDLE_RULE, .text = "Chosen by the client; absent: by the server." },
	SHELL(struct ks_shell_run_params),
	{ KS_TEXT("command", struct ks_shell_run_params, command), KS_MUST, .min = 1, .max = KS_CODE_BYTES, .text = "What a person would type." },
	{ KS_TEXT("stdin", struct ks_shell_run_params, stdin_text), .max = KS_TEXT_BYTES, .text = "What the command reads; absent: nothing." },
	{ KS_INT("timeoutMs", struct ks_shell_run_params, timeout_ms), .min = 1, .max = KS_MAX_TIMEOUT_MS, .unit = "ms",
	  .text = "Deadline: the job is interrupted (SIGINT, and again after 500 ms), after 1 s the shell is killed; absent: the session's." },
	{ KS_ENUM("stream", struct ks_shell_run_params, stream, ks_stream_words), .fallback = "\"off\"", .text = "As in run/code." },
	{ KS_BOOL("merge", struct ks_shell_run_params, merge), .fallback = "false", .text = "As in run/code." },
};
KS_PARAMS(ks_shell_run_params, "ShellRunParams", shell_run_fields, .size = sizeof(struct ks_shell_run_params), .text = "A command.");
static const struct ks_field shell_run_result_fields[] = {
	KS_DOC(BOOL, "stateKept", KS_MUST, .text = "The shell lives on."),
};
const struct ks_schema ks_shell_run_result = { .name = "ShellRunResult",
					       .text = "An ExecutionResult, and:",
					       .parts = { { ks_run_result_fields, KS_RUN_RESULT_FIELDS },
							  KS_FIELDS(shell_run_result_fields) } };

static int check_shell_write(const void *params, struct ks_error *err)
{
	const struct ks_shell_write_params *input = params;

	return input->text.present ? 0 : ks_fail_at(err, KS_E_MISSING, "/text", "text or base64 is required");
}

static const struct ks_field shell_write_fields[] = {
	SHELL(struct ks_shell_write_params),
	{ KS_UTF8("text", struct ks_shell_write_params, text), .max = 1 << 20, .text = "What to type." },
	{ KS_BASE64("base64", struct ks_shell_write_params, text), .max = 1 << 20, .text = "The same as bytes." },
};
const struct ks_schema ks_shell_write_params = { .name = "ShellWriteParams",
						 .text = "Input for a terminal.",
						 .size = sizeof(struct ks_shell_write_params),
						 .parts = { KS_FIELDS(shell_write_fields), KS_FIELDS(ks_request_fields) },
						 .check = check_shell_write,
						 .rule = "Exactly one of text and base64." };
static const struct ks_field shell_resize_fields[] = {
	SHELL(struct ks_shell_resize_params),
	{ ROWS(struct ks_shell_resize_params), KS_MUST, .text = "Of the terminal." },
	{ COLS(struct ks_shell_resize_params), KS_MUST, .text = "Of the terminal." },
};
KS_PARAMS(ks_shell_resize_params, "ShellResizeParams", shell_resize_fields, .size = sizeof(struct ks_shell_resize_params),
	  .text = "The terminal's new size.");
static const struct ks_field shell_signal_fields[] = {
	SHELL(struct ks_shell_signal_params),
	{ KS_STRING("signal", struct ks_shell_signal_params, signal), KS_MUST, .min = 1, .max = 16, .pattern = KS_P_SIGNAL, .text = "Without SIG." },
};
KS_PARAMS(ks_shell_signal_params, "ShellSignalParams", shell_signal_fields, .size = sizeof(struct ks_shell_signal_params),
	  .text = "A signal for the job in front.");
static const struct ks_field shell_handle_fields[] = { SHELL(struct ks_shell_handle_params) };
KS_PARAMS(ks_shell_handle_params, "ShellHandleParams", shell_handle_fields, .size = sizeof(struct ks_shell_handle_params),
	  .text = "Which shell.");

static const struct ks_field shell_output_fields[] = { KS_DOC(STRING, "shellId", KS_MUST, .text = "The shell."),
						       OUTPUT };
KS_TABLE(ks_shell_output, "ShellOutput", shell_output_fields,
	 .text = "Bytes outside any command; everything of a terminal.");
static const struct ks_field shell_exited_fields[] = {
	KS_DOC(STRING, "shellId", KS_MUST, .text = "The shell."),
	KS_DOC(INT, "exitCode", KS_MUST, .text = "Its exit code."),
	KS_DOC(STRING, "signal", .text = "What killed it, without SIG."),
};
KS_TABLE(ks_shell_exited, "ShellExited", shell_exited_fields, .text = "A shell ended; it is not restarted.");
