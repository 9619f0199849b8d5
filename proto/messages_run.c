/* messages_run.c: tables of run/code and run/argv, the ExecutionResult, the streams of a run. */
#include "proto/tables.h"

#define LATER .flags = KS_F_UNSUPPORTED /* not in this build: take the flag off when it is */

/* ---- run/code, run/argv ---- */

#define T struct ks_run_params

static const struct ks_field render_fields[] = {
	{ KS_INT("maxChars", T, render_max_chars), KS_MUST, .min = KS_MIN_RENDER_CHARS, .max = KS_MAX_RENDER_CHARS,
	  .text = "How many characters `rendered` may have." },
};
static KS_TABLE(render_options, "RenderOptions", render_fields, .text = "Ask for `rendered`.");

static const struct ks_field who_fields[] = {
	{ KS_STRING("runId", T, run_id), KS_HANDLE_RULE, .text = "Chosen by the client; absent: by the server." },
	{ KS_STRING("sessionId", T, session_id), KS_HANDLE_RULE, .text = "The session; absent: a throw-away one." },
	{ KS_OBJECT("session", T, session, struct ks_session_params, &ks_session_params), KS_PRESENT(T, has_session),
	  .text = "What the throw-away session is like." },
};

static const struct ks_field code_fields[] = {
	{ KS_STRING("language", T, language), .flags = KS_F_CLI, .min = 1, .max = 32, .pattern = KS_P_LANGUAGE,
	  .fallback = "\"python\"", .text = "The language of the code." },
	{ KS_TEXT("code", T, code), KS_MUST, .max = KS_CODE_BYTES, .text = "The program." },
	{ KS_STRING("filename", T, filename), .min = 1, .max = KS_PATH_BYTES,
	  .text = "Its name in messages and tracebacks." },
	{ KS_INT("firstLine", T, first_line), .min = 1, .max = INT32_MAX,
	  .text = "The number of its first line there." },
	{ KS_STRINGS("args", T, args), .max = 1024, .item_max = KS_WORD_BYTES,
	  .text = "What the program finds behind its name." },
};

static const struct ks_field argv_fields[] = {
	{ KS_STRINGS("argv", T, argv), KS_MUST, .min = 1, .max = 1024, .item_max = KS_WORD_BYTES,
	  .text = "The program, searched in PATH when it has no slash, and its arguments." },
};

static const struct ks_field run_fields[] = {
	{ KS_INT("timeoutMs", T, timeout_ms), .min = 1, .max = KS_MAX_TIMEOUT_MS, .unit = "ms",
	  .text = "Deadline from the start of the main process; absent: the session's." },
	{ KS_PAIRS("env", T, env), .max = 256, .item_max = KS_WORD_BYTES, .key_pattern = KS_P_ENV_NAME,
	  .pattern = KS_P_ONE_LINE, .text = "Added to the session's environment." },
	{ KS_STRING("cwd", T, cwd), .min = 1, .max = KS_PATH_BYTES,
	  .text = "Working directory; absent: the session's." },
	{ KS_TEXT("stdin", T, stdin_text), .max = KS_TEXT_BYTES, .text = "What the program reads, then end of file." },
	{ KS_BOOL("interactive", T, interactive), .fallback = "false", .text = "Keeps stdin open for run/stdin." },
	{ KS_STRING("user", T, user), LATER | KS_F_RELAXES, .min = 1, .max = 64,
	  .text = "Who the code runs as in the box." },
	{ KS_INT("memoryMb", T, memory_mb), .min = 4, .max = KS_MAX_MEMORY_MB, .unit = "MiB",
	  .text = "Absent: the session's." },
	{ KS_INT("cpusMilli", T, cpus_milli), .min = 10, .max = KS_MAX_CPUS_MILLI, .unit = "1/1000 CPU",
	  .text = "Absent: the session's." },
	{ KS_INT("pids", T, pids), .min = 1, .max = KS_MAX_PIDS, .text = "Absent: the session's." },
	{ KS_INT("maxOutputBytes", T, max_output_bytes), .min = 1, .max = KS_MAX_OUTPUT_BYTES, .unit = "bytes",
	  .text = "How much output is kept; absent: the session's." },
	{ KS_TRISTATE("trackFiles", T, track_files), .text = "Report changed files; absent: the session's." },
	{ KS_BOOL("merge", T, merge), .fallback = "false",
	  .text = "One pipe for stdout and stderr, all in `stdout`, in true order." },
	{ KS_ENUM("encoding", T, encoding, ks_encoding_words), .fallback = "\"utf8\"",
	  .text = "utf8 replaces invalid bytes, auto turns to base64 when there are any." },
	{ KS_ENUM("stream", T, stream, ks_stream_words), .fallback = "\"off\"", .text = "run/output while it runs." },
	{ KS_FLAT("render", &render_options), KS_PRESENT(T, has_render), .text = "Ask for `rendered`." },
};

static int check_run(const void *params, struct ks_error *err)
{
	const struct ks_run_params *run = params;

	if (run->session_id && run->has_session)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/session", "sessionId and session cannot both be given");
	if (run->stdin_text.present && run->interactive)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/interactive",
				  "stdin and interactive cannot both be given; send the text by run/stdin");
	return 0;
}
#define RUN_RULE "At most one of sessionId and session; at most one of stdin and interactive."

const struct ks_schema ks_run_code_params = {
	.name = "RunCodeParams",
	.text = "Code to run in a fresh box.",
	.size = sizeof(T),
	.parts = { KS_FIELDS(who_fields), KS_FIELDS(code_fields), KS_FIELDS(run_fields), KS_FIELDS(ks_request_fields) },
	.check = check_run,
	.rule = RUN_RULE,
};
const struct ks_schema ks_run_argv_params = {
	.name = "RunArgvParams",
	.text = "A program to run in a fresh box.",
	.size = sizeof(T),
	.parts = { KS_FIELDS(who_fields), KS_FIELDS(argv_fields), KS_FIELDS(run_fields), KS_FIELDS(ks_request_fields) },
	.check = check_run,
	.rule = RUN_RULE,
};
#undef T

/* ---- ExecutionResult ---- */

static const char *const fault_words[] = { "cancelled",	  "timeout", "oom",    "escape_blocked",
					   "exec_failed", "disk",    "killed", NULL };
static const struct ks_field fault_fields[] = {
	KS_DOC(WORD, "type", KS_MUST, .choices = fault_words,
	       .text = "What happened; the first of this list that did."),
	KS_DOC(STRING, "message", KS_MUST, .text = "For a person."),
	KS_DOC(STRING, "syscall", .text = "The system call that was refused."),
	KS_DOC(STRING, "process", .text = "The program that made it."),
	KS_DOC(STRING, "limit", .text = "The limit that was hit."),
	KS_DOC(STRING, "step", .text = "The set-up step that failed."),
};
KS_TABLE(ks_fault, "Fault", fault_fields, .text = "What the sandbox did to the call, from kernel facts only.");

static const struct ks_field note_fields[] = {
	KS_DOC(STRING, "code", KS_MUST, .text = "Stable, in lower snake_case."),
	KS_DOC(STRING, "message", KS_MUST, .text = "For a person."),
};
static KS_TABLE(note, "RuntimeNote", note_fields, .text = "Something about the box, not about the code.");

static const char *const change_words[] = { "created", "modified", "deleted", NULL };
static const struct ks_field file_fields[] = {
	KS_DOC(STRING, "path", .text = "Relative to the workspace."),
	KS_DOC(BASE64, "pathBase64", .text = "Instead of path, when it is not UTF-8."),
	KS_DOC(WORD, "change", KS_MUST, .choices = change_words, .text = "Between the start and the end of the call. modified: the content, or "
		"only times, mode, owner or number of names (compare sha256)."),
	KS_DOC(INT, "size", .unit = "bytes", .text = "At the end; absent for deleted files."),
	KS_DOC(STRING, "mime", .text = "Guessed from name and content."),
	KS_DOC(STRING, "sha256", .text = "Of the content, for small files."),
};
static KS_TABLE(file, "ChangedFile", file_fields, .text = "A file of the workspace that changed, whoever did it.");

static const struct ks_field at_fields[] = {
	KS_DOC(INT, "stdout", KS_MUST, .unit = "bytes", .text = "Bytes of stdout before it."),
	KS_DOC(INT, "stderr", KS_MUST, .unit = "bytes", .text = "Bytes of stderr before it."),
};
static KS_TABLE(result_at, "ResultPlace", at_fields, .text = "Where in the output it came.");
static const struct ks_field dropped_fields[] = {
	KS_DOC(STRING, "mime", KS_MUST, .text = "The form that was dropped."),
	KS_DOC(STRING, "reason", KS_MUST, .text = "Why."),
};
static KS_TABLE(dropped, "DroppedData", dropped_fields, .text = "A form of a result that was left out.");

static const char *const kind_words[] = { "display", "value", "figure", "update", NULL };
static const struct ks_field rich_fields[] = {
	KS_DOC(WORD, "kind", KS_MUST, .choices = kind_words, .text = "Shown, or the value of the last expression."),
	KS_DOC(TEXTS, "data", KS_MUST, .text = "By MIME type; image data is base64, JSON is JSON text."),
	KS_DOC(OPEN, "metadata", .text = "By MIME type."),
	KS_DOC(STRING, "displayId", .text = "For later updates."),
	KS_DOC(INT, "seq", KS_MUST, .text = "Order within the run."),
	KS_DOC(OBJECT, "at", KS_MUST, .sub = &result_at, .text = "Where in the output it came."),
	KS_DOC(LIST, "dropped", .sub = &dropped, .text = "Forms that were left out."),
};
static KS_TABLE(rich, "RichResult", rich_fields,
		.text = "A value, figure or display of the code; a claim of the code.");

static const struct ks_field frame_fields[] = {
	KS_DOC(STRING, "file", KS_MUST, .text = "File name."),
	KS_DOC(INT, "line", KS_MUST, .text = "From 1."),
	KS_DOC(INT, "column", .text = "From 1."),
	KS_DOC(STRING, "function", KS_MUST, .text = "Function name."),
	KS_DOC(STRING, "source", .text = "The line itself."),
};
static KS_TABLE(frame, "Frame", frame_fields, .text = "A place on the call stack.");

static const struct ks_schema code_error; /* its cause is another one */
static const struct ks_field code_error_fields[] = {
	KS_DOC(STRING, "name", KS_MUST, .text = "Its class."),
	KS_DOC(STRING, "message", KS_MUST, .text = "Its message."),
	KS_DOC(STRING, "phase", KS_MUST, .text = "When it happened: compile, run; display and thread: beside the code, which went on."),
	KS_DOC(LIST, "frames", KS_MUST, .sub = &frame, .text = "The innermost last."),
	KS_DOC(TEXT, "traceback", KS_MUST, .text = "As the language prints it; empty in a cause."),
	KS_DOC(OBJECT, "cause", .sub = &code_error, .text = "What it came from."),
};
static KS_TABLE(code_error, "CodeError", code_error_fields,
		.text = "The exception that ended the code; a claim of the code.");

static const struct ks_field usage_fields[] = {
	KS_DOC(INT, "wallUs", KS_MUST, .unit = "us", .text = "Time by the clock."),
	KS_DOC(INT, "cpuUserUs", KS_MUST, .unit = "us", .text = "CPU time in user mode."),
	KS_DOC(INT, "cpuSystemUs", KS_MUST, .unit = "us", .text = "CPU time in the kernel."),
	KS_DOC(INT, "memoryPeakBytes", KS_MUST, .unit = "bytes", .text = "Most memory at one time."),
	KS_DOC(INT, "processesPeak", .text = "Most processes at one time."),
	KS_DOC(INT, "pidsRefused", .text = "Forks refused by the cap."),
	KS_DOC(INT, "syscallsRefused", .text = "System calls refused as escapes."),
	KS_DOC(INT, "oomKills", .text = "Processes killed for memory."),
	KS_DOC(INT, "ioReadBytes", .unit = "bytes", .text = "Read from disks."),
	KS_DOC(INT, "ioWriteBytes", .unit = "bytes", .text = "Written to disks."),
};
static KS_TABLE(usage, "Usage", usage_fields, .text = "What the call used.");

static const char *const start_words[] = { "cold", "template", "spare", "zygote", NULL };
static const struct ks_field start_fields[] = {
	KS_DOC(WORD, "kind", KS_MUST, .choices = start_words, .text = "How the box was started."),
	KS_DOC(INT, "us", KS_MUST, .unit = "us", .text = "Until its main process was."),
};
static KS_TABLE(start, "Start", start_fields, .text = "How the box was started.");

static const char *const channel_words[] = { "ok", "closed", "corrupt", "limit", NULL };
const struct ks_field ks_run_result_fields[KS_RUN_RESULT_FIELDS] = {
	KS_DOC(STRING, "runId", KS_MUST, .text = "The run."),
	KS_DOC(TEXT, "stdout", KS_MUST, .text = "The code's own bytes only."),
	KS_DOC(TEXT, "stderr", KS_MUST, .text = "Likewise."),
	KS_DOC(INT, "exitCode", KS_MUST, .text = "Of the main process; 128+n when signal n ended it."),
	KS_DOC(STRING, "signal", .text = "That signal, without SIG."),
	KS_DOC(INT, "durationMs", KS_MUST, .unit = "ms", .text = "From the start of the main process."),
	KS_DOC(BOOL, "success", KS_MUST, .text = "Exit code 0 and no fault."),
	KS_DOC(OBJECT, "fault", .sub = &ks_fault, .text = "What the sandbox did to the call."),
	KS_DOC(LIST, "runtimeNotes", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &note, .text = "About the box."),
	KS_DOC(BOOL, "truncated", KS_MUST, .text = "Output beyond maxOutputBytes was not kept."),
	KS_DOC(INT, "stdoutBytes", KS_MUST, .unit = "bytes", .text = "All that was written."),
	KS_DOC(INT, "stderrBytes", KS_MUST, .unit = "bytes", .text = "All that was written."),
	KS_DOC(LIST, "files", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &file,
	       .text = "Regular files and links that changed between start and end, whoever changed them, bytewise by path. Empty with the "
		       "note files_untracked when there are more than 500,000 names, or too many for all calls together."),
	KS_DOC(BOOL, "filesTruncated", .text = "There were more."),
	KS_DOC(LIST, "results", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &rich,
	       .text = "The final view: updates applied."),
	KS_DOC(WORD, "resultChannel", KS_MUST, .choices = channel_words,
	       .text = "Whether results and error can be complete; closed: the code has closed the channel and gone on."),
	KS_DOC(OBJECT, "error", .flags = KS_F_MAY_BLOB, .sub = &code_error,
	       .text = "The exception that ended the code."),
	KS_DOC(OBJECT, "usage", KS_MUST, .sub = &usage, .text = "What the call used."),
	KS_DOC(OBJECT, "start", KS_MUST, .sub = &start, .text = "How the box was started."),
	KS_DOC(TEXT, "rendered", .text = "Model-safe text, when asked for."),
};
const struct ks_schema ks_run_result = { .name = "ExecutionResult",
					 .text = "What became of a run.",
					 .parts = { KS_FIELDS(ks_run_result_fields) } };

/* ---- streams ---- */

static const struct ks_field started_fields[] = {
	KS_DOC(STRING, "runId", KS_MUST, .text = "The run."),
	KS_DOC(ID, "id", KS_MUST, .text = "The request that it belongs to."),
	KS_DOC(STRING, "sessionId", .text = "Its session."),
	KS_DOC(STRING, "kernelId", .text = "Its kernel."),
	KS_DOC(STRING, "shellId", .text = "Its shell."),
};
KS_TABLE(ks_run_started, "RunStarted", started_fields, .text = "The main process is running.");

static const struct ks_field output_fields[] = {
	KS_DOC(STRING, "runId", KS_MUST, .text = "The run."),
	KS_DOC(INT, "seq", KS_MUST, .text = "From 0; one count for all of a run's output and displays."),
	KS_DOC(WORD, "stream", KS_MUST, .choices = ks_output_words, .text = "Which."),
	KS_DOC(INT, "offset", KS_MUST, .unit = "bytes",
	       .text = "Bytes of the stream before it; a gap shows what was dropped."),
	KS_DOC(INT, "bytes", KS_MUST, .unit = "bytes", .text = "Its own raw bytes."),
	KS_DOC(STRING, "text", .text = "The bytes as text; a code point is never split."),
	KS_DOC(BASE64, "base64", .text = "Instead of text."),
};
KS_TABLE(ks_run_output, "RunOutput", output_fields, .text = "A piece of output.");

static const char *const op_words[] = { "display", "update", "clear", "value", NULL };
static const struct ks_field display_fields[] = {
	KS_DOC(STRING, "runId", KS_MUST, .text = "The run."),
	KS_DOC(INT, "seq", KS_MUST, .text = "As in run/output."),
	KS_DOC(WORD, "op", KS_MUST, .choices = op_words, .text = "What to do."),
	KS_DOC(TEXTS, "data", .text = "By MIME type."),
	KS_DOC(OPEN, "metadata", .text = "By MIME type."),
	KS_DOC(STRING, "displayId", .text = "What to update."),
	KS_DOC(BOOL, "wait", .text = "Clear only when the next one comes."),
};
KS_TABLE(ks_run_display, "RunDisplay", display_fields, .text = "A rich result while the code runs.");

static int check_run_stdin(const void *params, struct ks_error *err)
{
	const struct ks_run_stdin_params *input = params;

	if (input->text.present || input->eof)
		return 0;
	return ks_fail_at(err, KS_E_MISSING, "/text", "text, base64 or eof is required");
}

#define RUN(T)                                                                                                         \
	{                                                                                                              \
		KS_STRING("runId", T, run_id), KS_MUST, KS_HANDLE_RULE, .text = "The run."                             \
	}

#define T struct ks_run_stdin_params
static const struct ks_field run_stdin_fields[] = {
	RUN(T),
	{ KS_UTF8("text", T, text), .max = 1 << 20, .text = "What the program reads next." },
	{ KS_BASE64("base64", T, text), .max = 1 << 20, .text = "The same as bytes." },
	{ KS_BOOL("eof", T, eof), .fallback = "false", .text = "That was all." },
};
#undef T
const struct ks_schema ks_run_stdin_params = { .name = "RunStdinParams",
					       .text = "Input for an interactive run.",
					       .size = sizeof(struct ks_run_stdin_params),
					       .parts = { KS_FIELDS(run_stdin_fields), KS_FIELDS(ks_request_fields) },
					       .check = check_run_stdin,
					       .rule = "At most one of text and base64; none only with eof." };

static const struct ks_field run_signal_fields[] = {
	RUN(struct ks_run_signal_params),
	{ KS_STRING("signal", struct ks_run_signal_params, signal), KS_MUST, .min = 1, .max = 16,
	  .pattern = KS_P_SIGNAL, .text = "Without SIG: TERM, KILL, INT, …" },
};
KS_PARAMS(ks_run_signal_params, "RunSignalParams", run_signal_fields, .text = "A signal for the main process.",
	  .size = sizeof(struct ks_run_signal_params));

static const struct ks_field run_credit_fields[] = {
	RUN(struct ks_run_credit_params),
	{ KS_INT("bytes", struct ks_run_credit_params, bytes), KS_MUST, .min = 1, .max = 1 << 30, .unit = "bytes",
	  .text = "Raw bytes that the client is ready to take." },
};
KS_PARAMS(ks_run_credit_params, "RunCreditParams", run_credit_fields, .text = "Opens the window of a lossless stream.",
	  .size = sizeof(struct ks_run_credit_params));

#define T struct ks_output_read_params
static const struct ks_field output_read_fields[] = {
	RUN(T),
	{ KS_ENUM("stream", T, stream, ks_output_words), KS_MUST, .text = "Which." },
	{ KS_INT("offset", T, offset), .min = 0, .max = KS_EXACT, .fallback = "0", .unit = "bytes",
	  .text = "Where to start." },
	{ KS_INT("maxBytes", T, max_bytes), .min = 1, .max = KS_MAX_OUTPUT_BYTES, .unit = "bytes",
	  .text = "How much at most; absent: as much as a line takes." },
};
#undef T
KS_PARAMS(ks_output_read_params, "OutputReadParams", output_read_fields, .text = "A part of a run's kept output.",
	  .size = sizeof(struct ks_output_read_params));
static const struct ks_field output_read_result_fields[] = {
	KS_DOC(STRING, "text", .text = "The bytes, when they are UTF-8."),
	KS_DOC(BASE64, "base64", .text = "The bytes otherwise."),
	KS_DOC(INT, "nextOffset", KS_MUST, .unit = "bytes", .text = "Where to go on."),
	KS_DOC(BOOL, "eof", KS_MUST, .text = "The run has ended and that was the end."),
	KS_DOC(INT, "droppedBefore", KS_MUST, .unit = "bytes", .text = "Bytes before offset that are no longer kept."),
};
KS_TABLE(ks_output_read_result, "OutputReadResult", output_read_result_fields, .text = "text or base64.");
