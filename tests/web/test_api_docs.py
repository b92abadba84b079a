"""docs/api.md and docs/events.md tell the truth, and the API page opens in a browser without the network."""

import os
import re
import shutil
import subprocess

import pytest

from runtime.errors import Code
from tests import world
from tests.conftest import CHECKOUT
from tests.web.api_client import settle
from web.errors import STATUS

API = (CHECKOUT / "docs" / "api.md").read_text()
EVENTS = (CHECKOUT / "docs" / "events.md").read_text()
RENDERER = (CHECKOUT / "platform" / "web" / "api" / "agui.py").read_text()


@pytest.mark.skipif(shutil.which("curl") is None, reason="The examples need curl: install it to try them.")
@pytest.mark.django_db(transaction=True)
def test_every_example_works_as_it_is_written(site):
    key = world.api_key(world.house().linus)
    environ = os.environ | {"ROSTER": site, "KEY": key, "no_proxy": "127.0.0.1"}
    examples = re.findall(r"```sh\n(.*?)```", API, re.DOTALL)
    assert len(examples) > 4
    for example in examples:
        told = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", example], env=environ, capture_output=True, check=False, timeout=60
        )
        assert told.returncode == 0, (example, told.stdout, told.stderr)
    settle()


def test_every_code_is_in_the_table_of_refusals():
    rows = {(int(status), code) for status, code in re.findall(r"^\| (\d{3}) \| `(\w+)`", API, re.MULTILINE)}
    ours = {(STATUS[code], code) for code in Code.__value__.__args__ if code != "forbidden"}
    assert ours <= rows


def test_every_event_that_can_be_sent_is_described():
    sent = set(re.findall(r'"([A-Z]+_[A-Z_]+|CUSTOM)"', RENDERER)) | {"TEXT_MESSAGE_CONTENT"}
    described = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+|CUSTOM)`", EVENTS.partition("## What each")[2]))
    assert sent == described


@pytest.mark.django_db(transaction=True)
def test_the_api_page_opens_in_a_browser_without_complaint(page, site):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/api/v1/docs")
    page.get_by_role("heading", name="Threads").wait_for()
    assert [url for url in asked if not url.startswith((site, "data:"))] == []
