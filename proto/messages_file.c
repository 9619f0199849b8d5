/* messages_file.c: tables of the file API. */
#include "proto/messages.h"
#include "proto/tables.h"

#define LIST_LIMIT 100000 /* names of a page of file/list */

const char *const ks_file_type_words[KS_FILE_TYPES + 1] = { "file", "directory", "symlink", "fifo", "socket", "device", NULL };

#define SESSION KS_DOC(STRING, "sessionId", KS_MUST, KS_HANDLE_RULE, .text = "The session.")
#define ETAG                                                                                                           \
	KS_DOC(STRING, "etag", KS_MUST,                                                                                \
	       .text = "Changes with the content. Up to 1 MiB it is made of the bytes, else of inode, size and times.")
#define IF_MATCH(T)                                                                                                    \
	{ KS_STRING("ifMatch", T, if_match), .min = 1, .max = 256,                                                     \
	  .text = "Fail with changed when the file is not there, or its etag is another one." }
#define TYPE KS_DOC(WORD, "type", KS_MUST, .choices = ks_file_type_words, .text = "What it is.")
#define LIMIT KS_DOC(INT, "limit", .min = 1, .max = 1000000, .text = "How many at most.")
#define NAME KS_DOC(STRING, "path", .text = "The path."), KS_DOC(BASE64, "pathBase64", .text = "Instead of path.")
#define ONE_PATH .rule = "Exactly one of path and pathBase64."
#define NOT_BOTH .rule = "Not both of path and pathBase64."

/* Of every struct with these members at its beginning. */
#define SESSION_OF(T) { KS_STRING("sessionId", T, session_id), KS_MUST, KS_HANDLE_RULE, .text = "The session." }
#define BYTES_OF(T)                                                                                                    \
	{ KS_BASE64("pathBase64", T, path_bytes), .max = KS_PATH_BYTES,                                                \
	  .text = "Instead of path, when it is not UTF-8." }
#define PATH_TEXT "Relative to the workspace, or absolute as the box or else as the host sees it."
#define LINKS_TEXT                                                                                                     \
	"Follow symbolic links, up to 40, that are relative and stay inside; else a link is path_escape."
#define FOLLOW_OF(T) { KS_BOOL("followLinks", T, follow_links), .fallback = "false", .text = LINKS_TEXT }
#define FOLLOW_PARENTS_OF(T)                                                                                           \
	{ KS_BOOL("followLinks", T, follow_links), .fallback = "false",                                                \
	  .text = LINKS_TEXT " The last name is never followed." }
#define PATH_OF(T)                                                                                                     \
	SESSION_OF(T), { KS_STRING("path", T, path), .min = 1, .max = KS_PATH_BYTES, .text = PATH_TEXT }, BYTES_OF(T)
#define CHECKED(T, check_fn) .size = sizeof(T), .check = (check_fn)

/* Of every struct here that has the two, at the same place. */
static int check_path(const void *params, struct ks_error *err)
{
	const struct ks_path_params *p = params;

	if (p->path && p->path_bytes.present)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/pathBase64", "path and pathBase64 exclude each other");
	return p->path || p->path_bytes.present ? 0 : ks_fail_at(err, KS_E_MISSING, "/path", "path (or pathBase64) is needed");
}

static const struct ks_field lines_fields[] = {
	{ KS_INT("start", struct ks_file_lines, start), KS_MUST, .min = 1, .max = KS_EXACT, .text = "From 1." },
	{ KS_INT("count", struct ks_file_lines, count), KS_MUST, .min = 1, .max = KS_EXACT, .text = "How many at most." },
};
static KS_TABLE(lines, "Lines", lines_fields, .size = sizeof(struct ks_file_lines),
		.text = "Some lines of a file. A line ends behind its LF; the last one needs none.");
static const struct ks_field read_fields[] = {
	PATH_OF(struct ks_file_read_params),
	FOLLOW_OF(struct ks_file_read_params),
	{ KS_INT("offset", struct ks_file_read_params, offset), .min = 0, .max = KS_EXACT, .unit = "bytes",
	  .text = "Where to start; behind the end there is nothing to read, and eof." },
	{ KS_INT("length", struct ks_file_read_params, length), .min = 1, .max = KS_EXACT, .unit = "bytes",
	  .text = "How much at most; more than 64 MiB at once is too_large." },
	{ KS_OBJECT("lines", struct ks_file_read_params, lines, struct ks_file_lines, &lines),
	  KS_PRESENT(struct ks_file_read_params, has_lines), .text = "By lines instead." },
	{ KS_ENUM("encoding", struct ks_file_read_params, encoding, ks_encoding_words), .fallback = "\"auto\"",
	  .text = "utf8 replaces invalid bytes, auto gives base64 when there are any (also when a range cuts a character)." },
};
static int check_read(const void *params, struct ks_error *err)
{
	const struct ks_file_read_params *p = params;

	if (p->has_lines && (p->offset != KS_ABSENT || p->length != KS_ABSENT))
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/lines", "lines excludes offset and length");
	return check_path(params, err);
}
KS_PARAMS(ks_file_read_params, "FileReadParams", read_fields, CHECKED(struct ks_file_read_params, check_read),
	  .text = "What to read.", .rule = "Exactly one of path and pathBase64. lines excludes offset and length.");
static const char *const charset_words[] = { "utf-8", "utf-16le", "utf-16be", "binary", NULL };
static const struct ks_field read_result_fields[] = {
	KS_DOC(STRING, "text", .text = "The content, when it is UTF-8. A byte order mark is part of it."),
	KS_DOC(BASE64, "base64", .text = "The content otherwise."),
	KS_DOC(ANY, "blob", .text = "The content, when it does not fit a line."),
	KS_DOC(INT, "size", KS_MUST, .unit = "bytes", .text = "Of the file."),
	KS_DOC(BOOL, "eof", KS_MUST, .text = "That was the end."),
	ETAG,
	KS_DOC(STRING, "mime", .text = "By the name's extension, else by the first bytes."),
	KS_DOC(WORD, "encoding", KS_MUST, .choices = charset_words,
	       .text = "Of the file, by its first 64 KiB: UTF-16 by its byte order mark; binary has a NUL or is not UTF-8."),
	KS_DOC(INT, "startLine", .text = "With lines: the first one that was asked for."),
	KS_DOC(INT, "endLine", .text = "With lines: the last one that is in; startLine - 1 when there is none."),
	KS_DOC(INT, "totalLines", .text = "With lines: of the file; absent when it is longer than 256 MiB."),
};
KS_TABLE(ks_file_read_result, "FileReadResult", read_result_fields, .text = "text, base64 or blob.");

static const char *const exists_words[] = { "replace", "fail", "append", NULL };
static const struct ks_field write_fields[] = {
	PATH_OF(struct ks_file_write_params),
	FOLLOW_OF(struct ks_file_write_params),
	{ KS_TEXT("content", struct ks_file_write_params, content), KS_MUST, .max = KS_TEXT_BYTES,
	  .text = "The new content; a blob may have up to 64 MiB." },
	{ KS_ENUM("ifExists", struct ks_file_write_params, if_exists, exists_words), .fallback = "\"replace\"",
	  .text = "An old file: replace it whole (other names of it keep the old content), fail, or append to it." },
	IF_MATCH(struct ks_file_write_params),
	{ KS_BOOL("mkdirs", struct ks_file_write_params, mkdirs), .fallback = "true", .text = "Make missing directories (0755)." },
	{ KS_INT("mode", struct ks_file_write_params, mode), .min = 0, .max = 0777,
	  .text = "Permission bits of a new file, 0644 when absent; an old one keeps its own." },
};
static int check_write(const void *params, struct ks_error *err)
{
	const struct ks_file_write_params *p = params;

	if (p->if_match && p->if_exists == KS_IF_EXISTS_FAIL)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/ifMatch", "ifMatch wants an old file, ifExists: fail wants none");
	return check_path(params, err);
}
KS_PARAMS(ks_file_write_params, "FileWriteParams", write_fields, CHECKED(struct ks_file_write_params, check_write),
	  .text = "What to write.", .rule = "Exactly one of path and pathBase64. ifMatch excludes ifExists: fail.");
static const struct ks_field write_result_fields[] = {
	KS_DOC(INT, "size", KS_MUST, .unit = "bytes", .text = "Of the file now."),
	ETAG,
	KS_DOC(BOOL, "created", KS_MUST, .text = "It was not there before."),
};
KS_TABLE(ks_file_write_result, "FileWriteResult", write_result_fields, .text = "The file now.");

static const struct ks_field path_fields[] = { PATH_OF(struct ks_path_params), FOLLOW_OF(struct ks_path_params) };
KS_PARAMS(ks_file_path_params, "FilePathParams", path_fields, CHECKED(struct ks_path_params, check_path), .text = "Which file.",
	  ONE_PATH);
static const struct ks_field stat_result_fields[] = {
	TYPE,
	KS_DOC(INT, "size", KS_MUST, .unit = "bytes", .text = "Its size."),
	KS_DOC(INT, "mtimeMs", KS_MUST, .unit = "ms", .text = "Since 1970."),
	KS_DOC(INT, "mode", KS_MUST, .text = "Permission bits."),
	KS_DOC(STRING, "etag", .text = "Of a regular file that the box's user may read; as in file/read."),
	KS_DOC(STRING, "mime", .text = "Of a regular file: by the name's extension, else by the first bytes."),
};
KS_TABLE(ks_file_stat_result, "FileStatResult", stat_result_fields,
	 .text = "The file. Without followLinks a symbolic link at the end of the path is told as what it is.");

static const struct ks_field list_fields[] = {
	SESSION_OF(struct ks_file_list_params),
	{ KS_STRING("path", struct ks_file_list_params, path), .min = 1, .max = KS_PATH_BYTES,
	  .text = "A directory; the workspace when absent." },
	BYTES_OF(struct ks_file_list_params),
	FOLLOW_OF(struct ks_file_list_params),
	{ KS_BOOL("recursive", struct ks_file_list_params, recursive), .fallback = "false",
	  .text = "With everything below, but not through symbolic links and mount points." },
	{ KS_INT("limit", struct ks_file_list_params, limit), .min = 1, .max = LIST_LIMIT, .fallback = "1000",
	  .text = "Entries of a page, which also ends at 4 MiB of paths." },
	{ KS_BASE64("cursor", struct ks_file_list_params, cursor), .min = 2, .max = KS_PATH_BYTES + 1,
	  .text = "nextCursor of the page before, with the same path and recursive." },
};
static int check_list(const void *params, struct ks_error *err)
{
	const struct ks_path_params *p = params;

	return p->path ? check_path(params, err) : 0;
}
KS_PARAMS(ks_file_list_params, "FileListParams", list_fields, CHECKED(struct ks_file_list_params, check_list),
	  .text = "Which directory.", .rule = "At most one of path and pathBase64.");
static const struct ks_field entry_fields[] = {
	NAME,
	TYPE,
	KS_DOC(INT, "size", .unit = "bytes", .text = "Its size."),
	KS_DOC(INT, "mtimeMs", .unit = "ms", .text = "Since 1970."),
};
static KS_TABLE(entry, "FileEntry", entry_fields,
		.text = "A name in a directory. Its path can be given to the file methods: relative to the workspace, or absolute in a mount.");
#define ENTRIES                                                                                                        \
	KS_DOC(LIST, "entries", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &entry, .text = "In bytewise order.")
static const struct ks_field list_result_fields[] = {
	ENTRIES,
	KS_DOC(STRING, "nextCursor", .text = "There are more."),
	KS_DOC(INT, "skipped",
	       .text = "Directories on this page that were not entered: unreadable, mount points, paths beyond 4095 bytes."),
};
KS_TABLE(ks_file_list_result, "FileListResult", list_result_fields,
	 .text = "The directory. What comes or goes between pages is in or not; everything else is there exactly once.");

static const struct ks_field mkdir_fields[] = {
	PATH_OF(struct ks_file_mkdir_params),
	FOLLOW_PARENTS_OF(struct ks_file_mkdir_params),
	{ KS_BOOL("parents", struct ks_file_mkdir_params, parents), .fallback = "false",
	  .text = "Make missing directories above it, too; one that is there already is fine then." },
};
KS_PARAMS(ks_file_mkdir_params, "FileMkdirParams", mkdir_fields, CHECKED(struct ks_file_mkdir_params, check_path),
	  .text = "A new directory, of mode 0755.", ONE_PATH);
static const struct ks_field move_fields[] = {
	PATH_OF(struct ks_file_move_params),
	FOLLOW_PARENTS_OF(struct ks_file_move_params),
	{ KS_STRING("to", struct ks_file_move_params, to), .min = 1, .max = KS_PATH_BYTES, .text = "The new path, name and all." },
	{ KS_BASE64("toBase64", struct ks_file_move_params, to_bytes), .max = KS_PATH_BYTES, .text = "Instead of to." },
	{ KS_BOOL("replace", struct ks_file_move_params, replace), .fallback = "false",
	  .text = "Replace a file, or an empty directory by a directory; else exists." },
};
static int check_move(const void *params, struct ks_error *err)
{
	const struct ks_file_move_params *p = params;

	if (p->to && p->to_bytes.present)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/toBase64", "to and toBase64 exclude each other");
	if (!p->to && !p->to_bytes.present)
		return ks_fail_at(err, KS_E_MISSING, "/to", "to (or toBase64) is needed");
	return check_path(params, err);
}
KS_PARAMS(ks_file_move_params, "FileMoveParams", move_fields, CHECKED(struct ks_file_move_params, check_move),
	  .text = "From where to where, within the workspace or within one mount.",
	  .rule = "Exactly one of path and pathBase64, one of to and toBase64.");
static const struct ks_field remove_fields[] = {
	PATH_OF(struct ks_file_remove_params),
	FOLLOW_PARENTS_OF(struct ks_file_remove_params),
	{ KS_BOOL("recursive", struct ks_file_remove_params, recursive), .fallback = "false",
	  .text = "With everything below, whatever its mode. An error may leave a part of it." },
};
KS_PARAMS(ks_file_remove_params, "FileRemoveParams", remove_fields, CHECKED(struct ks_file_remove_params, check_path),
	  .text = "A file, a symbolic link, or an empty directory.", ONE_PATH);

static const struct ks_field edit_item_fields[] = {
	{ KS_STRING("oldText", struct ks_file_edit, old_text), KS_MUST, .min = 1, .max = KS_CODE_BYTES, .text = "What stands there." },
	{ KS_STRING("newText", struct ks_file_edit, new_text), KS_MUST, .max = KS_CODE_BYTES, .text = "What shall stand there." },
	{ KS_BOOL("all", struct ks_file_edit, all), .fallback = "false",
	  .text = "Everywhere, from the left; else it must be there exactly once." },
};
static KS_TABLE(edit_item, "Edit", edit_item_fields, .size = sizeof(struct ks_file_edit),
		.text = "One replacement. LF and CRLF match each other, and newText gets the line end of the file.");
static const struct ks_field edit_fields[] = {
	PATH_OF(struct ks_file_edit_params),
	FOLLOW_OF(struct ks_file_edit_params),
	{ KS_LIST("edits", struct ks_file_edit_params, edits, struct ks_file_edits, &edit_item), KS_MUST, .min = 1, .max = 1024,
	  .text = "In this order, each in what the one before left; all or nothing." },
	IF_MATCH(struct ks_file_edit_params),
};
KS_PARAMS(ks_file_edit_params, "FileEditParams", edit_fields, CHECKED(struct ks_file_edit_params, check_path),
	  .text = "What to change in a file of up to 16 MiB. Bytes that no edit names stay as they are, valid UTF-8 or not.", ONE_PATH);
static const struct ks_field edit_result_fields[] = {
	KS_DOC(INTS, "replacements", KS_MUST, .text = "How many by each edit."),
	ETAG,
};
KS_TABLE(ks_file_edit_result, "FileEditResult", edit_result_fields, .text = "The file now.");

/* Where file/glob and file/search look, and what both leave out. */
#define WHERE_OF(T)                                                                                                    \
	SESSION_OF(T),                                                                                                 \
		{ KS_STRING("path", T, path), .min = 1, .max = KS_PATH_BYTES,                                          \
		  .text = "Where to look; the workspace when absent. Paths in the result begin with it as it is given " \
			  "here. Mounts are looked into only when named." },                                           \
	{                                                                                                              \
		KS_BASE64("pathBase64", T, path_bytes), .max = KS_PATH_BYTES,                                          \
			.text = "Instead of path, when it is not UTF-8."                                               \
	}
#define CHOICE_OF(T)                                                                                                   \
	{ KS_BOOL("hidden", T, hidden), .fallback = "false",                                                           \
	  .text = "Also names that begin with a dot; else only where a pattern spells that dot." },                    \
	{                                                                                                              \
		KS_BOOL("gitignore", T, gitignore), .fallback = "false",                                               \
			.text = "Leave out what .gitignore files (also those above path) and .git/info/exclude say, "  \
				"and .git itself."                                                                     \
	}

static int check_where(const void *params, struct ks_error *err)
{
	const struct ks_where_params *p = params;

	if (p->path && p->path_bytes.present)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/pathBase64", "path and pathBase64 exclude each other");
	return 0;
}

static const struct ks_field glob_fields[] = {
	WHERE_OF(struct ks_glob_params),
	{ KS_STRING("pattern", struct ks_glob_params, pattern), KS_MUST, .min = 1, .max = KS_PATH_BYTES,
	  .text = "Without a slash: of names at any depth. With one: of paths from path on; /*.c is right there. * and ? match "
		  "no slash; ** as a whole name is any number of directories, or at the end all below; [a-z], [!a], "
		  "[[:alpha:]]; {a,b{c,d}}; \\ before a character that stands for itself; a slash at the end: directories only." },
	{ KS_STRINGS("ignore", struct ks_glob_params, ignore), .max = 256, .item_max = KS_PATH_BYTES,
	  .text = "Patterns of the same kind: what they match is left out, with everything below." },
	CHOICE_OF(struct ks_glob_params),
	{ KS_INT("limit", struct ks_glob_params, limit), .min = 1, .max = 1000000, .fallback = "10000",
	  .text = "How many names at most; the first ones." },
};
KS_PARAMS(ks_file_glob_params, "FileGlobParams", glob_fields, CHECKED(struct ks_glob_params, check_where), .text = "Which names.",
	  NOT_BOTH);
#define UNREADABLE                                                                                                     \
	KS_DOC(INT, "unreadable",                                                                                      \
	       .text = "How much was passed over: what the box's user may not read, mount points, paths above 4095 bytes.")
static const struct ks_field glob_result_fields[] = {
	ENTRIES,
	KS_DOC(BOOL, "truncated", KS_MUST, .text = "There are more: above limit, or 16 MiB of paths."),
	UNREADABLE,
};
KS_TABLE(ks_file_glob_result, "FileGlobResult", glob_result_fields, .text = "The names.");

static const struct ks_field search_fields[] = {
	WHERE_OF(struct ks_search_params),
	{ KS_STRING("pattern", struct ks_search_params, pattern), KS_MUST, .min = 1, .max = 65536,
	  .text = "What to look for, within lines. A line feed in a text is invalid_value." },
	{ KS_BOOL("regex", struct ks_search_params, regex), .fallback = "false",
	  .text = "The pattern is a regular expression of PCRE2 with Unicode classes; ^ and $ are the ends of a line, of which a "
		  "carriage return is a part. One that takes too many steps, or more than 5 s of processor time and 1 s for "
		  "each MB, fails with limit." },
	{ KS_STRING("glob", struct ks_search_params, glob), .min = 1, .max = KS_PATH_BYTES,
	  .text = "Only files that this pattern of file/glob matches; with ! in front, only others. dir/ is for what is below." },
	{ KS_BOOL("ignoreCase", struct ks_search_params, ignore_case), .fallback = "false", .text = "Capitals do not matter." },
	{ KS_INT("before", struct ks_search_params, before), .min = 0, .max = 100, .fallback = "0", .text = "Lines to show before." },
	{ KS_INT("after", struct ks_search_params, after), .min = 0, .max = 100, .fallback = "0", .text = "Lines to show behind." },
	CHOICE_OF(struct ks_search_params),
	{ KS_INT("limit", struct ks_search_params, limit), .min = 1, .max = 1000000, .fallback = "1000",
	  .text = "How many matches at most; the first ones." },
};
KS_PARAMS(ks_file_search_params, "FileSearchParams", search_fields, CHECKED(struct ks_search_params, check_where),
	  .text = "What to look for.", NOT_BOTH);
static const struct ks_field match_fields[] = {
	NAME,
	KS_DOC(INT, "line", KS_MUST, .text = "From 1."),
	KS_DOC(INT, "column", KS_MUST, .text = "Of its first match: from 1, in code points."),
	KS_DOC(TEXT, "text", KS_MUST,
	       .text = "The line without its end; at most 2000 bytes, those around the match. What is not UTF-8 is replaced."),
	KS_DOC(STRINGS, "before", KS_MUST, .text = "Lines before; of each at most the first 2000 bytes."),
	KS_DOC(STRINGS, "after", KS_MUST, .text = "Lines behind, likewise."),
	KS_DOC(BOOL, "cut", .text = "The line is longer."),
};
static KS_TABLE(match, "FileMatch", match_fields,
		.text = "A line that has a match. A line of more than 128 KiB is searched in pieces that overlap by 4 KiB (a text: by "
			"its length): a longer match may be missed there.");
static const struct ks_field search_result_fields[] = {
	KS_DOC(LIST, "matches", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &match, .text = "By path and line."),
	KS_DOC(BOOL, "truncated", KS_MUST, .text = "There are more: above limit, or 16 MiB of lines."),
	KS_DOC(INT, "binarySkipped", KS_MUST,
	       .text = "Files with a NUL byte: not searched from the block of 128 KiB on that has it."),
	UNREADABLE,
};
KS_TABLE(ks_file_search_result, "FileSearchResult", search_result_fields, .text = "The places.");
