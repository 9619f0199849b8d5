"""One request on its way, and how its caller is told that something has come."""

import asyncio
import threading
from collections import deque
from typing import Any, Deque, Dict, Mapping, Optional

Message = Dict[str, Any]
EVENTS_MAX_BYTES = 4 << 20  # output that a slow callback has not taken yet; what comes on top is dropped


class Call:
    """A request; a thread waits for it."""

    waits_in_thread = True

    def __init__(self, request_id: int, method: str, run_id: Optional[str] = None) -> None:
        self.id = request_id
        self.method = method
        self.run_id = run_id
        self.reply: Optional[Message] = None
        self.events: Deque[Mapping[str, Any]] = deque()
        self._next_seq = 0
        self._event_bytes = 0
        self._token = threading.Lock()  # taken: nothing new has come
        self._token.acquire()

    def add_event(self, params: Mapping[str, Any]) -> None:
        seq: int = params.get("seq", self._next_seq)  # a question has none
        if seq < self._next_seq:
            return  # a line that came twice
        size: int = params.get("bytes", 0)
        if self._event_bytes + size <= EVENTS_MAX_BYTES:
            self.events.append(params)
            self._event_bytes += size
        if "seq" in params:
            self._next_seq = seq + 1

    def take_event(self) -> Mapping[str, Any]:
        event = self.events.popleft()
        self._event_bytes -= event.get("bytes", 0)
        return event

    def wake(self) -> None:
        try:
            self._token.release()
        except RuntimeError:
            pass  # woken already

    def sleep(self, seconds: float) -> None:
        """Until woken, or for that long."""
        self._token.acquire(timeout=seconds)


class AsyncCall(Call):
    """A request; a task waits for it."""

    waits_in_thread = False

    def __init__(self, request_id: int, method: str, run_id: Optional[str] = None) -> None:
        super().__init__(request_id, method, run_id)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._woken: Optional["asyncio.Future[None]"] = None

    def wake(self) -> None:
        if threading.get_ident() == self._thread:
            self._wake_here()
            return
        try:
            self._loop.call_soon_threadsafe(self._wake_here)
        except RuntimeError:
            pass  # the loop is closed, and the task with it

    def _wake_here(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    async def news(self) -> None:
        """Until something has come."""
        if self.reply is not None or self.events:
            return
        self._woken = self._loop.create_future()
        await self._woken
