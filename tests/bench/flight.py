"""Calls on their way: so many at once, for a number of calls or for a time, and when each began and ended.

A way of calling is a `Flight` (answers come in any order; `Threads` is one) or a `Function` (one call is one call of a function)."""

import concurrent.futures
import queue
import time
from typing import NamedTuple, Optional

DEADLINE = 120.0  # of a call: nothing of this bench takes that long unless it hangs


class Call(NamedTuple):
    begin: float
    end: float
    why: Optional[str]  # it failed; None: it did not


def reason(problem):
    name = "" if type(problem) is RuntimeError else f"{type(problem).__name__}: "  # our own word for a wrong answer
    return f"{name}{problem}" if str(problem) else type(problem).__name__


class Flight:
    """To make one: `prepare()` -> a request, all that needs no clock; `start(request)` -> its token; `finished(timeout)` ->
    tokens and answers, once there is one; `land()`, when the clock is off; then `check(request, answer)`, which raises."""

    def land(self):
        pass

    def fly(self, calls=None, seconds=None, at_once=1, pause=0):
        """[Call], of `calls`, or of as many as begin within `seconds`. pause: ms before each that begins while none is on its way."""
        ready = [self.prepare() for _ in range(calls or 0)]
        flying, landed, lost = {}, [], []
        until = time.perf_counter() + (seconds or 0)
        more = bool(ready or seconds)
        try:
            while more or flying:
                while more and len(flying) < at_once:
                    time.sleep(pause / 1000) if pause and not flying else None
                    self._begin(ready.pop() if ready else self.prepare(), flying, lost)
                    more = bool(ready) or time.perf_counter() < until
                if not flying:
                    continue
                answers = self.finished(DEADLINE)
                now = time.perf_counter()
                landed += [(*flying.pop(token), now, answer) for token, answer in answers if token in flying]
        except Exception as problem:  # the way itself is lost: so are all that are on it
            now = time.perf_counter()
            lost += [Call(begin, now, reason(problem)) for _, begin in flying.values()]
        self.land()
        return lost + [Call(begin, end, self._why(request, answer)) for request, begin, end, answer in landed]

    def _begin(self, request, flying, lost):
        begin = time.perf_counter()
        try:
            flying[self.start(request)] = request, begin
        except OSError as problem:  # such as no more processes
            lost.append(Call(begin, begin, reason(problem)))

    def _why(self, request, answer):
        try:
            self.check(request, answer)
        except Exception as problem:  # whatever is wrong with an answer: it is counted, and named
            return reason(problem)
        return None


class Function:
    """A call is `function()`, which gives its milliseconds, or None when all of it is meant, and raises when it fails."""

    def __init__(self, function):
        self.function = function

    def fly(self, calls=None, seconds=None, at_once=1, pause=0):
        found, until = [], time.perf_counter() + (seconds or 0)
        while len(found) < calls if calls else time.perf_counter() < until:
            time.sleep(pause / 1000)
            begin, took, why = time.perf_counter(), None, None
            try:
                took = self.function()
            except Exception as problem:  # whatever a rival fails by
                why = reason(problem)
            found.append(Call(begin, time.perf_counter() if took is None else begin + took / 1000, why))
        return found


class Threads(Flight):
    """The same, as many at once as are asked for: each in a thread of this program."""

    def __init__(self, function):
        self.function, self.pool, self.done = function, concurrent.futures.ThreadPoolExecutor(1000), queue.SimpleQueue()

    def prepare(self):
        return self.function

    def start(self, function):
        future = self.pool.submit(function)
        future.add_done_callback(self.done.put)
        return future

    def finished(self, timeout):
        try:
            return [(future, future) for future in (self.done.get(timeout=timeout),)]
        except queue.Empty:
            raise TimeoutError(f"not done after {timeout} s") from None

    def check(self, request, answer):
        answer.result()
