"""Django's DATABASES entry for the embedded server or for DATABASE_URL."""

from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from config.env import Env, Refusal
from config.postgres import socket_folder

WEB_POOL = {"min_size": 1, "max_size": 8, "timeout": 10, "reconnect_timeout": 5}


def database(env: Env) -> dict[str, Any]:
    """Kept connections without a pool: the worker forks, and a pool does not survive that."""
    common = {"ENGINE": "django.db.backends.postgresql", "CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True}
    if not env.production:
        return common | {"NAME": "postgres", "USER": "roster", "HOST": str(socket_folder(env.data_dir))}
    try:
        given = conninfo_to_dict(env.database_url)
    except ProgrammingError:
        raise Refusal("DATABASE_URL can't be read. It looks like postgresql://user:password@host:5432/name") from None
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    known = {names[key]: str(value) for key, value in given.items() if key in names}
    options = {key: value for key, value in given.items() if key not in names}
    return common | known | {"OPTIONS": options}


def pooled(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry for the web process: threads come and go there, so connections are shared."""
    return entry | {"CONN_MAX_AGE": 0, "OPTIONS": entry.get("OPTIONS", {}) | {"pool": WEB_POOL}}
