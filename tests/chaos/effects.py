"""A service on loopback where calls that act leave their mark: how often each call arrived, by its Idempotency-Key."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Effects(ThreadingHTTPServer):
    """`seconds` is how long a call takes, half of it before its effect and half after."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), Booking)
        self.seconds = seconds
        self.calls: Counter[str] = Counter()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/book"

    def handle_error(self, request: object, client_address: object) -> None:
        """The caller was killed: that is what the test is about."""


class Booking(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Effects

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        time.sleep(self.server.seconds / 2)
        self.server.calls[self.headers["Idempotency-Key"]] += 1
        time.sleep(self.server.seconds / 2)
        body = b'{"booked": true}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass


@contextmanager
def counting(seconds: float = 0.1) -> Iterator[Effects]:
    server = Effects(seconds)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
