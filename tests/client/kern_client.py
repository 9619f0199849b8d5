"""A thin client of `kern-sidecar --stdio` for the tests and the bench: standard library only.

It owns one sidecar process: writing requests, splitting replies on byte 0x0A (never on what Python thinks a
line is), pairing replies with requests, and keeping what breaks the contract's promises in `violations`. It is
no example of a host's API: raw lines, a reader that can be paused and an undrained stderr are here because
tests need them."""

import base64
import collections
import json
import os
import pwd
import select
import signal
import subprocess
import threading
import time

# Characters that some line splitters take for a line end; the server escapes them (design: framing).
UNESCAPED = [b"\x7f", "\u0085".encode(), "\u2028".encode(), "\u2029".encode()]
DEFAULT_TIMEOUT = 60.0


class RpcError(Exception):
    """An error reply. Switch on `reason`."""

    def __init__(self, error):
        self.code = error.get("code")
        self.message = error.get("message", "")
        self.data = error.get("data") or {}
        self.reason = self.data.get("reason")
        super().__init__(f"{self.code} {self.reason}: {self.message} {self.data}")


class ConnectionLost(Exception):
    """The sidecar's stdout ended before the reply."""


class Future:
    """One request on its way; `events` are the notifications of its run, in the order they came."""

    def __init__(self, client, request_id, method, run_id=None):
        self.client, self.id, self.method, self.run_id = client, request_id, method, run_id
        self.events = []
        self.replies = 0
        self._reply = None
        self._lost = False
        self._event = threading.Event()

    def done(self):
        return self._reply is not None

    def wait(self, timeout=DEFAULT_TIMEOUT):
        """The whole reply object."""
        self.client._wait(self._event, timeout)
        if self._reply is not None:
            return self._reply
        if self._lost:
            raise ConnectionLost(f"no reply to {self.method}; stderr: {self.client.stderr_text()[-2000:]}")
        raise TimeoutError(
            f"no reply to {self.method} ({self.id}) within {timeout} s; " f"stderr: {self.client.stderr_text()[-2000:]}"
        )

    def result(self, timeout=DEFAULT_TIMEOUT):
        reply = self.wait(timeout)
        if "error" in reply:
            raise RpcError(reply["error"])
        return reply["result"]

    def error(self, timeout=DEFAULT_TIMEOUT):
        """The error of a request that has to fail."""
        reply = self.wait(timeout)
        if "error" not in reply:
            raise AssertionError(f"{self.method} succeeded: {reply}")
        return RpcError(reply["error"])


class Client:
    """`validator` (see schema.py) sees every request and every received message. `user` starts the program as that
    user (root only). `threaded=False`: the caller's own thread reads while it waits - what the bench measures."""

    def __init__(
        self,
        program,
        args=("--stdio",),
        env=None,
        user=None,
        cwd="/",
        validator=None,
        threaded=True,
        drain_stderr=True,
        pass_fds=(),
        stdin=subprocess.PIPE,
    ):
        as_user = {}
        if user is not None and os.geteuid() == 0 and user != "root":
            entry = pwd.getpwnam(user)
            as_user = dict(user=entry.pw_uid, group=entry.pw_gid, extra_groups=[])
        self.validator, self.threaded = validator, threaded
        self.violations = []
        self.orphans = []  # error replies without an id
        self.notifications = collections.deque(maxlen=10000)
        self.stderr_lines = collections.deque(maxlen=200)
        self.max_line = 32 * 1024
        self.start_way = None  # of sessions that do not say how their boxes are started
        self._futures, self._runs, self._finished = {}, {}, collections.deque(maxlen=4096)
        self._methods = {}
        self._changed = threading.Condition()
        self._write_lock = threading.Lock()
        self._next = 0
        self._rest = b""
        self._eof = False
        self._reading = threading.Event()
        self._reading.set()
        self.process = subprocess.Popen(
            [program, *args],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env=env,
            pass_fds=pass_fds,
            **as_user,
        )
        self.pid = self.process.pid
        self._threads = []
        if threaded:
            self._thread(self._read_loop)
        if drain_stderr:
            self._thread(self._stderr_loop)

    # -- requests

    def send(self, method, params=None, request_id=None, unchecked=False):
        """Send a request; `unchecked` is the way for requests that are wrong on purpose."""
        line, future = self._prepare(method, params, request_id, unchecked)
        self.send_line(line)
        return future

    def send_all(self, requests, unchecked=False):
        """Several requests [(method, params)] in one write."""
        prepared = [self._prepare(method, params, None, unchecked) for method, params in requests]
        self.send_line(b"\n".join(line for line, _ in prepared))
        return [future for _, future in prepared]

    def prepare(self, method, params=None):
        """The line of a request, for write(), and its future: for who measures, and wants no JSON inside of the measure."""
        line, future = self._prepare(method, params, None, False)
        return line + b"\n", future

    def call(self, method, params=None, timeout=DEFAULT_TIMEOUT):
        return self.send(method, params).result(timeout)

    def fail(self, method, params=None, timeout=DEFAULT_TIMEOUT):
        """A request that must be refused -> its RpcError."""
        return self.send(method, params, unchecked=True).error(timeout)

    def notify(self, method, params=None):
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if self.validator:
            self._collect(self.validator.request(message))
        self.send_line(json.dumps(message).encode())

    def cancel(self, future):
        self.notify("$/cancel", {"id": future.id})

    def send_line(self, line):
        """Raw bytes and a line feed."""
        self.write(line + b"\n")

    def write(self, data):
        with self._write_lock:
            view = memoryview(data)
            while view:
                view = view[os.write(self.process.stdin.fileno(), view) :]

    def _prepare(self, method, params, request_id, unchecked):
        if request_id is None:
            self._next += 1
            request_id = self._next
        params = params if params is not None else {}
        if self.start_way and method == "session/open" and isinstance(params, dict):
            params = {"start": self.start_way, **params}
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        if self.validator and not unchecked:
            self._collect(self.validator.request(message))
        run_id = params.get("runId") if isinstance(params, dict) and method in ("run/code", "run/argv") else None
        future = Future(self, request_id, method, run_id if isinstance(run_id, str) else None)
        with self._changed:
            self._futures[json.dumps(request_id)] = future
            if future.run_id is not None and future.run_id not in self._runs:
                self._runs[future.run_id] = future
        return json.dumps(message).encode(), future

    # -- conveniences

    def initialize(self, **params):
        params = {"protocolVersion": 1, "client": {"name": "kern-tests", "version": "1"}, **params}
        result = self.call("initialize", params)
        self.max_line = params.get("capabilities", {}).get("maxLineBytes", self.max_line)
        self.welcome = result
        return result

    def open(self, **params):
        return self.call("session/open", params)["sessionId"]

    def run(self, *argv, timeout=DEFAULT_TIMEOUT, **params):
        return self.call("run/argv", {**params, "argv": list(argv)}, timeout)

    def code(self, code, timeout=DEFAULT_TIMEOUT, **params):
        return self.call("run/code", {**params, "code": code}, timeout)

    def start(self, *argv, **params):
        """Begin a run and return its future once run/started has come."""
        self._next += 1
        params = {"runId": f"run-{self._next}", "stream": "live", **params}
        future = self.send("run/argv", {**params, "argv": list(argv)})
        self.wait_for(lambda: future.events or future.done(), f"run/started of {params['runId']}")
        return future

    def text(self, value):
        """The bytes of a Text: a string, {"base64"} or {"blob"}."""
        if isinstance(value, str):
            return value.encode()
        if "base64" in value:
            return base64.b64decode(value["base64"], validate=True)
        blob, data, offset = value["blob"], b"", 0
        while True:
            page = self.call("blob/read", {"id": blob["id"], "offset": offset, "length": 1 << 20})
            data += page["text"].encode() if "text" in page else base64.b64decode(page["base64"], validate=True)
            if page["eof"]:
                break
            if page["nextOffset"] <= offset:
                raise AssertionError(f"blob/read does not advance: {page}")
            offset = page["nextOffset"]
        if len(data) != blob["bytes"]:
            raise AssertionError(f"blob of {blob['bytes']} bytes read as {len(data)}")
        return data

    def out(self, result):
        """stdout of a result as str."""
        return self.text(result["stdout"]).decode()

    def wait_for(self, condition, what, timeout=DEFAULT_TIMEOUT):
        """Wait until condition() holds; it is looked at whenever a message has come, and every 50 ms."""
        deadline = time.monotonic() + timeout
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{what} did not come within {timeout} s; stderr: {self.stderr_text()[-2000:]}")
            if self.threaded:
                with self._changed:
                    self._changed.wait(min(left, 0.05))
            else:
                self._pump(min(left, 0.05))

    def output_events(self, future):
        return [e["params"] for e in future.events if e["method"] == "run/output"]

    # -- the end

    def pause_reading(self):
        """Be a client that does not read. What the reader thread has in hand is still delivered."""
        self._reading.clear()

    def resume_reading(self):
        self._reading.set()

    def close(self, timeout=30.0):
        """EOF on the sidecar's stdin -> its exit status."""
        self._reading.set()
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"still alive {timeout} s after EOF; stderr: {self.stderr_text()[-2000:]}") from None
        finally:
            for thread in self._threads:
                thread.join(10)
            for pipe in (self.process.stdout, self.process.stderr):
                if not any(thread.is_alive() for thread in self._threads):
                    pipe.close()

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)

    def stderr_text(self):
        return "\n".join(list(self.stderr_lines))

    # -- receiving

    def _thread(self, target):
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _wait(self, event, timeout):
        if self.threaded:
            event.wait(timeout)
            return
        deadline = time.monotonic() + timeout
        while not event.is_set() and not self._eof:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._pump(left)

    def _pump(self, timeout):
        if select.select([self.process.stdout], [], [], timeout)[0]:
            self._take(os.read(self.process.stdout.fileno(), 1 << 16))

    def _read_loop(self):
        while not self._eof:
            self._reading.wait()
            self._take(os.read(self.process.stdout.fileno(), 1 << 16))

    def read_lines(self, timeout=DEFAULT_TIMEOUT):
        """The lines that came, once there is one, and nobody has looked into them: take_lines() does. For `threaded=False`."""
        while not self._eof:
            if not select.select([self.process.stdout], [], [], timeout)[0]:
                raise TimeoutError(f"no line within {timeout} s; stderr: {self.stderr_text()[-2000:]}")
            lines = self._split(os.read(self.process.stdout.fileno(), 1 << 16))
            if lines:
                return lines
        raise ConnectionLost(f"no line; stderr: {self.stderr_text()[-2000:]}")

    def _split(self, data):
        if not data:
            self._lost()
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines

    def _take(self, data):
        self.take_lines(self._split(data))

    def take_lines(self, lines):
        for line in lines:
            try:
                self._message(line)
            except Exception as problem:  # a reader must outlive any line, and the test must see what it was
                self.violations.append(f"{type(problem).__name__} {problem}: {line[:500]!r}")
        with self._changed:
            self._changed.notify_all()

    def _message(self, line):
        if self.validator:
            self._check_line(line)
        message = json.loads(line)
        if self.validator:
            self._collect(self._validate(message))
        if "method" in message:
            self._notification(message)
        elif message.get("id") is None:
            self.orphans.append(message)
        else:
            self._reply(message)

    def _reply(self, message):
        key = json.dumps(message["id"])
        with self._changed:
            future = self._futures.pop(key, None)
            if future is None:
                self.violations.append(f"a reply that nobody waits for: {message}")
                return
            if future.run_id is not None and self._runs.get(future.run_id) is future:
                del self._runs[future.run_id]
                self._finished.append(future.run_id)
        future.replies += 1
        future._reply = message
        future._event.set()

    def _notification(self, message):
        self.notifications.append(message)
        run_id = message.get("params", {}).get("runId")
        if run_id is None or not message["method"].startswith("run/"):
            return
        with self._changed:
            future = self._runs.get(run_id)
            if future is None and message["method"] == "run/started":
                future = self._futures.get(json.dumps(message["params"].get("id")))
                if future is not None:
                    future.run_id = run_id
                    self._runs[run_id] = future
        if future is not None:
            future.events.append(message)
        else:
            self.violations.append(f"a notification outside the run's life: {message}")

    def _check_line(self, line):
        if len(line) + 1 > self.max_line:
            self.violations.append(f"a line of {len(line)} bytes, more than {self.max_line}")
        for raw in UNESCAPED:
            if raw in line:
                self.violations.append(f"unescaped {raw!r} in {line[:200]!r}")
        if any(byte < 0x20 for byte in line):
            self.violations.append(f"a control byte in {line[:200]!r}")

    def _validate(self, message):
        if "method" in message:
            return self.validator.notification(message)
        future = self._futures.get(json.dumps(message.get("id")))
        return self.validator.reply(future.method if future else None, message)

    def _collect(self, problems):
        self.violations.extend(problems)

    def _lost(self):
        self._eof = True
        if self._rest:
            self.violations.append(f"the last line has no LF: {self._rest[:200]!r}")
        with self._changed:
            for future in self._futures.values():
                future._lost = True
                future._event.set()
            self._changed.notify_all()

    def _stderr_loop(self):
        for line in self.process.stderr:
            self.stderr_lines.append(line.decode("utf-8", "backslashreplace").rstrip("\n"))
