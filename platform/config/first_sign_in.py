"""The first administrator of a fresh installation."""

import os
import secrets
from pathlib import Path

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Q

from config.env import make_data_dir

USERNAME = "admin"
_LOCK = 7_241_003
"""Postgres advisory lock: else two starts would each write the file, and one of the passwords would be nobody's."""


def first_administrator(data_dir: Path) -> Path | None:
    """Makes an administrator when there is none; returns the 0600 file with the sign-in, else None.

    The file comes first: if the process dies in between, the next start makes a new pair. Of two starts at once, one
    makes it.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        return _made(data_dir)


def _made(data_dir: Path) -> Path | None:
    if User.objects.filter(Q(is_superuser=True) | Q(username=USERNAME)).exists():
        return None
    make_data_dir(data_dir)
    path = data_dir / "first-sign-in.txt"
    password = secrets.token_urlsafe(12)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"user name: {USERNAME}\npassword:  {password}\n")
    User.objects.create_superuser(USERNAME, password=password)
    return path
