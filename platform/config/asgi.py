"""The web process: static files, the raw streams and Django, under any ASGI server."""

import asyncio
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from django.core.asgi import get_asgi_application
from django.core.signals import request_started
from django.db import close_old_connections, connections, reset_queries

from config.database import pooled
from config.house import open_house

open_house()
django_app = get_asgi_application()  # what follows defines rows, which needs Django to be set up

from config.lifespan import Lifespan
from config.staticfiles import StaticFiles
from config.threads import KeptThreads
from runtime import runner
from runtime.takeover import take_over
from web.api.agui import AguiRenderer
from web.chat.render import ChatRenderer
from web.sse import Renderers, StreamLayer

connections.settings["default"] = pooled(connections.settings["default"])
# Each would cost a thread at the start of every request, where a fresh context has nothing to close or reset.
request_started.disconnect(close_old_connections)
request_started.disconnect(reset_queries)
renderers: Renderers = {"chat": partial(ChatRenderer, decides=True), "widget": ChatRenderer, "agui": AguiRenderer}
streams = StreamLayer(KeptThreads(django_app), renderers)


async def start() -> None:
    """Runs can start now; a stop of the server ends open streams at once, which would hold it up otherwise."""
    runner.runner().start(take_over)
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            _before_stop(number, streams.close)


def _before_stop(number: int, close: Callable[[], None]) -> None:
    servers_own = signal.getsignal(number)
    loop = asyncio.get_running_loop()

    def stop(received: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(close)
        if callable(servers_own):
            servers_own(received, frame)

    signal.signal(number, stop)


application = Lifespan(StaticFiles(streams), on_start=[start], on_stop=[runner.stop])
