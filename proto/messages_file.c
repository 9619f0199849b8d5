/* messages_file.c: tables of the file API. */
#include "proto/messages.h"
#include "proto/tables.h"

const char *const ks_file_type_words[KS_FILE_TYPES + 1] = { "file", "directory", "symlink", "fifo", "socket", "device", NULL };

#define SESSION KS_DOC(STRING, "sessionId", KS_MUST, KS_HANDLE_RULE, .text = "The session.")
#define FOLLOW KS_DOC(BOOL, "followLinks", .fallback = "false", .text = "Follow links that stay inside.")
#define BYTES_PATH KS_DOC(BASE64, "pathBase64", .max = KS_PATH_BYTES, .text = "Instead of path, when it is not UTF-8.")
#define PATH                                                                                                           \
	SESSION,                                                                                                       \
		KS_DOC(STRING, "path", .min = 1, .max = KS_PATH_BYTES,                                                 \
		       .text = "Relative to the workspace, or absolute."),                                             \
		BYTES_PATH, FOLLOW
#define ETAG KS_DOC(STRING, "etag", KS_MUST, .text = "Changes with the content.")
#define IF_MATCH KS_DOC(STRING, "ifMatch", .max = 256, .text = "Fail with changed when the etag is another one.")
#define TYPE KS_DOC(WORD, "type", KS_MUST, .choices = ks_file_type_words, .text = "What it is.")
#define LIMIT KS_DOC(INT, "limit", .min = 1, .max = 1000000, .text = "How many at most.")
#define HIDDEN KS_DOC(BOOL, "hidden", .fallback = "false", .text = "Names with a dot in front, too.")
#define GITIGNORE KS_DOC(BOOL, "gitignore", .fallback = "false", .text = "Heed .gitignore files.")
#define NAME KS_DOC(STRING, "path", .text = "The path."), KS_DOC(BASE64, "pathBase64", .text = "Instead of path.")
#define ONE_PATH .rule = "Exactly one of path and pathBase64."

static const struct ks_field lines_fields[] = {
	KS_DOC(INT, "start", KS_MUST, .min = 1, .max = KS_EXACT, .text = "From 1."),
	KS_DOC(INT, "count", KS_MUST, .min = 1, .max = KS_EXACT, .text = "How many."),
};
static KS_TABLE(lines, "Lines", lines_fields, .text = "Some lines of a file.");
static const struct ks_field read_fields[] = {
	PATH,
	KS_DOC(INT, "offset", .min = 0, .max = KS_EXACT, .unit = "bytes", .text = "Where to start."),
	KS_DOC(INT, "length", .min = 1, .max = KS_EXACT, .unit = "bytes", .text = "How much at most."),
	KS_DOC(OBJECT, "lines", .sub = &lines, .text = "By lines instead."),
	KS_DOC(ENUM, "encoding", .choices = ks_encoding_words, .fallback = "\"auto\"", .text = "As in run/code."),
};
KS_PARAMS(ks_file_read_params, "FileReadParams", read_fields, .text = "What to read.", ONE_PATH);
static const struct ks_field read_result_fields[] = {
	KS_DOC(STRING, "text", .text = "The content, when it is UTF-8."),
	KS_DOC(BASE64, "base64", .text = "The content otherwise."),
	KS_DOC(ANY, "blob", .text = "The content, when it does not fit a line."),
	KS_DOC(INT, "size", KS_MUST, .unit = "bytes", .text = "Of the file."),
	KS_DOC(BOOL, "eof", KS_MUST, .text = "That was the end."),
	ETAG,
	KS_DOC(STRING, "mime", .text = "Guessed."),
	KS_DOC(INT, "startLine", .text = "From 1."),
	KS_DOC(INT, "endLine", .text = "The last one that is in."),
	KS_DOC(INT, "totalLines", .text = "Of the file."),
};
KS_TABLE(ks_file_read_result, "FileReadResult", read_result_fields, .text = "text, base64 or blob.");

static const char *const exists_words[] = { "replace", "fail", "append", NULL };
static const struct ks_field write_fields[] = {
	PATH,
	KS_DOC(TEXT, "content", KS_MUST, .max = KS_TEXT_BYTES, .text = "The new content."),
	KS_DOC(ENUM, "ifExists", .choices = exists_words, .fallback = "\"replace\"",
	       .text = "What to do with an old file."),
	IF_MATCH,
	KS_DOC(BOOL, "mkdirs", .fallback = "true", .text = "Make missing directories."),
	KS_DOC(INT, "mode", .min = 0, .max = 0777, .text = "Permission bits of a new file."),
};
KS_PARAMS(ks_file_write_params, "FileWriteParams", write_fields, .text = "What to write.", ONE_PATH);
static const struct ks_field write_result_fields[] = {
	KS_DOC(INT, "size", KS_MUST, .unit = "bytes", .text = "Of the file now."),
	ETAG,
	KS_DOC(BOOL, "created", KS_MUST, .text = "It was not there before."),
};
KS_TABLE(ks_file_write_result, "FileWriteResult", write_result_fields, .text = "The file now.");

/* The same with a struct. */
#define SESSION_OF(T) { KS_STRING("sessionId", T, session_id), KS_MUST, KS_HANDLE_RULE, .text = "The session." }
#define PATH_OF(T)                                                                                                     \
	SESSION_OF(T),                                                                                                 \
		{ KS_STRING("path", T, path), .min = 1, .max = KS_PATH_BYTES,                                          \
		  .text = "Relative to the workspace, or absolute as the box or else as the host sees it." },          \
		{ KS_BASE64("pathBase64", T, path_bytes), .max = KS_PATH_BYTES,                                        \
		  .text = "Instead of path, when it is not UTF-8." },                                                  \
	{                                                                                                              \
		KS_BOOL("followLinks", T, follow_links), .fallback = "false", .text = "Follow links that stay inside." \
	}
#define CHECKED(T, check_fn) .size = sizeof(T), .check = (check_fn)

/* Of every struct here that has the two, at the same place. */
static int check_path(const void *params, struct ks_error *err)
{
	const struct ks_path_params *p = params;

	if (p->path && p->path_bytes.present)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/pathBase64", "path and pathBase64 exclude each other");
	return p->path || p->path_bytes.present ? 0 : ks_fail_at(err, KS_E_MISSING, "/path", "path (or pathBase64) is needed");
}

static const struct ks_field path_fields[] = { PATH_OF(struct ks_path_params) };
KS_PARAMS(ks_file_path_params, "FilePathParams", path_fields, CHECKED(struct ks_path_params, check_path), .text = "Which file.",
	  ONE_PATH);
static const struct ks_field stat_result_fields[] = {
	TYPE,
	KS_DOC(INT, "size", KS_MUST, .unit = "bytes", .text = "Its size."),
	KS_DOC(INT, "mtimeMs", KS_MUST, .unit = "ms", .text = "Since 1970."),
	KS_DOC(INT, "mode", KS_MUST, .text = "Permission bits."),
	KS_DOC(STRING, "etag", .text = "Of a regular file."),
	KS_DOC(STRING, "mime", .text = "Guessed."),
};
KS_TABLE(ks_file_stat_result, "FileStatResult", stat_result_fields, .text = "The file.");

static const struct ks_field list_fields[] = {
	SESSION,
	KS_DOC(STRING, "path", .min = 1, .max = KS_PATH_BYTES, .fallback = "\".\"", .text = "A directory."),
	BYTES_PATH,
	FOLLOW,
	KS_DOC(BOOL, "recursive", .fallback = "false", .text = "With everything below."),
	LIMIT,
	KS_DOC(STRING, "cursor", .min = 1, .max = 2 * KS_PATH_BYTES, .text = "nextCursor of the page before."),
};
KS_PARAMS(ks_file_list_params, "FileListParams", list_fields, .text = "Which directory.");
static const struct ks_field entry_fields[] = {
	NAME,
	TYPE,
	KS_DOC(INT, "size", .unit = "bytes", .text = "Its size."),
	KS_DOC(INT, "mtimeMs", .unit = "ms", .text = "Since 1970."),
};
static KS_TABLE(entry, "FileEntry", entry_fields, .text = "A name in a directory.");
#define ENTRIES                                                                                                        \
	KS_DOC(LIST, "entries", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &entry, .text = "In bytewise order.")
static const struct ks_field list_result_fields[] = {
	ENTRIES,
	KS_DOC(STRING, "nextCursor", .text = "There are more."),
};
KS_TABLE(ks_file_list_result, "FileListResult", list_result_fields, .text = "The directory.");

KS_PARAMS(ks_file_mkdir_params, "FileMkdirParams", path_fields, .text = "A new directory.", ONE_PATH);
static const struct ks_field move_fields[] = {
	PATH,
	KS_DOC(STRING, "to", .min = 1, .max = KS_PATH_BYTES, .text = "The new path."),
	KS_DOC(BASE64, "toBase64", .max = KS_PATH_BYTES, .text = "Instead of to."),
};
KS_PARAMS(ks_file_move_params, "FileMoveParams", move_fields, .text = "From where to where.",
	  .rule = "Exactly one of path and pathBase64, one of to and toBase64.");
static const struct ks_field remove_fields[] = {
	PATH,
	KS_DOC(BOOL, "recursive", .fallback = "false", .text = "With everything below."),
};
KS_PARAMS(ks_file_remove_params, "FileRemoveParams", remove_fields, .text = "What to remove.", ONE_PATH);

static const struct ks_field edit_item_fields[] = {
	KS_DOC(STRING, "oldText", KS_MUST, .min = 1, .max = KS_CODE_BYTES, .text = "What stands there."),
	KS_DOC(STRING, "newText", KS_MUST, .max = KS_CODE_BYTES, .text = "What shall stand there."),
	KS_DOC(BOOL, "all", .fallback = "false", .text = "Everywhere; else it must be there once."),
};
static KS_TABLE(edit_item, "Edit", edit_item_fields, .text = "One replacement.");
static const struct ks_field edit_fields[] = {
	PATH,
	KS_DOC(LIST, "edits", KS_MUST, .min = 1, .max = 1024, .sub = &edit_item,
	       .text = "In this order, all or nothing."),
	IF_MATCH,
};
KS_PARAMS(ks_file_edit_params, "FileEditParams", edit_fields, .text = "What to change.", ONE_PATH);
static const struct ks_field edit_result_fields[] = {
	KS_DOC(INTS, "replacements", KS_MUST, .text = "How many by each edit."),
	ETAG,
};
KS_TABLE(ks_file_edit_result, "FileEditResult", edit_result_fields, .text = "The file now.");

static const struct ks_field glob_fields[] = {
	SESSION,
	KS_DOC(STRING, "pattern", KS_MUST, .min = 1, .max = KS_PATH_BYTES, .text = "With *, ** and ?."),
	KS_DOC(STRING, "path", .min = 1, .max = KS_PATH_BYTES, .fallback = "\".\"", .text = "Where to look."),
	KS_DOC(STRINGS, "ignore", .max = 256, .item_max = KS_PATH_BYTES, .text = "Patterns to leave out."),
	HIDDEN,
	GITIGNORE,
	LIMIT,
};
KS_PARAMS(ks_file_glob_params, "FileGlobParams", glob_fields, .text = "Which names.");
static const struct ks_field glob_result_fields[] = {
	ENTRIES,
	KS_DOC(BOOL, "truncated", KS_MUST, .text = "There are more."),
};
KS_TABLE(ks_file_glob_result, "FileGlobResult", glob_result_fields, .text = "The names.");

static const struct ks_field search_fields[] = {
	SESSION,
	KS_DOC(STRING, "pattern", KS_MUST, .min = 1, .max = 65536, .text = "What to look for."),
	KS_DOC(BOOL, "regex", .fallback = "false", .text = "The pattern is a regular expression (PCRE2)."),
	KS_DOC(STRING, "path", .min = 1, .max = KS_PATH_BYTES, .fallback = "\".\"", .text = "Where to look."),
	KS_DOC(STRING, "glob", .min = 1, .max = KS_PATH_BYTES, .text = "Only in files of such names."),
	KS_DOC(BOOL, "ignoreCase", .fallback = "false", .text = "Capitals do not matter."),
	KS_DOC(INT, "before", .min = 0, .max = 100, .fallback = "0", .text = "Lines to show before."),
	KS_DOC(INT, "after", .min = 0, .max = 100, .fallback = "0", .text = "Lines to show behind."),
	HIDDEN,
	GITIGNORE,
	LIMIT,
};
KS_PARAMS(ks_file_search_params, "FileSearchParams", search_fields, .text = "What to look for.");
static const struct ks_field match_fields[] = {
	NAME,
	KS_DOC(INT, "line", KS_MUST, .text = "From 1."),
	KS_DOC(INT, "column", KS_MUST, .text = "From 1, in code points."),
	KS_DOC(TEXT, "text", KS_MUST, .text = "The line."),
	KS_DOC(STRINGS, "before", KS_MUST, .text = "Lines before."),
	KS_DOC(STRINGS, "after", KS_MUST, .text = "Lines behind."),
	KS_DOC(BOOL, "cut", .text = "The line is longer."),
};
static KS_TABLE(match, "FileMatch", match_fields, .text = "A place where it stands.");
static const struct ks_field search_result_fields[] = {
	KS_DOC(LIST, "matches", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &match, .text = "By path and line."),
	KS_DOC(BOOL, "truncated", KS_MUST, .text = "There are more."),
	KS_DOC(INT, "binarySkipped", KS_MUST, .text = "Files that are not text."),
};
KS_TABLE(ks_file_search_result, "FileSearchResult", search_result_fields, .text = "The places.");
