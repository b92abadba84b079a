"""A server on loopback that gives the raw answers a test wrote, and remembers what it was sent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Server:
    """Answers each request with the bytes that `answers` has for its path, and remembers what it was sent."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.connections = 0
        self.breaks_off = False
        self.asked = asyncio.Event()
        self.left = asyncio.Event()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                text = head.decode("latin-1")
                length = next(
                    (int(line[15:]) for line in text.split("\r\n") if line.lower().startswith("content-length:")), 0
                )
                self.requests.append(text + (await reader.readexactly(length)).decode())
                self.asked.set()
                if self.breaks_off:
                    break
                writer.write(self.answers.get(text.split()[1], answer(b"no such page", status="404 Not Found")))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.left.set()
            writer.close()


def answer(body: bytes = b"", *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    return answer(b"", f"Location: {location}", status=status)


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
