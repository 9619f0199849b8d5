#!/usr/bin/env bash
# tests/packages-python.sh [--all] [PYTHON...]: puts the libraries whose results are tested into build/python-packages/X.Y,
# once; default: /usr/bin/python3 and the libraries that most people use. --all: the others, too, and X.Y-ipython.
# --jupyter: into build/jupyter-packages what kernels of Jupyter and their tests need.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

install() { # PYTHON DIRECTORY PACKAGE...
	local python=$1 directory=$2 making=$2.making
	shift 2
	[[ "$(cat "$directory/made-of" 2>/dev/null)" != "$*"* ]] || return 0 # the same, or more
	rm -rf "$directory" "$making"
	"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
		--only-binary :all: --target "$making" "$@"
	echo "$*" >"$making/made-of"
	mv "$making" "$directory"
	echo "$directory: $* ($(du -sm "$directory" | cut -f1) MiB)"
}

mkdir -p "$top/build"
exec {lock}>"$top/build/packages-python.lock" # two suites may want the same
flock "$lock"
if [ "${1:-}" = --jupyter ]; then
	install /usr/bin/python3 "$top/build/jupyter-packages" ipykernel markdown-it-py nbclient nh3
	exit
fi
packages=(numpy pandas matplotlib Pillow)
all=
if [ "${1:-}" = --all ]; then
	all=yes
	packages+=(altair plotly polars scipy seaborn sympy)
	shift
fi
[ $# -gt 0 ] || set -- /usr/bin/python3
for python; do
	version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	mkdir -p "$top/build/python-packages"
	install "$python" "$top/build/python-packages/$version" "${packages[@]}"
	[ -z "$all" ] || install "$python" "$top/build/python-packages/$version-ipython" ipython
done
