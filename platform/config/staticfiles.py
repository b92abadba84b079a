"""Serves static files from where they are: nothing to collect, no thread of Django's taken."""

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from servestatic import ServeStaticASGI

from config.lifespan import App


class StaticFiles(ServeStaticASGI):
    def __init__(self, app: App) -> None:
        super().__init__(app, max_age=60)
        for finder in get_finders():
            for path, storage in finder.list(None):
                url = settings.STATIC_URL + path.replace("\\", "/")
                if url not in self.files:
                    self.add_file_to_dictionary(url, storage.path(path))
