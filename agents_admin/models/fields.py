"""A text field that is encrypted at rest."""

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from agents_admin.encryption import decrypt, encrypt


class EncryptedTextField(models.TextField):
    """Plain text in Python, a Fernet token in the database."""

    def get_prep_value(self, value: str | None) -> str:
        return encrypt(value) if value else ""

    def from_db_value(self, value: str | None, expression: object, connection: BaseDatabaseWrapper) -> str:
        return decrypt(value or "")
