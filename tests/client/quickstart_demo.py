"""The main job, shown to a person: code in fresh boxes on the host's own /usr, through `kern-sidecar --stdio`.

Exits 1 when a call did not do what it should, so that it can stand in a script. `quickstart_demo.py PROGRAM`."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from kern_client import Client  # noqa: E402

failures = 0


def indent(text):
    return "".join(f"      {line}\n" for line in text.rstrip("\n").split("\n")) if text else ""


def show(title, code, client, request, right):
    """Runs one request, prints what went in and what came out; `right` says whether that is what it should be."""
    global failures
    method, params = request
    begin = time.monotonic()
    result = client.call(method, params)
    took = (time.monotonic() - begin) * 1000
    print(f"\n  {title}   {took:.1f} ms")
    print(indent(code), end="")
    out, err = client.out(result), client.text(result["stderr"]).decode()
    print("    ->\n" + indent(out) + indent(err), end="")
    for entry in result["results"]:
        print(f"      value: {client.text(entry['data']['text/plain']).decode()}")
    if "fault" in result:
        print(f"      fault: {result['fault']['type']}: {result['fault']['message']}")
    print(f"      exit code {result['exitCode']}", end="")
    if result["files"]:
        print("; files: " + ", ".join(f"{f['path']} {f['change']}" for f in result["files"]), end="")
    print()
    if not right(result, out):
        failures += 1
        print("      THIS IS NOT WHAT IT SHOULD BE")


def main():
    program = sys.argv[1]
    begin = time.monotonic()
    client = Client(os.path.abspath(program))
    welcome = client.initialize()
    ready = time.monotonic()
    session = client.call("session/open", {})
    print(f"kern-sidecar {welcome['server']['version']}, ready in {(ready - begin) * 1000:.1f} ms")
    print(
        f"Session {session['sessionId']} on the host's own /usr, opened in {(time.monotonic() - ready) * 1000:.1f} ms."
    )
    print(
        "What holds a call: "
        + ", ".join(
            f"{name} {fact['value']} ({fact['enforced']})"
            for name, fact in session["effective"].items()
            if "value" in fact
        )
    )

    def code(language, text, **more):
        return "run/code", {"language": language, "code": text, "sessionId": session["sessionId"], **more}

    python = "import platform\nprint('python', platform.python_version())\nsum(n * n for n in range(1000))"
    show(
        "python, with a value",
        python,
        client,
        code("python", python),
        lambda r, out: out.startswith("python 3") and r["results"][0]["data"]["text/plain"] == "332833500",
    )
    bash = "printf 'pear\\napple\\nplum\\n' | sort | tee fruit.txt | head -1"
    show(
        "bash, a pipeline that writes a file",
        bash,
        client,
        code("bash", bash),
        lambda r, out: out == "apple\n" and [f["path"] for f in r["files"]] == ["fruit.txt"],
    )
    if any(os.access(f"{directory}/node", os.X_OK) for directory in ("/usr/bin", "/usr/local/bin")):
        node = "console.log('node', process.version, require('fs').readFileSync('fruit.txt', 'utf8').split('\\n')[1])"
        show(
            "node, on the file of the call before",
            node,
            client,
            code("node", node),
            lambda r, out: out.endswith(" pear\n"),
        )
    else:
        print("\n  node: not in this machine's /usr, skipped (apt-get install nodejs)")
    loop = "print('this much came out', flush=True)\nwhile True: pass"
    show(
        "a loop without end, 500 ms allowed",
        loop,
        client,
        code("python", loop, timeoutMs=500),
        lambda r, out: out == "this much came out\n" and r["fault"]["type"] == "timeout",
    )

    client.call("session/close", {"sessionId": session["sessionId"]})
    status = client.close()
    print(
        f"\nDone; the sidecar ended with status {status}."
        + (f" {failures} of the calls went wrong." if failures else "")
    )
    return 1 if failures or status != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
