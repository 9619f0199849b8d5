"""A raw client of `kern-sidecar --mcp` for the tests: standard library only, one line a message, no help.

`era` is the version that each request names in its `_meta` (since 2026-07-28), or None: then `initialize` comes first."""

import json
import os
import pwd
import queue
import subprocess
import threading

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"


class Mcp:
    def __init__(self, program, env, user=None, era=None):
        as_user = {}
        if user is not None and os.geteuid() == 0 and user != "root":
            entry = pwd.getpwnam(user)
            as_user = dict(user=entry.pw_uid, group=entry.pw_gid, extra_groups=[])
        self.era, self.last = era, 0
        self.lines = queue.Queue()
        self.kept = []  # messages that nobody has asked for yet
        self.process = subprocess.Popen(
            [program, "--mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd="/",
            env=env,
            **as_user,
        )
        self.pid = self.process.pid
        self.stderr = b""
        threading.Thread(target=self._read, daemon=True).start()
        self._errors = threading.Thread(target=self._read_errors, daemon=True)
        self._errors.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            self.stderr += line

    def send_raw(self, line):
        self.process.stdin.write(line)

    def send(self, method, params=None, request_id=None):
        if self.era and method != "initialize":
            meta = {META + "protocolVersion": self.era, META + "clientCapabilities": {}}
            params = {**(params or {}), "_meta": {**meta, **(params or {}).get("_meta", {})}}
        message = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}
        if request_id is not None:
            message["id"] = request_id
        self.send_raw(json.dumps(message).encode() + b"\n")

    def next(self, wanted, timeout=60):
        """The first message, kept or to come, for which wanted() is true."""
        for message in self.kept:
            if wanted(message):
                self.kept.remove(message)
                return message
        while True:
            message = self.lines.get(timeout=timeout)
            if message is None:
                raise EOFError(self.stderr.decode(errors="replace"))
            if wanted(message):
                return message
            self.kept.append(message)

    def begin(self, method, params=None):
        self.last += 1
        self.send(method, params, self.last)
        return self.last

    def reply(self, request_id):
        return self.next(lambda m: m.get("id") == request_id and "method" not in m)

    def call(self, method, params=None):
        reply = self.reply(self.begin(method, params))
        assert "error" not in reply, reply
        return reply["result"]

    def fail(self, method, params=None):
        return self.reply(self.begin(method, params))["error"]

    def initialize(self, version="2025-11-25"):
        info = {"name": "test", "version": "1"}
        welcome = self.call("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": info})
        self.send("notifications/initialized")
        return welcome

    def tool(self, name, **arguments):
        return self.call("tools/call", {"name": name, "arguments": arguments})

    def text(self, name, **arguments):
        """The texts of a tool that has not failed, joined."""
        result = self.tool(name, **arguments)
        assert result["isError"] is False, result
        return "".join(block["text"] for block in result["content"] if block["type"] == "text")

    def error(self, name, **arguments):
        result = self.tool(name, **arguments)
        assert result["isError"] is True, result
        return result["content"][0]["text"]

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=20)
        self._errors.join(timeout=5)
        return code
