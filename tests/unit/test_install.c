/* test_install.c: which commands of a setup are rewritten, and which say all there is to say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "session/install.h"

static const char *text_of(const char *command, enum ks_installer *ret)
{
	static struct ks_buf out;

	ks_buf_free(&out);
	out = (struct ks_buf){ 0 };
	*ret = ks_install_text(command, &out);
	ks_buf_char(&out, '\0');
	return out.data;
}

static void test_rewritten(void **state)
{
	static const struct {
		const char *command, *tail;
		enum ks_installer installer;
	} cases[] = {
		{ "pip install six", " six", KS_INSTALLER_PIP },
		{ "  pip3\tinstall  'a b'&& x", "  'a b'&& x", KS_INSTALLER_PIP },
		{ "python -m pip install", "", KS_INSTALLER_PIP },
		{ "python3 -m  pip install;x", ";x", KS_INSTALLER_PIP },
		{ "pip install\nls", "\nls", KS_INSTALLER_PIP },
		{ "npm install --save x", " --save x", KS_INSTALLER_NPM },
		{ "npm install @a/b", " @a/b", KS_INSTALLER_NPM },
	};
	enum ks_installer got;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *text = text_of(cases[i].command, &got);
		assert_int_equal(got, cases[i].installer);
		assert_true(strlen(text) > strlen(cases[i].tail));
		assert_string_equal(text + strlen(text) - strlen(cases[i].tail), cases[i].tail);
		assert_null(strstr(text, "pip install"));
	}
}

static void test_left_alone(void **state)
{
	static const char *const commands[] = {
		"", " ", "pip", "pip installs six", "pip -q install six", "pipx install six", "./pip install six", "echo pip install six",
		"PIP=1 pip install six", "pip\ninstall six", "python -c pip install", "python2 -m pip install x", "npm install",
		"npm install --offline", "npm install; x", "npm install # x", "npm install >log", "npm i x", "npm ci", "\"pip\" install x",
	};
	enum ks_installer got;

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		assert_string_equal(text_of(commands[i], &got), commands[i]);
		assert_int_equal(got, KS_INSTALLER_NONE);
		assert_false(ks_install_is_plain(commands[i]));
	}
}

static void test_plain(void **state)
{
	static const char *const plain[] = {
		"pip install six", "pip3 install six==1.16.0 'numpy>=1,<2' \"a!=2\"", "python3 -m pip install requests[socks] --no-deps -q",
		"pip install --only-binary :all: a", "npm install left-pad", "npm install left-pad@1.3 @types/node@20",
	};
	static const char *const other[] = {
		"pip install",
		"pip install .",
		"pip install ./x",
		"pip install x/y",
		"pip install -r r.txt",
		"pip install -e x",
		"pip install ~/x",
		"pip install six && x",
		"pip install six;x",
		"pip install $X",
		"pip install `x`",
		"pip install a\nb",
		"pip install six>1",
		"pip install 'a b'",
		"pip install six-1.0-py3-none-any.whl",
		"pip install x.tar.gz",
		"pip install https://x",
		"pip install git+x:y",
		"pip install 'six",
		"pip install --index-url x",
		"pip install *",
		"pip install ?",
		"pip install {a,b}",
		"pip install six #",
		"npm install ./x",
		"npm install x/y",
		"npm install x.tgz",
		"npm install file:x",
		"npm install @a/../b;",
		"pip install \\six",
		"pip install 'six\"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		assert_true(ks_install_is_plain(plain[i]));
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		if (ks_install_is_plain(other[i]))
			fail_msg("%s", other[i]);
}

static void test_missing(void **state)
{
	static const char pip[] = "kern-setup: this interpreter has no pip\n";

	(void)state;
	assert_true(ks_install_missing(KS_INSTALLER_PIP, pip, sizeof(pip) - 1));
	assert_false(ks_install_missing(KS_INSTALLER_NPM, pip, sizeof(pip) - 1));
	assert_false(ks_install_missing(KS_INSTALLER_NONE, pip, sizeof(pip) - 1));
	assert_false(ks_install_missing(KS_INSTALLER_PIP, pip, sizeof(pip) - 2));
	assert_false(ks_install_missing(KS_INSTALLER_PIP, "", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rewritten),
		cmocka_unit_test(test_left_alone),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
