"""One sidecar and everything that goes over its pipes, for any number of threads and event loops.

There is no reader thread: who waits for a reply reads for everybody, so that a call which is alone costs no switch of
threads. At most one reads at a time; it hands the turn on when its own reply has come. An event loop reads when its
selector says that there is something. Every step leaves a state from which another can go on, because Ctrl-C may strike
between any two of them."""

import asyncio
import itertools
import json
import logging
import os
import select
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, Mapping, Optional, Type, TypeVar

from . import _protocol
from ._calls import AsyncCall, Call, Message
from ._lines import Lines
from ._process import Process, find_program
from ._version import __version__
from .errors import SandboxError, SidecarLost, error_of

log = logging.getLogger("kern_sandbox")
LONGEST_OUT = 8 << 20  # what the sidecar reads
LONGEST_IN = 1 << 20  # what we ask it to send at most
QUEUED = 65536  # runs that may wait for a place: a host with thousands of tasks is no error
CANCEL_SECONDS = 10.0  # after Ctrl-C: how long a box may take to be gone
LOST_TURN_SECONDS = 0.5  # a turn to read that nobody took after Ctrl-C is found within this time
IDLE_SECONDS = 0.05  # how often output of idle kernels is taken away

C = TypeVar("C", bound=Call)
OnKernel = Callable[[str, Mapping[str, Any]], None]  # method and params; must neither wait nor make calls
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


class Connection:
    """A sidecar, from its start to its end."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.ended: Optional[str] = None  # why there is no more to expect
        self._lines = Lines(process.output, LONGEST_IN)
        self._out = os.fdopen(process.input, "wb", buffering=LONGEST_OUT + 65536, closefd=False)
        self._out_lock = threading.Lock()
        self._ids = itertools.count(1)
        self._pending: Dict[int, Call] = {}
        self._runs: Dict[str, Call] = {}
        self._waiting: Dict[Call, None] = {}  # threads that wait while another reads
        self._turn: Dict[int, object] = {}  # 0: who reads
        self._watching: Dict[asyncio.AbstractEventLoop, int] = {}
        self._discarded: Deque[str] = deque()
        self._kernels: Dict[str, Optional[OnKernel]] = {}
        self.welcome: Mapping[str, Any] = {}

    @classmethod
    def start(cls) -> "Connection":
        connection = cls(Process(find_program()))
        try:
            connection.welcome = connection.call("initialize", connection._introduction())
        except BaseException as problem:
            connection.close()
            if isinstance(problem, SidecarLost):
                raise SandboxError(
                    f"{connection.process.program} is no kern-sidecar that works: it {connection.ended}",
                    reason="start_failed",
                    hint="KERN_SIDECAR names the program",
                ) from None
            raise
        return connection

    def _introduction(self) -> Message:
        return {
            "protocolVersion": _protocol.VERSION,
            "client": {"name": "kern_sandbox", "version": __version__},
            "processId": os.getpid(),
            "capabilities": {"maxLineBytes": LONGEST_IN},
            "limits": {"queued": QUEUED},
        }

    # -- requests

    def new_call(self, kind: Type[C], method: str, run_id: Optional[str] = None) -> C:
        return kind(next(self._ids), method, run_id)

    def post(self, call: Call, params: Mapping[str, Any]) -> None:
        """Sends a request; its reply will come to the call."""
        line = _line({"jsonrpc": "2.0", "id": call.id, "method": call.method, "params": params})
        if self.ended is not None:
            raise SidecarLost(f"the sidecar {self.ended}", reason="gone", hint="the next session has a new one")
        self._close_discarded()
        self._pending[call.id] = call
        if call.run_id is not None:
            self._runs[call.run_id] = call
        self._write(line)

    def cancel(self, call: Call) -> None:
        """Asks for an early end; the reply comes all the same."""
        if call.reply is None and self.ended is None:
            self._write(_line({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": call.id}}))

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """A request and its result, for a thread."""
        call = self.new_call(Call, method)
        try:
            self.post(call, params)
            while self.step(call):
                call.take_event()
        except BaseException:
            self.give_up(call)
            raise
        return self.outcome(call)

    def outcome(self, call: Call) -> Any:
        """The result of a request that has its reply."""
        reply = call.reply
        assert reply is not None
        if "error" in reply:
            raise error_of(reply["error"])
        if "result" not in reply:
            raise SidecarLost(
                f"the sidecar {self.ended} while {call.method} was running",
                reason="gone",
                hint="the next call starts a new one",
            )
        return reply["result"]

    def give_up(self, call: Call) -> None:
        """After Ctrl-C: nothing of the call shall go on. A second Ctrl-C does not wait for that."""
        if call.id not in self._pending:
            return
        self.cancel(call)
        alarm = threading.Timer(CANCEL_SECONDS, self.close)
        alarm.daemon = True
        alarm.start()
        try:
            while self.step(call):
                call.take_event()
        finally:
            alarm.cancel()

    def discard(self, session_id: str) -> None:
        """Closes a session that nobody has any more; may be called by the garbage collector, in the middle of anything."""
        self._discarded.append(session_id)

    def _close_discarded(self) -> None:
        while self._discarded:
            call = self.new_call(Call, "session/close")
            self._pending[call.id] = call
            params = {"sessionId": self._discarded.popleft()}
            self._write(_line({"jsonrpc": "2.0", "id": call.id, "method": call.method, "params": params}))

    def _write(self, line: bytes) -> None:
        try:
            with self._out_lock:
                # Both keep what a signal leaves unwritten: the next write begins with it.
                self._out.write(line)
                self._out.flush()
        except (BrokenPipeError, ValueError):
            self._end(self.process.how_it_ended())
            raise SidecarLost(
                f"the sidecar {self.ended} before the call", reason="gone", hint="the next call starts a new one"
            ) from None

    # -- waiting

    def step(self, call: Call) -> bool:
        """A thread waits until there are events or the reply; False when the reply has come and all events are taken."""
        while call.reply is None and not call.events:
            self._waiting[call] = None  # before the look at the turn: who ends one wakes whom it finds here
            if self._turn.setdefault(0, call) is not call:
                call.sleep(LOST_TURN_SECONDS)
                continue
            try:
                self._read_for(call)
            finally:
                self._pass_on(call)
        self._waiting.pop(call, None)
        return bool(call.events)

    def _read_for(self, call: Call) -> None:
        self._dispatch_all()
        while call.reply is None and not call.events and self.ended is None:
            self._read_once()
        if self.ended is not None:
            self._end(self.ended)

    def _read_once(self) -> None:
        try:
            more = self._lines.read()
        except (OSError, ValueError) as problem:
            self._end(f"cannot be read: {problem}")
            return
        if not more:
            self._end(self.process.how_it_ended())
            return
        self._dispatch_all()

    def _pass_on(self, reader: object) -> None:
        """Ends the turn of a reader; somebody who waits goes on."""
        if self._turn.get(0) is reader:
            del self._turn[0]
        for call in list(self._waiting):
            if call is not reader and call.reply is None:
                call.wake()
                return

    async def step_async(self, call: AsyncCall) -> bool:
        """The same for a task."""
        loop = asyncio.get_running_loop()
        if call.reply is None and not call.events:
            self._watch(loop)
            try:
                while call.reply is None and not call.events:
                    await call.news()
            finally:
                self._unwatch(loop)
        return bool(call.events)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        count = self._watching.get(loop, 0)
        if count == 0:
            loop.add_reader(self.process.output, self._readable, loop)
            loop.call_soon(self._readable, loop)  # what an interrupted reader has left
        self._watching[loop] = count + 1

    def _unwatch(self, loop: asyncio.AbstractEventLoop) -> None:
        self._watching[loop] -= 1
        if self._watching[loop] == 0:
            del self._watching[loop]
            if not loop.is_closed():
                loop.remove_reader(self.process.output)

    def _readable(self, reader: object) -> None:
        self.drain(reader)
        if self.ended is not None and isinstance(reader, asyncio.AbstractEventLoop):
            reader.remove_reader(self.process.output)

    def drain(self, reader: object) -> None:
        """Reads what there is, unless somebody else is reading."""
        if self._turn.setdefault(0, reader) is not reader:
            return
        try:
            self._dispatch_all()
            if self.ended is None and _has_something(self.process.output):
                self._read_once()
        finally:
            self._pass_on(reader)

    # -- what comes

    def _dispatch_all(self) -> None:
        for line in self._lines.whole():
            try:
                self._dispatch(json.loads(line))
            except (ValueError, KeyError, TypeError) as problem:
                self._end(f"wrote what is no message of the protocol ({type(problem).__name__}: {line[:200]!r})")
                return

    def _dispatch(self, message: Message) -> None:
        if "method" in message:
            self._notify(message["method"], message["params"])
            return
        call = self._pending.get(message["id"])
        if call is not None:
            call.reply = message
            call.wake()
            self._forget(call)

    def _notify(self, method: str, params: Message) -> None:
        if method in ("run/output", "run/display", "run/inputWanted"):
            run = self._runs.get(params["runId"])
            if run is not None:
                run.add_event(params)
                run.wake()
        elif method in ("kernel/output", "kernel/state"):
            on_kernel = self._kernels.get(params["kernelId"])
            if on_kernel is not None:
                try:
                    on_kernel(method, params)
                except Exception:
                    log.exception("a callback of kern_sandbox failed")

    def _forget(self, call: Call) -> None:
        self._pending.pop(call.id, None)
        if call.run_id is not None and self._runs.get(call.run_id) is call:
            del self._runs[call.run_id]

    # -- kernels, which write when no call is running

    def kernel_opened(self, kernel_id: str, on_kernel: Optional[OnKernel] = None) -> None:
        first = not self._kernels
        self._kernels[kernel_id] = on_kernel
        if first:
            threading.Thread(target=self._read_idly, name="kern-sidecar idle", daemon=True).start()

    def kernel_closed(self, kernel_id: str) -> None:
        self._kernels.pop(kernel_id, None)

    def _read_idly(self) -> None:
        pause = threading.Event()
        while self._kernels and self.ended is None:
            pause.wait(IDLE_SECONDS)
            if not self._turn:
                self.drain(pause)

    # -- the end

    def _end(self, why: str) -> None:
        """No more replies: every call that waits is told so."""
        if self.ended is None:
            self.ended = why
        for call in list(self._pending.values()):
            if call.reply is None:
                call.reply = {}
            call.wake()
        self._pending.clear()
        self._runs.clear()

    def close(self) -> None:
        """Ends the sidecar with everything in it."""
        self._end("was closed")
        null = os.open(os.devnull, os.O_RDWR)
        # The number stays ours, in case that somebody is writing to it just now.
        os.dup2(null, self.process.input, inheritable=False)
        os.close(null)
        self.process.end()

    def __del__(self) -> None:
        if self.ended is not None:  # nobody can be reading or writing now
            try:
                self._out.close()
            except OSError:
                pass
            self.process.close_pipes()

    def abandon(self) -> None:
        """In a forked child: the sidecar is the parent's. Holding its pipes would keep it alive."""
        self.ended = "belongs to the process that forked this one"
        null = os.open(os.devnull, os.O_RDWR)
        for fd in self.process.pipes():
            os.dup2(null, fd, inheritable=False)
        os.close(null)


def _line(message: Message) -> bytes:
    try:
        line = _encode(message).encode() + b"\n"
    except UnicodeEncodeError:
        raise SandboxError("the text has a lone surrogate, which is no character", reason="invalid_value") from None
    if len(line) > LONGEST_OUT:
        raise SandboxError(f"the request has {len(line)} bytes, more than {LONGEST_OUT}", reason="line_too_long")
    return line


def _has_something(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
