"""What every process does before Django: say where the settings are, have a database."""

import os

from config import env, postgres


def open_house() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    surroundings = env.read(os.environ)
    if not surroundings.production:
        postgres.attach(surroundings.data_dir)
