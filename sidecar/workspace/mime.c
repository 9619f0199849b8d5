#include "mime.h"

#include <string.h>
#include <strings.h>

/* IANA media types where registered; by extension, any case. */
static const struct {
	const char *ext, *mime;
} by_ext[] = {
	{ "bash", "text/x-sh" },
	{ "bmp", "image/bmp" },
	{ "c", "text/x-c" },
	{ "cpp", "text/x-c++" },
	{ "css", "text/css" },
	{ "csv", "text/csv" },
	{ "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
	{ "gif", "image/gif" },
	{ "go", "text/x-go" },
	{ "gz", "application/gzip" },
	{ "h", "text/x-c" },
	{ "htm", "text/html" },
	{ "html", "text/html" },
	{ "ico", "image/vnd.microsoft.icon" },
	{ "ipynb", "application/x-ipynb+json" },
	{ "java", "text/x-java" },
	{ "jpeg", "image/jpeg" },
	{ "jpg", "image/jpeg" },
	{ "js", "text/javascript" },
	{ "json", "application/json" },
	{ "jsonl", "application/jsonl" },
	{ "log", "text/plain" },
	{ "md", "text/markdown" },
	{ "mjs", "text/javascript" },
	{ "mp3", "audio/mpeg" },
	{ "mp4", "video/mp4" },
	{ "npy", "application/x-npy" },
	{ "parquet", "application/vnd.apache.parquet" },
	{ "pdf", "application/pdf" },
	{ "png", "image/png" },
	{ "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
	{ "py", "text/x-python" },
	{ "rs", "text/x-rust" },
	{ "sh", "text/x-sh" },
	{ "sql", "application/sql" },
	{ "svg", "image/svg+xml" },
	{ "tar", "application/x-tar" },
	{ "tgz", "application/gzip" },
	{ "toml", "application/toml" },
	{ "ts", "text/x-typescript" },
	{ "tsv", "text/tab-separated-values" },
	{ "txt", "text/plain" },
	{ "wasm", "application/wasm" },
	{ "wav", "audio/wav" },
	{ "webp", "image/webp" },
	{ "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
	{ "xml", "application/xml" },
	{ "yaml", "application/yaml" },
	{ "yml", "application/yaml" },
	{ "zip", "application/zip" },
	{ "zst", "application/zstd" },
};

#define MAGIC_AT(at, bytes, type) { at, bytes, sizeof(bytes) - 1, type }
#define MAGIC(bytes, type) MAGIC_AT(0, bytes, type)

static const struct {
	size_t at;
	const char *bytes;
	size_t len;
	const char *mime;
} by_magic[] = {
	MAGIC("\x89PNG\r\n\x1a\n", "image/png"),
	MAGIC("\xff\xd8\xff", "image/jpeg"),
	MAGIC("GIF87a", "image/gif"),
	MAGIC("GIF89a", "image/gif"),
	MAGIC("%PDF-", "application/pdf"),
	MAGIC("PK\x03\x04", "application/zip"),
	MAGIC("PK\x05\x06", "application/zip"), /* an empty one */
	MAGIC("\x1f\x8b", "application/gzip"),
	MAGIC("\x28\xb5\x2f\xfd", "application/zstd"),
	MAGIC("\x7f" "ELF", "application/x-elf"),
	MAGIC("\0asm", "application/wasm"),
	MAGIC("SQLite format 3\0", "application/vnd.sqlite3"),
	MAGIC("BZh", "application/x-bzip2"),
	MAGIC("\xfd" "7zXZ\0", "application/x-xz"),
	MAGIC("7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
	MAGIC_AT(257, "ustar", "application/x-tar"),
	MAGIC_AT(8, "WEBP", "image/webp"), /* behind RIFF and a size */
	MAGIC_AT(8, "WAVE", "audio/wav"),
	MAGIC("II*\0", "image/tiff"),
	MAGIC("MM\0*", "image/tiff"),
	MAGIC("BM", "image/bmp"),
	MAGIC_AT(4, "ftyp", "video/mp4"),
	MAGIC("\x1a\x45\xdf\xa3", "video/webm"),
	MAGIC("OggS", "audio/ogg"),
	MAGIC("ID3", "audio/mpeg"),
	MAGIC("fLaC", "audio/flac"),
	MAGIC("PAR1", "application/vnd.apache.parquet"),
	MAGIC("\x93NUMPY", "application/x-npy"),
};

const char *ks_mime_by_name(const char *name, size_t len)
{
	const char *dot = memrchr(name, '.', len);

	if (!dot || dot == name) /* ".json" is a hidden file with no extension */
		return NULL;
	size_t ext_len = len - (size_t)(dot + 1 - name);
	for (size_t i = 0; i < sizeof(by_ext) / sizeof(by_ext[0]); i++)
		if (strlen(by_ext[i].ext) == ext_len && strncasecmp(by_ext[i].ext, dot + 1, ext_len) == 0)
			return by_ext[i].mime;
	return NULL;
}

/* Bytes of the UTF-8 sequence at p, 0 when invalid; a sequence that the end cuts short counts as whole. Unicode 15
 * table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF. */
static size_t utf8_len(const unsigned char *p, size_t left)
{
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
	unsigned char low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
	unsigned char high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;

	for (size_t i = 1; i < len && i < left; i++, low = 0x80, high = 0xbf)
		if (p[i] < low || p[i] > high)
			return 0;
	return len;
}

static bool is_text(const unsigned char *data, size_t len)
{
	for (size_t i = 0; i < len;) {
		unsigned char c = data[i];
		if (c == 0x7f || (c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b))
			return false;
		size_t n = utf8_len(data + i, len - i);
		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

/* An object or array whose first token may follow; "[section]" of an ini file is none. */
static bool starts_json(const unsigned char *data, size_t len)
{
	static const char blank[] = " \t\r\n";
	size_t i = 0;

	while (i < len && memchr(blank, data[i], 4))
		i++;
	if (i == len || (data[i] != '{' && data[i] != '['))
		return false;
	const char *next = data[i] == '{' ? "\"}" : "{[\"]-0123456789";
	for (i++; i < len && memchr(blank, data[i], 4); i++)
		;
	return i < len && memchr(next, data[i], strlen(next));
}

const char *ks_mime_by_content(const unsigned char *data, size_t len)
{
	for (size_t i = 0; i < sizeof(by_magic) / sizeof(by_magic[0]); i++)
		if (len >= by_magic[i].at + by_magic[i].len &&
		    memcmp(data + by_magic[i].at, by_magic[i].bytes, by_magic[i].len) == 0 &&
		    !((by_magic[i].len <= 4 || by_magic[i].at > 0) && is_text(data, len))) /* a word that looks like it */
			return by_magic[i].mime;
	if (len == 0 || !is_text(data, len))
		return NULL;
	return starts_json(data, len) ? "application/json" : "text/plain";
}

const char *ks_mime_of(const char *path, const unsigned char *data, size_t len)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *mime = ks_mime_by_name(name, strlen(name));

	return mime ? mime : ks_mime_by_content(data, len < KS_MIME_PEEK ? len : KS_MIME_PEEK);
}

enum ks_charset ks_charset_of(const unsigned char *data, size_t len, bool cut)
{
	if (len >= 2 && data[0] == 0xff && data[1] == 0xfe)
		return KS_CHARSET_UTF16LE;
	if (len >= 2 && data[0] == 0xfe && data[1] == 0xff)
		return KS_CHARSET_UTF16BE;
	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_len(data + i, len - i);
		if (n == 0 || data[i] == '\0' || (!cut && n > len - i))
			return KS_CHARSET_BINARY;
	}
	return KS_CHARSET_UTF8;
}
