"""One embedded Postgres for the whole session, its data thrown away at the end."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import django
import httpx
import hypothesis
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

pytest_plugins = ["tests.scripted", "tests.chaos.figures"]

CHECKOUT = Path(__file__).resolve().parents[1]
TEST_DATA = Path(tempfile.mkdtemp(prefix="roster-test-"))
TEST_DATA.chmod(0o711)

# Before Django reads its settings: nothing of the developer's own environment reaches a test.
for name in (
    "DATABASE_URL",
    "SECRET_KEY",
    "FIELD_ENCRYPTION_KEYS",
    "EGRESS_ALLOW",
    "ALLOWED_HOSTS",
    "PUBLIC_URL",
):
    os.environ.pop(name, None)
for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "CSRF_TRUSTED_ORIGINS", "PORT"):
    os.environ.pop(name, None)
for name in ("EVENTS_COLLAPSE_HOURS", "EVENTS_KEEP_DAYS", "RUNS_KEEP_DAYS"):
    os.environ.pop(name, None)
os.environ |= {
    "DATA_DIR": str(TEST_DATA),
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "EGRESS_ALLOW": "127.0.0.1",
}
django.setup()
# A process of several inherits the environment, and would read the settings before it has its own DATA_DIR.
del os.environ["DJANGO_SETTINGS_MODULE"]
# Tests share two cores with databases and browsers: how long something takes says nothing.
hypothesis.settings.register_profile("roster", deadline=None)
hypothesis.settings.load_profile("roster")
expect.set_options(timeout=20_000)

from django.conf import settings  # noqa: E402
from django.db import IntegrityError, connections, transaction  # noqa: E402
from django.test import TransactionTestCase  # noqa: E402

from config import postgres  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that let processes die come first: the site of the others would take over what those leave behind.

    They are in files of their own, since a process that runs tests takes them file by file.
    """
    items.sort(key=_shares)


def _shares(item: pytest.Item) -> bool:
    return "town" not in getattr(item, "fixturenames", ()) and item.get_closest_marker("alone") is None


def pytest_unconfigure() -> None:
    shutil.rmtree(TEST_DATA, ignore_errors=True)


@pytest.fixture(scope="session")
def database_server() -> Iterator[None]:
    """Started by the first test that needs rows, so tests of plain Python don't wait for it."""
    leave = postgres.attach(TEST_DATA, durable=False)
    yield
    connections.close_all()
    leave()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(database_server: None) -> None:
    """pytest-django's hook for what must happen before it makes the test database."""


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Its whole server is thrown away, so nobody waits for connections to be closed first."""
    return True


KEPT = {"django_content_type", "auth_permission", "django_migrations"}
"""Tables that a served process remembers, and that no test changes."""


def _empty_tables(test: TransactionTestCase) -> None:
    """Instead of Django's flush, which makes content types and permissions anew: a third of the time of such a test."""
    connection = connections["default"]
    tables = [table for table in connection.introspection.table_names() if table not in KEPT]
    filled = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in tables)
    for _ in range(5):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(filled)
                for (table,) in cursor.fetchall():
                    cursor.execute(f"DELETE FROM {table}")
        except IntegrityError:  # the served process wrote something meanwhile
            continue
        return
    raise AssertionError("The served process goes on writing.")


TransactionTestCase._fixture_teardown = _empty_tables  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def site(django_db_setup: None) -> Iterator[str]:
    """The base URL of config.asgi under a real uvicorn process, on the test database.

    It sees committed rows only: such tests are marked `django_db(transaction=True)`.
    """
    port = free_port()
    entry = connections["default"].settings_dict
    environ = os.environ | {
        "DATABASE_URL": f"postgresql:///{entry['NAME']}?host={entry['HOST']}&user={entry['USER']}",
        "SECRET_KEY": settings.SECRET_KEY,
        "FIELD_ENCRYPTION_KEYS": ",".join(settings.FIELD_ENCRYPTION_KEYS),
        "ALLOWED_HOSTS": "127.0.0.1,localhost",
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
    }
    log = (TEST_DATA / "site.log").open("w+")
    command = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--app-dir", "platform"]
    command += ["--port", str(port), "--lifespan", "on", "--no-access-log", "--log-level", "warning"]
    server = subprocess.Popen(command, cwd=CHECKOUT, env=environ, stdout=log, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url, server, Path(log.name))
        yield url
    finally:
        server.terminate()
        server.wait(timeout=15)
        log.close()


@pytest.fixture(autouse=True)
def committed_rows(request: pytest.FixtureRequest) -> None:
    """The served process sees no others."""
    if "site" in request.fixturenames:
        request.getfixturevalue("transactional_db")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        if server.poll() is not None:
            break
        try:
            httpx.get(f"{url}/healthz", timeout=2, trust_env=False).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"The web process did not start:\n{log.read_text()[-4000:]}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; without one the browser tests are skipped, or fail under REQUIRE_BROWSER=1.

    Playwright keeps a loop running in this thread, beside which no async test can run: it ends with its module.
    """
    if CHROMIUM is None:
        say = pytest.fail if os.environ.get("REQUIRE_BROWSER") == "1" else pytest.skip
        say("No Chromium was found: install the package chromium to run the browser tests.")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGS)
        # Django would refuse the ORM beside a loop that runs.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        yield chromium
        chromium.close()
    os.environ.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    """A fresh browser page on `site`. The test fails on a script error, a console error or a CSP violation.

    A test that expects one removes it from `page.complaints`.
    """
    context = browser.new_context(base_url=site)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.complaints = complaints  # type: ignore[attr-defined]
    yield opened
    context.close()
    assert complaints == []
