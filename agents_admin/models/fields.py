"""A text field that is encrypted at rest."""

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from agents_admin.encryption import decrypt, encrypt


class LostSecret(str):
    """An empty text that remembers the token no key opens: saving the row must not destroy it."""

    token: str

    def __new__(cls, token: str) -> "LostSecret":
        lost = super().__new__(cls)
        lost.token = token
        return lost


class EncryptedTextField(models.TextField):
    """Plain text in Python, a Fernet token in the database."""

    def get_prep_value(self, value: str | None) -> str:
        if isinstance(value, LostSecret):
            return value.token
        return encrypt(value) if value else ""

    def from_db_value(self, value: str | None, expression: object, connection: BaseDatabaseWrapper) -> str:
        text = decrypt(value or "")
        return LostSecret(value) if value and not text else text
