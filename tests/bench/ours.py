"""The sidecar as the bench calls it: from the bytes of a request written to those of its reply read, JSON outside of that."""

import os
import statistics
import time

import leftovers
from cpu import Group, Tree
from flight import Flight, Function
from kern_client import Client

WAYS = ("cold", "template", "spare", "zygote")
REPLY = b'{"jsonrpc":"2.0","id":'  # and no notification


class Requests(Flight):
    """One method, again and again; a result is checked by what `wanted` says of its fields."""

    def __init__(self, client, method, params, **wanted):
        self.client, self.method, self.params, self.wanted, self.lines = client, method, params, wanted, []

    def prepare(self):
        return self.client.prepare(self.method, self.params)

    def start(self, request):
        line, future = request
        self.client.write(line)
        return future.id

    def finished(self, timeout):
        lines = self.client.read_lines(timeout)
        self.lines += lines
        replies = [line for line in lines if line.startswith(REPLY)]
        return [(int(line[len(REPLY) : line.index(b",", len(REPLY))]), None) for line in replies]

    def land(self):
        self.client.take_lines(self.lines)
        self.lines = []

    def check(self, request, answer):
        result = request[1].result(0)
        found = {name: result[name] for name in self.wanted}
        if found != self.wanted:
            raise RuntimeError(f"a wrong result: {str(result)[:300]}")

    def once(self):
        """Milliseconds of one call that has to go well."""
        [call] = self.fly(calls=1)
        if call.why:
            raise RuntimeError(call.why)
        return (call.end - call.begin) * 1000


class Sidecar:
    """One for all rows; `threaded=False` keeps Python's thread switches out of the figures."""

    made = 0

    def __init__(self, program, args=()):
        Sidecar.made += 1
        self.group = Group.make(f"kern-bench-{os.getpid()}-{Sidecar.made}")
        command = program, ("--stdio", *args)
        self.client = Client(*(self.group.command(*command) if self.group else command), threaded=False)
        self.client.initialize()
        self.meter = self.group or Tree(self.client.pid)
        self.sessions = {}

    def session(self, way, **params):
        """Opened when it is first wanted: what nobody asked for makes nothing ahead."""
        key = way, *sorted(params.items())
        if key not in self.sessions:
            self.sessions[key] = self.client.open(start=way, **params)
        return self.sessions[key]

    def argv(self, way, argv, stdout):
        params = {"argv": argv, "sessionId": self.session(way)}
        return Requests(self.client, "run/argv", params, exitCode=0, stdout=stdout)

    def code(self, way, language, code, stdout):
        """`way` None: a call without a session."""
        params = {"language": language, "code": code, "timeoutMs": 120000}
        if way:
            params["sessionId"] = self.session(way)
        return Requests(self.client, "run/code", params, exitCode=0, stdout=stdout)

    def cell(self, language, code, **wanted):
        return self.kernel(self.session("template"), language, code, **wanted)

    def cell_without_files(self, language, code, **wanted):
        return self.kernel(self.session("template", trackFiles=False), language, code, **wanted)

    def kernel(self, session, language, code, **wanted):
        opened = self.client.call("kernel/open", {"sessionId": session, "language": language})
        params = {"kernelId": opened["kernelId"], "code": code}
        return Requests(self.client, "kernel/run", params, exitCode=0, cellStatus="ok", **wanted)

    def ping(self):
        """What a request and its reply cost by themselves, on both sides."""
        return Requests(self.client, "ping", {})

    def shell(self):
        return self._in_shell(self.client.call("shell/open", {"sessionId": self.session("template")}))

    def _in_shell(self, shell):
        return Requests(self.client, "shell/run", {**shell, "command": "echo 1"}, exitCode=0, stdout="1\n")

    def first_of_shell(self):
        opens = {"sessionId": self.session("template")}

        def first():
            line, future = self.client.prepare("shell/open", opens)
            begin = time.perf_counter()
            self.client.write(line)
            shell = future.result()
            self._in_shell(shell).once()
            took = (time.perf_counter() - begin) * 1000
            self.client.call("shell/close", shell)
            return took

        return Function(first)

    def close(self):
        self.client.close()
        if self.group:
            self.group.remove()


def timings(program):
    """{way: {step: median microseconds}} of python calls that find what is made ahead."""
    ours, found = Sidecar(program, ("--log-level", "debug")), {}
    for way in WAYS:
        call = ours.code(way, "python", "print(1)", "1\n")
        call.once()
        ours.client.stderr_lines.clear()
        for _ in range(20):
            call.once()
            time.sleep(0.05)
        steps = {}
        for line in list(ours.client.stderr_lines):
            for word in line.split() if "call_timings" in line else ():
                name, equals, value = word.partition("=")
                if equals:
                    steps.setdefault(name, []).append(int(value))
        found[way] = {name: statistics.median(values) for name, values in steps.items()}
    ours.close()
    return found


def charged_kib(groups):
    """What memory cgroups are charged with, kernel memory too, in boxes that are waiting."""
    found = [os.path.join(top, leaf, name) for top in groups if "memory" in top or os.path.exists(top + "/cgroup.controllers")
             for leaf in os.listdir(top) for name in ("memory.usage_in_bytes", "memory.current")]
    return sum(int(open(path, encoding="ascii").read()) for path in found if os.path.exists(path)) / 1024


def memory(program):
    """KiB: of processes an idle sidecar, one more session, one more interpreter that waits, with its share of
    what forks them; of its cgroup a spare."""
    def settle(client, done):
        client.wait_for(done, "what is made ahead", 30)
        time.sleep(0.5)
        return sum(map(leftovers.share_kib, leftovers.descendants(client.pid)))

    client = Client(program)
    client.initialize()
    idle = settle(client, lambda: True)
    client.open()
    one = settle(client, lambda: client.call("stats/get")["boxes"] == 0)
    before = charged_kib(leftovers.cgroups())
    client.open(prewarm=8)
    eight = settle(client, lambda: client.call("stats/get")["boxes"] == 8)
    spare = (charged_kib(leftovers.cgroups()) - before) / 8
    client.open(start="zygote", prewarm=8)
    parked = settle(client, lambda: client.call("stats/get")["boxes"] == 25)  # one more: their zygote
    client.close()
    return {"idle": idle, "session": one - idle, "spare": spare, "python": (parked - eight - (one - idle)) / 8}
