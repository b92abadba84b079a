"""A bundle becomes rows: all of it, or nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import IntegrityError, connection, transaction

from agents_admin.portable import values
from agents_admin.portable.links import AFTER, prune, save_lines
from agents_admin.portable.problem import BundleError, refuse
from agents_admin.portable.reading import Group, Scalar, read
from agents_admin.portable.rows import save_row
from agents_admin.portable.sections import LINKS, SECTIONS, VERSION, VERSION_KEY
from agents_admin.portable.work import Work

_LOCK = 7_241_004
"""Postgres advisory lock: of two bundles at once, the second sees the rows of the first."""

type _Rows = list[tuple[Any, Group]]


@dataclass(frozen=True, slots=True)
class Applied:
    """How many rows of each kind the bundle named, as `agents`: 3."""

    rows: Mapping[str, int]


def apply(path: Path, environ: Mapping[str, str]) -> Applied:
    """Make and update the rows of a bundle in one transaction. Raises BundleError with all that is wrong with it."""
    try:
        bundle = values.group(read(path, environ), (VERSION_KEY, *(section.name for section in SECTIONS)))
        _check_version(bundle)
        with transaction.atomic():
            _wait_for_others()
            work = Work(path.absolute().parent)
            rows, counts = _save_rows(work, bundle)
            _save_links(work, rows)
            if work.problems:
                raise BundleError(work.problems)
    except BundleError as error:
        error.file = str(path)
        raise
    except IntegrityError:
        clash = refuse(1, "", "Somebody made or deleted one of these rows at the same moment. Apply the bundle again.")
        clash.file = str(path)
        raise clash from None
    return Applied(counts)


def _wait_for_others() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def _check_version(bundle: Group) -> None:
    version = bundle.entries.get(VERSION_KEY)
    if not isinstance(version, Scalar) or version.text != VERSION:
        raise refuse(version.line if version else 1, VERSION_KEY, f"A bundle says “{VERSION_KEY}: {VERSION}” first.")


def _save_rows(work: Work, bundle: Group) -> tuple[_Rows, dict[str, int]]:
    rows: _Rows = []
    counts: dict[str, int] = {}
    for section in SECTIONS:
        nodes = values.items(bundle.entries[section.name]) if section.name in bundle.entries else ()
        for node in nodes:
            with work.collecting():
                rows.append(save_row(work, section, node))
        if nodes:
            counts[section.name] = len(nodes)
    return rows, counts


def _save_links(work: Work, rows: _Rows) -> None:
    given = [(row, key, node) for row, entry in rows for key, node in entry.entries.items()]
    for row, key, node in given:
        with work.collecting():
            if key in LINKS:
                prune(row, key, node)
            elif key in AFTER:
                AFTER[key](work, row, node)
    for row, key, node in given:
        if key in LINKS:
            with work.collecting():
                save_lines(work, row, key, node)
