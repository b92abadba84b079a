"""Cases 1, 3 and 5 of what users of such systems suffered (tests/cases/README.md)."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import httpx
import pytest
from playwright.sync_api import Page, expect

from runtime.models import Message, Run
from tests import world
from tests.conftest import free_port
from tests.journeys.test_chat_browser import answered, desk, enter, say, turns
from tests.scripted import ScriptedModel
from tests.web.api_client import client, scripted_agent, settle, until_over
from tests.web.chat_client import Chat, stream_of

pytestmark = pytest.mark.django_db(transaction=True)

NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
CONFIGURATION = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log; {user}
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass {site}; proxy_set_header Host $http_host; proxy_http_version 1.1; proxy_buffering on; }}
  }}
}}
"""


@pytest.fixture
def proxied(site: str, tmp_path: Path) -> Iterator[str]:
    """The site behind Debian's nginx as it comes: it buffers."""
    if NGINX is None:
        say_so = pytest.fail if os.environ.get("REQUIRE_NGINX") == "1" else pytest.skip
        say_so("No nginx was found: install the package nginx-light to test streams behind a proxy.")
    port = free_port()
    user = "user root;" if os.geteuid() == 0 else ""
    settings = CONFIGURATION.format(folder=tmp_path, port=port, site=site, user=user)
    (tmp_path / "nginx.conf").write_text(settings)
    server = subprocess.Popen([NGINX, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(100):
            try:
                httpx.get(f"{url}/healthz", trust_env=False)
                break
            except httpx.TransportError:
                sleep(0.05)
        yield url
    finally:
        server.terminate()
        server.wait(timeout=10)


def read_while_it_is_written(answer: httpx.Response, model: ScriptedModel) -> str:
    """The model says what comes after its first word only once that has been read here."""
    text = ""
    for piece in answer.iter_text():
        if "First" in text + piece and "First" not in text:
            model.goes_on()
        text += piece
    return text


def test_case_3_programs_read_the_first_words_at_once_behind_a_proxy_that_buffers(
    proxied: str, model: ScriptedModel
) -> None:
    scripted_agent(model)
    model.says(["First ", *["and more "] * 6], gate=1)
    api = client(proxied, world.api_key(world.linus()))
    stream = {"Accept": "text/event-stream"}
    with api.stream("POST", "/runs", json={"agent": "scribe", "input": "Go."}, headers=stream) as answer:
        text = read_while_it_is_written(answer, model)
    assert "RUN_FINISHED" in text
    settle()


def test_case_3_people_read_the_first_words_at_once_behind_a_proxy_that_buffers(
    proxied: str, model: ScriptedModel
) -> None:
    scripted_agent(model)
    model.says(["First ", *["and more "] * 6], gate=1)
    with Chat(proxied, world.linus()) as chat:
        sent = chat.send("Go.", "scribe")
        with chat.http.stream("GET", stream_of(sent.text)) as answer:
            text = read_while_it_is_written(answer, model)
    assert text.endswith("event: end\ndata: end\n\n")
    settle()


def test_case_5_a_call_that_waits_is_answered_in_time_and_the_work_is_not_lost(
    proxied: str, model: ScriptedModel
) -> None:
    scripted_agent(model)
    model.says("At last.", gate=0)
    api = client(proxied, world.api_key(world.linus()))

    answer = api.post("/runs", json={"agent": "scribe", "input": "Go.", "wait": 1})

    assert (answer.status_code, answer.json()["output"]) == (202, "")
    model.goes_on()
    assert until_over(api, answer.json()["id"])["output"] == "At last."
    too_long = api.post("/runs", json={"agent": "scribe", "input": "Go.", "wait": 56})
    assert (too_long.status_code, too_long.json()["error"]["field"]) == (422, "wait")


def test_case_1_leaving_reloading_and_a_second_tab_lose_nothing(page: Page, model: ScriptedModel) -> None:
    """In a browser: away and back at 30 %, a reload at 50 % and at 80 %, a second tab; one run, the same bytes."""
    desk(model)
    words = [f"w{number:02} " for number in range(100)]
    model.says(words, delay=0.08)
    enter(page)
    say(page, "Count")
    message = page.locator(".message")
    expect(message).to_contain_text("w30", timeout=15_000)
    address = re.compile(r"/chat/[0-9a-f-]{36}/")
    expect(page).to_have_url(address)
    here = page.url
    page.goto("/chat/")
    page.goto(here)
    seen_again(page, 30)
    second = page.context.new_page()
    for percent in (50, 80):
        expect(message).to_contain_text(f"w{percent}", timeout=15_000)
        page.reload()
        seen_again(page, percent)
        if percent == 50:
            second.goto(here)
            seen_again(second, percent)
    for tab in (page, second):
        answered(tab)
        assert tab.locator(".message").inner_text().split() == "".join(words).split()
    assert turns(page) == turns(second)
    assert Message.objects.get(role="assistant").text == Run.objects.get().output == "".join(words)
    assert len(model.requests) == 1


def seen_again(page: Page, percent: int) -> None:
    """Everything until then is there, and the answer is still being written."""
    message = page.locator(".message")
    expect(message).to_contain_text(f"w{percent}")
    shown = message.inner_text().split()
    assert shown == [f"w{number:02}" for number in range(len(shown))]
    assert Run.objects.get().status == "running"
