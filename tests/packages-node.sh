#!/usr/bin/env bash
# tests/packages-node.sh NAME...: puts npm packages that tests need into build/node-packages/NAME, once. The names are the cases
# below.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
all=$top/build/node-packages

install() { # NAME SCRIPTS PACKAGE...: SCRIPTS is the package whose install script may run, or none
	local name=$1 scripts=$2 to=$all/$1 making=$all/$1.making
	shift 2
	[ "$(cat "$to/made-of" 2>/dev/null)" != "$*" ] || return 0
	rm -rf "$to" "$making"
	mkdir -p "$making"
	echo "{\"private\":true,\"allowScripts\":{\"$scripts\":true}}" >"$making/package.json"
	local path=$PATH
	[ "$name" != pi ] || path=$all/node22/node_modules/node/bin:$PATH # npm takes an older pi for an older node
	PATH=$path npm install --prefix "$making" --no-audit --no-fund --no-package-lock "$@" >"$making/log" 2>&1 ||
		{ tail -n 5 "$making/log"; return 1; }
	echo "$*" >"$making/made-of"
	mv "$making" "$to"
	echo "$to: $* ($(du -sm "$to" | cut -f1) MiB)"
}

for name; do
	case $name in
	node22) install node22 node node@22 ;;
	typescript) install typescript none typescript@5.9 @types/node@20 ;;
	vscode) install vscode none typescript@5.9 @types/node@20 @types/vscode@1.90 esbuild@0.25 ;;
	vsce) install vsce none @vscode/vsce@3 ;;
	pi) "$0" node22 && install pi none @earendil-works/pi-coding-agent@1.6.0 ;;
	*) echo "no packages called $name" >&2; exit 2 ;;
	esac
done
