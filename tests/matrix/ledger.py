"""The whole database as one word a table, to see whether a request changed anything."""

from django.apps import apps
from django.db import connection

UNCOUNTED = {
    "axes_accessattempt",  # wrong passwords are counted
    "django_session",
    "django_q_schedule",  # the clock moves it on
    "django_q_ormq",
}
# Notes about a use, not about what is used: a key's last use, a person's last sign-in, leases of runs.
NOTES = {"agents_admin_apikey": ["last_used_at"], "auth_user": ["last_login"]}


def ledger() -> dict[str, str]:
    tables = sorted(
        model._meta.db_table for model in apps.get_models(include_auto_created=True) if not model._meta.proxy
    )
    parts = [_digest(table) for table in tables if table not in UNCOUNTED]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts))
        return dict(cursor.fetchall())


def _digest(table: str) -> str:
    row = "to_jsonb(t)" + "".join(f" - '{column}'" for column in NOTES.get(table, ()))
    rows = f"string_agg(({row})::text, '' ORDER BY ({row})::text)"
    return f"SELECT '{table}', count(*) || ' ' || md5(coalesce({rows}, '')) FROM {table} t"
