"""A text field that is encrypted at rest with keys that live outside the database."""

from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


@lru_cache(maxsize=4)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    if not keys:
        raise ImproperlyConfigured("FIELD_ENCRYPTION_KEYS is empty: set at least one key.")
    return MultiFernet([Fernet(key) for key in keys])


def encrypt(text: str) -> str:
    """With the first of FIELD_ENCRYPTION_KEYS; the others still decrypt, so that keys can be rotated."""
    return _fernet(tuple(settings.FIELD_ENCRYPTION_KEYS)).encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """Empty when no key fits any more: a lost key must not take every page down; `doctor` names such rows."""
    if not token:
        return ""
    try:
        return _fernet(tuple(settings.FIELD_ENCRYPTION_KEYS)).decrypt(token.encode()).decode()
    except InvalidToken:
        return ""


class EncryptedTextField(models.TextField):
    """Plain text in Python, a Fernet token in the database."""

    def get_prep_value(self, value: str | None) -> str:
        return encrypt(value) if value else ""

    def from_db_value(self, value: str | None, expression: object, connection: BaseDatabaseWrapper) -> str:
        return decrypt(value or "")
