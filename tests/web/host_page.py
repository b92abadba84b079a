"""A page of another site, on a port of its own, that shows a widget under a policy that allows it nothing else."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = """<!doctype html><html lang="en"><head><title>A shop</title><meta name="viewport" content="width=device-width">
<link rel="icon" href="{site}/static/img/icon.svg"></head>
<body><h1>A shop</h1><p>Buy something.</p><a href="/other">Another page</a>
<script src="{site}/widget.js" data-widget="{widget}" async></script></body></html>"""
POLICY = "default-src 'none'; img-src {site}; script-src {site}; frame-src {site}; connect-src {site}"


class HostSite:
    """`origin` is what a browser calls this site; `show` says which widget its pages ask for."""

    def __init__(self, origin: str, site: str) -> None:
        self.origin = origin
        self.site = site
        self.widget = ""

    def show(self, widget: object) -> str:
        self.widget = str(widget)
        return f"{self.origin}/"


@contextmanager
def host_site(site: str) -> Iterator[HostSite]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = PAGE.format(site=site, widget=shop.widget).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Security-Policy", POLICY.format(site=site))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    shop = HostSite(f"http://localhost:{server.server_port}", site)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield shop
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
