"""Lines out of a pipe, without losing a byte when Ctrl-C strikes between any two steps of Python."""

import os
from typing import Iterator, Tuple

READ = 65536  # what a pipe holds


class Lines:
    """The lines of a pipe whose writer never sends a NUL byte (JSON has none).

    An exception may come after read(2) has returned and before Python has kept how much it read. So the bytes go straight
    into a buffer of zeros, and where the zeros begin is how much there is. `handled` is moved on only when a line has been
    dealt with: a line may come twice after an exception, but never not at all.
    """

    def __init__(self, fd: int, longest: int) -> None:
        self._fd = fd
        self._size = longest + READ
        # (buffer, up to where it is handled, up to where it is surely filled): replaced in one step
        self._state: Tuple[bytearray, int, int] = (bytearray(self._size), 0, 0)

    def read(self) -> bool:
        """Waits for more bytes; False at the end of the pipe."""
        buffer, handled, filled = self._room()
        if filled == self._size:
            raise ValueError("a line is longer than was agreed")
        with memoryview(buffer) as view:
            return os.readv(self._fd, [view[filled:]]) > 0

    def whole(self) -> Iterator[str]:
        """The whole lines that are there; each is handled once the next one is asked for."""
        while True:
            buffer, handled, filled = self._state
            end = buffer.find(b"\n", handled, self._end(buffer, filled))
            if end < 0:
                return
            yield buffer[handled:end].decode()
            self._state = (buffer, end + 1, max(end + 1, filled))

    def _end(self, buffer: bytearray, filled: int) -> int:
        end = buffer.find(0, filled)
        return end if end >= 0 else self._size

    def _room(self) -> Tuple[bytearray, int, int]:
        buffer, handled, filled = self._state
        end = self._end(buffer, filled)
        if handled == end:
            buffer[:end] = bytes(end)
            self._state = (buffer, 0, 0)
        elif self._size - end < READ and handled > 0:
            fresh = bytearray(self._size)
            fresh[: end - handled] = buffer[handled:end]
            self._state = (fresh, 0, end - handled)
        else:
            self._state = (buffer, handled, end)
        return self._state
