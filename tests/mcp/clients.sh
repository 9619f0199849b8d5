#!/usr/bin/env bash
# tests/mcp/clients.sh: puts the official clients into build/mcp-clients, once: the TypeScript SDK in both lines, the Inspector, and the
# Python package (which wants Python 3.10). Versions are pinned: a client that changes must not look like a server that broke.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
place=$top/build/mcp-clients
node=(@modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/client@2.4.0 @modelcontextprotocol/inspector@0.15.0)
python=("mcp==1.30.0")
wanted="${node[*]} ${python[*]}"

[ "$(cat "$place/made-of" 2>/dev/null)" != "$wanted" ] || exit 0
rm -rf "$place" "$place.making"
mkdir -p "$place.making/node"
npm install --prefix "$place.making/node" --no-audit --no-fund --ignore-scripts --silent "${node[@]}"
/usr/bin/python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --only-binary :all: \
	--target "$place.making/python" "${python[@]}"
chmod -R a+rX "$place.making"
echo "$wanted" >"$place.making/made-of"
mv "$place.making" "$place"
echo "$place: $wanted"
