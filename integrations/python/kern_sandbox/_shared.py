"""The one sidecar of this interpreter: started when it is first needed, again when it is gone, ended at exit."""

import atexit
import os
import threading
from typing import List, Optional

from ._connection import Connection

_lock = threading.Lock()
_current: Optional[Connection] = None
_of_parents: List[Connection] = []  # kept, so that no destructor touches what another process uses


def running() -> Optional[Connection]:
    """The sidecar, if it runs."""
    current = _current
    return current if current is not None and current.ended is None else None


def connection() -> Connection:
    """The sidecar, started if need be."""
    return running() or _start()


def _start() -> Connection:
    global _current
    with _lock:
        if _current is None or _current.ended is not None:
            if _current is not None:
                _current.close()
            _current = Connection.start()
        return _current


def shutdown() -> None:
    """Ends the sidecar with all sessions in it; the next call starts a new one. At exit this happens by itself."""
    global _current
    with _lock:
        current, _current = _current, None
    if current is not None:
        current.close()


def _after_fork() -> None:
    global _current, _lock
    _lock = threading.Lock()
    if _current is not None:
        _of_parents.append(_current)
        _current.abandon()
        _current = None


atexit.register(shutdown)
os.register_at_fork(after_in_child=_after_fork)
