"""Secrets at rest: Fernet with keys that live outside the database."""

from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


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
