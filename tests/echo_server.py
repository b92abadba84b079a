"""A service that answers with everything it was sent, headers included, under any status: `/500` and so on."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Echo:
    """`heard` is what it was sent, a text a request."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.heard: list[str] = []


@contextmanager
def echoing() -> Iterator[Echo]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            text = json.dumps({"path": self.path, "headers": dict(self.headers), "body": body})
            echo.heard.append(text)
            self.send_response(int(self.path.strip("/")[:3]))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_GET  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    echo = Echo(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield echo
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
