"""A stand-in for the sidecar that misbehaves on request, so that the client itself can be tested: the method is a
Python expression list of byte strings to write, given as params {"write": [base64...], "pause": seconds}."""

import base64
import json
import sys
import time


def main():
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        request = json.loads(line)
        params = request.get("params", {})
        if request["method"] == "stderr":
            sys.stderr.write("x" * params["bytes"] + "\nlast words\n")
            sys.stderr.flush()
        if request["method"] == "die":
            return 3
        for piece in params.get("write", []):
            out.write(base64.b64decode(piece))
            out.flush()
            time.sleep(params.get("pause", 0))
        if request["method"] != "silent" and "id" in request:
            reply = json.dumps(
                {"jsonrpc": "2.0", "id": request["id"], "result": params.get("result", {})},
                ensure_ascii=params.get("ascii", True),
            )
            out.write(reply.encode() + b"\n")
            out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
