#include "session/install.h"

#include <string.h>

#define BLANKS " \t"
#define NO_PIP "kern-setup: this interpreter has no pip"
#define NO_NPM "kern-setup: there is no npm"

static const struct {
	const char *words[5]; /* NULL-terminated */
	enum ks_installer installer;
} leading[] = {
	{ { "pip", "install" }, KS_INSTALLER_PIP },
	{ { "pip3", "install" }, KS_INSTALLER_PIP },
	{ { "python", "-m", "pip", "install" }, KS_INSTALLER_PIP },
	{ { "python3", "-m", "pip", "install" }, KS_INSTALLER_PIP },
	{ { "npm", "install" }, KS_INSTALLER_NPM },
};

/* -I: neither the working directory nor PYTHONPATH is searched, where an earlier call may have left a pip.py. */
static const char pip_text[] = "\"$1\" -I \"$3\" \"$2\"";
static const char npm_text[] = "command -v npm >/dev/null || { printf '%s\\n' '" NO_NPM "' >&2; exit 1; }\n"
			       "npm install --prefix \"$2\"";

const char ks_install_script[] =
	"sh -c \"$1\" setup \"$2\" \"$3\" \"$4\" || exit\n"
	"[ -z \"$2\" ] || \"$2\" -I -m compileall -q -j 4 --invalidation-mode \"$5\" \"$3\" >/dev/null 2>&1\n"
	"exit 0\n";

/* What stands behind these words, or NULL. */
static const char *behind(const char *command, const char *const *words)
{
	for (; *words; words++) {
		const size_t len = strlen(*words);
		command += strspn(command, BLANKS);
		if (strncmp(command, *words, len) != 0 || !strchr(BLANKS "\n;&|", command[len]))
			return NULL;
		command += len;
	}
	return command;
}

/* Without one npm installs what the working directory's package.json says: there, and not in .deps. */
static bool names_a_package(const char *rest)
{
	for (rest += strspn(rest, BLANKS); *rest == '-'; rest += strspn(rest, BLANKS))
		rest += strcspn(rest, BLANKS "\n");
	return *rest && !strchr("\n;&|<>#()", *rest);
}

enum ks_installer ks_install_text(const char *command, struct ks_buf *out)
{
	for (size_t i = 0; i < KS_COUNT(leading); i++) {
		const char *rest = behind(command, leading[i].words);
		if (!rest || (leading[i].installer == KS_INSTALLER_NPM && !names_a_package(rest)))
			continue;
		ks_buf_str(out, leading[i].installer == KS_INSTALLER_PIP ? pip_text : npm_text);
		ks_buf_str(out, rest);
		return leading[i].installer;
	}
	ks_buf_str(out, command);
	return KS_INSTALLER_NONE;
}

/* six  'six>=1.16,<2'  requests[socks]==2.31.0  left-pad@1.3  @types/node  --pre */
static bool is_plain_word(const char *word, size_t len, bool npm)
{
	static const char *const options[] = { "--no-deps", "--pre", "--only-binary", ":all:", "--prefer-binary", "-q",
					       "--quiet",   "-U",    "--upgrade" };
	static const char *const files[] = { ".whl", ".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz" };
	const bool quoted = len >= 2 && (word[0] == '\'' || word[0] == '"');

	for (size_t i = 0; i < KS_COUNT(options); i++)
		if (strlen(options[i]) == len && memcmp(word, options[i], len) == 0)
			return true;
	if (quoted && word[len - 1] != word[0])
		return false;
	word += quoted;
	len -= quoted ? 2u : 0;
	if (len == 0 || word[0] == '.' || word[0] == '-' || word[0] == '~')
		return false;
	for (size_t i = 0; i < len; i++) {
		const bool letter = (word[i] >= 'a' && word[i] <= 'z') || (word[i] >= 'A' && word[i] <= 'Z') ||
				    (word[i] >= '0' && word[i] <= '9');
		if (!letter && !strchr(quoted ? "._-=,!~+<>^@[]" : "._-=,!~+^@[]", word[i]) && !(npm && word[0] == '@' && word[i] == '/'))
			return false;
	}
	for (size_t i = 0; i < KS_COUNT(files); i++)
		if (memmem(word, len, files[i], strlen(files[i])))
			return false;
	return true;
}

bool ks_install_is_plain(const char *command)
{
	for (size_t i = 0; i < KS_COUNT(leading); i++) {
		const char *rest = behind(command, leading[i].words);
		bool any = false;
		for (size_t len; rest && *(rest += strspn(rest, BLANKS)); rest += len) {
			len = strcspn(rest, BLANKS);
			if (!is_plain_word(rest, len, leading[i].installer == KS_INSTALLER_NPM))
				return false;
			any = true;
		}
		if (rest)
			return any;
	}
	return false;
}

bool ks_install_missing(enum ks_installer installer, const char *said, size_t len)
{
	const char *text = installer == KS_INSTALLER_PIP ? NO_PIP : NO_NPM;

	return installer != KS_INSTALLER_NONE && len == strlen(text) + 1 && memcmp(said, text, len - 1) == 0;
}
