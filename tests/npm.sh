#!/usr/bin/env bash
# tests/npm.sh SUITE USER [OPTION-OR-FILE...]: packs the npm packages of integrations/ as they would be published, installs them
# in a fresh directory, and runs the tests of integrations/SUITE there, as USER: yourself, or kerntest when you are root. What
# follows goes to `node --test` instead of all tests.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
suite=$1 user=$2
tests=("${@:3}")
cached=$top/build/node-packages
node=/usr/bin/node
[ -x "$node" ] || node=/usr/local/bin/node

place=$(mktemp -d /tmp/kern-npm-XXXXXX)
trap 'rm -rf "$place"' EXIT
mkdir "$place/tmp" "$place/cache"
chmod 755 "$place"

as_user() { # COMMAND...: in the place, with little of our environment
	local clean=(env -i "PATH=$PATH" "TMPDIR=$place/tmp" LANG=C.UTF-8)
	cd "$place"
	if [ "$user" = "$(id -un)" ]; then
		"${clean[@]}" "HOME=$HOME" "$@"
	else
		id "$user" >/dev/null 2>&1 || useradd --create-home --shell /bin/sh "$user"
		chown "$user" "$place/tmp" "$place/cache"
		runuser -u "$user" -- "${clean[@]}" "HOME=$(getent passwd "$user" | cut -d: -f6)" "$@"
	fi
}

readable() { # PATH: a path of it that the user can read: itself, or a copy
	if as_user test -x "$1"; then
		printf '%s\n' "$1"
	else
		cp -r "$1" "$place/" && printf '%s\n' "$place/${1##*/}"
	fi
}

pack_and_install() { # NAME...: the packages of integrations/NAME
	mkdir -p "$top/build"
	local name
	for name; do # the program lies in the source tree while it is packed
		(cd "$top/integrations/$name" && flock "$top/build/npm-pack.lock" npm pack --silent --pack-destination "$place" >/dev/null)
	done
	(cd "$place" && echo '{"private":true}' >package.json && npm install --silent --offline --no-audit --no-fund --no-package-lock ./*.tgz)
	rm "$place"/*.tgz
	cp -r "$top/integrations/$suite/test" "$place/test"
	chmod -R go=u-w "$place/node_modules" "$place/test"
	[ ${#tests[@]} -gt 0 ] || tests=("$place"/test/*.test.*js)
}

types_of_pi() { # the sources of the extension fit the real pi's declarations, and those of kern-sandbox
	"$top/tests/packages-node.sh" typescript || { echo "SKIPPED: the types, because npm could not bring typescript"; return 0; }
	local checked=$place/checked
	mkdir -p "$checked/node_modules"
	echo '{"type":"module"}' >"$checked/package.json"
	cp -r "$place/node_modules/kern-pi/src" "$checked/src"
	ln -s "$cached/pi/node_modules/@earendil-works" "$place/node_modules/kern-sandbox" "$checked/node_modules/"
	(cd "$checked" && "$node" "$cached/typescript/node_modules/typescript/bin/tsc" --noEmit --strict --target es2023 --lib es2023,esnext.disposable \
		--module nodenext --allowImportingTsExtensions --skipLibCheck --typeRoots "$cached/typescript/node_modules/@types" --types node src/index.ts)
	rm -r "$checked"
	echo "the sources of the extension fit the declarations of pi"
}

case $suite in
node)
	pack_and_install node
	if "$top/tests/packages-node.sh" typescript; then
		cp "$place/test/types.ts" "$place/test/types.mts"
		"$node" "$cached/typescript/node_modules/typescript/bin/tsc" --noEmit --strict --target es2022 --lib es2022,esnext.disposable --module node16 \
			--typeRoots "$cached/typescript/node_modules/@types" --types node "$place/test/types.ts" "$place/test/types.mts"
		echo "the declarations allow and refuse what they should, for CommonJS and for ES modules"
	else
		echo "SKIPPED: the types, because npm could not bring typescript"
	fi
	as_user "$node" --test --test-concurrency=2 "${tests[@]}"
	;;
pi)
	if "$top/tests/packages-node.sh" pi; then
		pack_and_install node pi
		node22=$(readable "$cached/node22")/node_modules/node/bin/node
		pi=$(readable "$cached/pi")/node_modules/@earendil-works/pi-coding-agent
		types_of_pi
		as_user "PI_HOME=$pi" "NODE_COMPILE_CACHE=$place/cache" "$node22" --test --test-concurrency=2 "${tests[@]}"
	else
		echo "SKIPPED: npm could not bring pi and the node that it needs"
	fi
	;;
vscode)
	if ! "$top/tests/packages-node.sh" vscode; then
		echo "SKIPPED: the extension for VS Code, because npm could not bring what builds it"
		exit 0
	fi
	pack_and_install node
	extension=$place/vscode
	cp -r "$top/integrations/vscode" "$extension"
	rm -rf "$extension/node_modules"
	ln -s "$cached/vscode/node_modules" "$extension/node_modules"
	for script in check build program; do (cd "$extension" && PATH=$cached/vscode/node_modules/.bin:$PATH npm run --silent "$script"); done
	if [ -x "$cached/vsce/node_modules/.bin/vsce" ]; then
		(cd "$extension" && "$cached/vsce/node_modules/.bin/vsce" package --target linux-x64 --no-dependencies --allow-missing-repository --skip-license --no-rewrite-relative-links --out "$place/kern.vsix")
		/usr/bin/python3 -B - "$place/kern.vsix" "$place/installed" <<-'END'
			import os, sys, zipfile
			package, to = zipfile.ZipFile(sys.argv[1]), sys.argv[2]
			for one in package.infolist():
			    os.chmod(package.extract(one, to), one.external_attr >> 16 & 0o777 or 0o644)
		END
		extension=$place/installed/extension
	else
		echo "SKIPPED: the .vsix, and its files are tested where they were built: tests/packages-node.sh vsce brings what packs it (100 MiB)"
	fi
	chmod -R a+rX,go-w "$extension"
	as_user env "KERN_EXTENSION=$extension" "NODE_PATH=$place/test" "$node" --test test/extension.test.js
	;;
*) echo "no suite called $suite" >&2; exit 2 ;;
esac
# what is pi's own: long output, and translated sources, which are shared for they take half of its start
left=$(find "$place/tmp" -mindepth 1 -not -name 'kern-sidecar-*' -not -name 'pi-bash-*.log' -not -path "$place/tmp/jiti*" | head -n 5)
[ -z "$left" ] || { printf 'left behind:\n%s\n' "$left"; exit 1; }
