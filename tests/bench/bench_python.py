#!/usr/bin/env python3
"""What the Python package costs on top of the protocol: the same request through `kern_sandbox` and as raw bytes over the
same pipes, interleaved.

    tests/bench/bench_python.py [--program P] [--calls N]"""

import argparse
import json
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "integrations", "python"))


def raw(connection, method, params, number):
    """Writes a request and reads to the end of its reply, with no more Python than that takes."""
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    line = json.dumps(request).encode() + b"\n"
    ending = f'"id":{number},"result"'.encode()
    connection._turn[0] = raw  # nobody else reads now
    begin = time.perf_counter()
    os.write(connection.process.input, line)
    data = b""
    while not (data.endswith(b"\n") and ending in data):
        data += os.read(connection.process.output, 1 << 20)
    took = time.perf_counter() - begin
    del connection._turn[0]
    return took


def timed(function):
    begin = time.perf_counter()
    assert function() is not False
    return time.perf_counter() - begin


def report(name, package, bare):
    package, bare = (sorted(1e6 * t for t in times) for times in (package, bare))
    over = statistics.median(package) - statistics.median(bare)
    print(f"{name:28} package {statistics.median(package):8.0f} us   raw {statistics.median(bare):8.0f} us   over {over:6.0f} us")
    return over


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=os.path.join(TOP, "build", "kern-sidecar"))
    parser.add_argument("--calls", type=int, default=400)
    options = parser.parse_args()
    os.environ["KERN_SIDECAR"] = os.path.abspath(options.program)
    import kern_sandbox as kern
    from kern_sandbox import _shared

    with kern.Sandbox() as box, box.kernel() as kernel:
        connection = _shared.connection()
        session = box._core._session[1]
        rows = {
            "ping": (lambda: connection.call("ping", {}), "ping", {}),
            "kernel cell": (lambda: kernel.run_code("1"), "kernel/run", {"kernelId": kernel._id, "code": "1"}),
            "run(['true'])": (lambda: box.run(["true"]), "run/argv", {"sessionId": session, "argv": ["true"]}),
        }
        for name, (call, method, params) in rows.items():
            package, bare = [], []
            for number in range(options.calls):
                if number % 2:  # what comes second pays for the end of the box before
                    package.append(timed(call))
                bare.append(raw(connection, method, params, 1_000_000 + number))
                if not number % 2:
                    package.append(timed(call))
            report(name, package, bare)
    kern.shutdown()


if __name__ == "__main__":
    main()
