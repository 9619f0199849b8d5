#!/usr/bin/env bash
# tests/nvim.sh USER: the tests of integrations/nvim in a headless Neovim, on the sidecar of build/, as USER: yourself, or
# kerntest when you are root.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
user=$1
command -v nvim >/dev/null || { echo "there is no nvim (Debian's neovim)"; exit 1; }

place=$(mktemp -d /tmp/kern-nvim-XXXXXX)
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"
mkdir -p "$place/home" "$place/tmp" "$place/test"
cp -r "$top/integrations/nvim" "$place/plugin"
chmod -R go=u-w "$place/plugin"

clean=(env -i "PATH=$PATH" LANG=C.UTF-8 "HOME=$place/home" "TMPDIR=$place/tmp" "KERN_SIDECAR=$top/build/kern-sidecar" "KERN_TEST_DIR=$place/test"
	"KERN_TEST_PLUGIN=$place/plugin")
as=()
if [ "$user" != "$(id -un)" ]; then
	id "$user" >/dev/null 2>&1 || useradd --create-home --shell /bin/sh "$user"
	as=(runuser -u "$user" --)
	chown "$user" "$place/home" "$place/tmp" "$place/test" "$place/plugin/doc"
fi
cd "$place"
"${as[@]}" "${clean[@]}" timeout 120 nvim --headless -u NONE -i NONE --cmd "set rtp^=$place/plugin" -c "helptags $place/plugin/doc" \
	-c "luafile $place/plugin/test/run.lua" -c cquit 2>"$place/errors" || { cut -c1-300 "$place/errors" | tail -n 20; exit 1; }
for _ in {1..100}; do # a sidecar ends a moment after its editor
	left=$(find "$place/tmp" -mindepth 1 -not -name 'kern-sidecar-*' -not -path '*/nvim*' | head -n 5)
	[ -n "$left" ] || exit 0
	sleep 0.1
done
printf 'left behind:\n%s\n' "$left"
exit 1
