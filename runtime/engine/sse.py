"""Bytes of a server-sent event stream, as they arrive, into the payloads of its `data:` lines."""

import orjson

MAX_LINE = 16 * 1024 * 1024
"""Bytes. A longer line, or more bytes that are no events, is refused."""

_BOM = b"\xef\xbb\xbf"


class TooLongError(Exception):
    """A line longer than MAX_LINE."""


class EventLines:
    """Cuts a stream at its newlines only, so a character split between two reads is whole again.

    `strays` keeps the lines that belong to no event stream: the body of a server that answered with something else.
    """

    def __init__(self) -> None:
        self.strays: list[bytes] = []
        self._parts: list[bytes] = []
        self._size = 0
        self._stray_size = 0
        self._error_follows = False

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that are complete now. Raises TooLongError."""
        lines = data.split(b"\n")
        self._parts.append(lines[0])
        self._size += len(lines[0])
        if self._size > MAX_LINE:
            raise TooLongError
        if len(lines) == 1:
            return []
        lines[0] = b"".join(self._parts)
        last = lines.pop()
        self._parts, self._size = [last], len(last)
        payloads: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:") and not self._error_follows:
                payloads.append(line[5:].strip())
            elif line:
                self._rarely(line, payloads)
        return payloads

    def end(self) -> list[bytes]:
        """The payload of a last line without a newline, if there is one."""
        return self.feed(b"\n")

    def _rarely(self, line: bytes, payloads: list[bytes]) -> None:
        line = line.removeprefix(_BOM).strip()
        if line.startswith(b"data:"):
            payload = line[5:].strip()
            payloads.append(_as_error(payload) if self._error_follows else payload)
            self._error_follows = False
        elif line.startswith(b"event:"):
            self._error_follows = line[6:].strip() == b"error"
        elif not line.startswith((b":", b"id:", b"retry:")):
            self._keep(line)

    def _keep(self, line: bytes) -> None:
        self._stray_size += len(line)
        if self._stray_size > MAX_LINE:
            raise TooLongError
        self.strays.append(line)


def _as_error(payload: bytes) -> bytes:
    if payload.startswith(b"{"):
        return b'{"error":' + payload + b"}"
    return orjson.dumps({"error": payload.decode("utf-8", "replace")})
