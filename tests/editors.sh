#!/usr/bin/env bash
# tests/editors.sh USER: runs the tests of integrations/vim and integrations/emacs in the editors that are installed, without a
# screen, on the sidecar of build/, as USER: yourself, or kerntest when you are root.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
user=$1

place=$(mktemp -d /tmp/kern-editors-XXXXXX)
trap 'rm -rf "$place"' EXIT
mkdir "$place/tmp" "$place/program"
cp -r "$top"/integrations/{vim,emacs} "$place"
cp -r "$top"/build/{kern-sidecar,kern-worker,languages} "$place/program"
chmod -R a+rX,go-w "$place"

as_user() { # COMMAND...: with little of our environment
	local clean=(env -i "PATH=$PATH" "TMPDIR=$place/tmp" "XDG_CACHE_HOME=$place/tmp/cache" LANG=C.UTF-8 "KERN_SIDECAR=$place/program/kern-sidecar")
	cd "$place"
	if [ "$user" = "$(id -un)" ]; then
		"${clean[@]}" "HOME=$HOME" "$@"
	else
		id "$user" >/dev/null 2>&1 || useradd --create-home --shell /bin/sh "$user"
		chown "$user" "$place/tmp"
		runuser -u "$user" -- "${clean[@]}" "HOME=$(getent passwd "$user" | cut -d: -f6)" "$@"
	fi
}

status=0

if vim -Nu NONE -es --cmd "if has('vim9script') && has('channel') | qall! | else | cquit! | endif" </dev/null >/dev/null 2>&1; then
	out=$place/tmp/vim.out
	mkfifo "$place/keys" # at whose end Vim would end, and with -es there are no questions
	exec {keys}<>"$place/keys"
	as_user env "KERN_TEST_DIR=$place/tmp/vim" "KERN_TEST_OUT=$out" TERM=dumb timeout 300 \
		vim -Nu NONE -i NONE -n --not-a-term -S "$place/vim/test/test_kern.vim" <&"$keys" >"$place/vim.log" 2>&1 ||
		{ status=1; tail -n 20 "$place/vim.log"; }
	tr -d '\033' 2>/dev/null <"$out" || status=1
	[ "$(grep -c '^ok ' "$out")" -eq "$(grep -c '^def Test_' "$place/vim/test/test_kern.vim")" ] || { status=1; echo "FAILED: Vim: not every test was ok"; }
else
	echo "SKIPPED: Vim: there is no vim 9 with channels (Debian: vim)"
fi

if emacs -Q --batch --eval '(kill-emacs (if (and (>= emacs-major-version 28) (json-available-p)) 0 1))' >/dev/null 2>&1; then
	mkdir "$place/compiled"
	emacs -Q --batch -L "$place/emacs" --eval "(setq byte-compile-error-on-warn t byte-compile-dest-file-function (lambda (file) (concat \"$place/compiled/\" (file-name-nondirectory file) \"c\")))" \
		-f batch-byte-compile "$place"/emacs/*.el 2>&1 || status=1
	as_user env "KERN_TEST_DIR=$place/tmp/emacs" timeout 300 \
		emacs -Q --batch -L "$place/emacs" -l "$place/emacs/test/kern-test.el" -f ert-run-tests-batch-and-exit >"$place/emacs.log" 2>&1 || status=1
	grep -E '^ +(passed|FAILED)|^Ran ' "$place/emacs.log" || true
	[ $status -eq 0 ] || grep -A 30 'condition:' "$place/emacs.log" || tail -n 20 "$place/emacs.log"
else
	echo "SKIPPED: Emacs: there is no emacs 28 with JSON (Debian: emacs-nox, 160 MB)"
fi
exit $status
