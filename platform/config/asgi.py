"""The web process: static files, the raw streams and Django, under any ASGI server."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from django.core.asgi import get_asgi_application
from django.db import connections

from config.database import pooled
from config.house import open_house
from config.lifespan import Lifespan
from config.staticfiles import StaticFiles

open_house()
django_app = get_asgi_application()
connections.settings["default"] = pooled(connections.settings["default"])
application = Lifespan(StaticFiles(django_app))
