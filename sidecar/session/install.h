/* install.h: the shell's text for the command of a setup. A leading
 *
 *	pip install …, pip3 install …, python -m pip install …, python3 -m pip install …
 *	npm install PACKAGE …
 *
 * installs into .deps; what stands behind these words is passed on as it is, so quotes, further options and `&& more` mean what they
 * mean to a shell. Every other command is run as it is. Pure: text in, text out. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

enum ks_installer { KS_INSTALLER_NONE, KS_INSTALLER_PIP, KS_INSTALLER_NPM };

/* Of the text $1 is the interpreter of python, $2 is .deps, $3 is languages/python/run/install.py. */
enum ks_installer ks_install_text(const char *command, struct ks_buf *out);
/* The script around it, which compiles what is in .deps when the command has succeeded. $1: the text, $2: the interpreter of python or
 * "", $3: .deps, $4: install.py, $5: how bytecode is checked (py_compile.PycInvalidationMode). Its exit status is the command's. */
extern const char ks_install_script[];
/* Does the command say all there is to say? Only names of packages, with versions, and plain options: no files, no addresses, no further
 * commands. Then the same command is the same request. */
bool ks_install_is_plain(const char *command);
/* Did the text say that the installer is not there? That is all that it then says. */
bool ks_install_missing(enum ks_installer installer, const char *said, size_t len);
