"""Security rule 5: a word of its own in every secret, everything is run, failures included, and nothing says one."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from agents_admin.models import Agent, Credential, CredentialOrigin, Provider
from agents_admin.portable.applying import apply
from runtime.models import Event, Run, ToolCall
from tests import world
from tests.admin_page import submit
from tests.echo_server import Echo, echoing
from tests.matrix.cast import session
from tests.matrix.test_admin_matrix import paths
from tests.scripted import ScriptedModel
from tests.web.api_client import ask, client, settle
from tests.web.chat_client import Chat, stream_of
from tests.web.widget_client import Visitor

pytestmark = pytest.mark.django_db(transaction=True)

KEY, NEW_KEY, TYPED = "sk-canary-provider-81f3", "sk-canary-replaced-77b1", "sk-canary-typed-wrong-5d0a"
BEARER, BASIC, HEADER = "canary-bearer-2c9e", "maya:canary-basic-4f7d", "canary-header-90ab"
FORGOTTEN = "canary-password-of-nobody-3e3e"
FROM_ENV = "sk-canary-from-the-environment-1b1b"


@dataclass
class Seen:
    """Everything that anybody was shown, by what it was shown on."""

    texts: dict[str, str] = field(default_factory=dict)

    def add(self, where: str, text: str) -> None:
        self.texts[f"{len(self.texts)} {where}"] = text

    def answer(self, where: str, answer: httpx.Response) -> httpx.Response:
        self.add(where, f"{answer.status_code} {answer.headers} {answer.text}")
        return answer

    def places_of(self, secret: str) -> list[str]:
        return [where for where, text in self.texts.items() if secret in text]


@pytest.fixture
def echo() -> Iterator[Echo]:
    with echoing() as server:
        yield server


@pytest.fixture
def scribe(site: str, model: ScriptedModel, echo: Echo) -> Agent:
    """An agent with a tool for each kind of credential, at a service that echoes what it is sent."""
    served = world.provider("canary", kind="openai", base_url=model.base_url, api_key=KEY)
    agent = world.agent("Scribe", model=world.model("scribe", provider=served), audience="everyone")
    for kind, secret, status in (("bearer", BEARER, 200), ("basic", BASIC, 500), ("header", HEADER, 404)):
        credential = Credential.objects.create(name=kind, slug=kind, kind=kind, secret=secret, header="X-Shop-Key")
        CredentialOrigin.objects.create(credential=credential, origin=echo.origin)
        tool = world.tool(
            "http",
            name=f"By {kind}",
            slug=f"by_{kind}",
            credential=credential,
            audience="everyone",
            settings={"method": "GET", "url": f"{echo.origin}/{status}"},
        )
        world.give(agent, tool)
    return agent


def script(model: ScriptedModel, turns: int) -> None:
    """Each turn calls all three tools, gets an answer, and the one after it fails with the key in the refusal."""
    for _ in range(turns):
        model.calls_all([("by_bearer", {}), ("by_basic", {}), ("by_header", {})]).says("I have looked.")
        model.fails("echoes-key-and-prompt", text=f"Incorrect API key provided: {KEY}.")


def dump() -> str:
    """Every column of every row, as it is stored."""
    rows = []
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            cursor.execute(f"SELECT to_jsonb(t)::text FROM {model._meta.db_table} t")
            rows += [text for (text,) in cursor.fetchall()]
    return "\n".join(rows)


def test_no_secret_is_said_anywhere(site, scribe, model, echo, caplog, tmp_path) -> None:
    house, seen = world.house(), Seen()
    key, visitor = world.api_key(house.linus), Visitor(site, world.widget(scribe).pk).arrive()
    script(model, 4)

    chats(site, house, seen)
    programs(site, key, seen)
    visits(visitor, seen)
    terminal(seen, tmp_path)
    broken_pages(site, house, seen)
    admin_pages(site, house, seen)

    seen.add("the log of the site", (Path(settings.DATA_DIR) / "site.log").read_text())
    seen.add("the log of the commands", caplog.text)
    seen.add("what models were asked", json.dumps([request.body for request in model.requests]))
    seen.add("the database", dump())

    used = json.dumps([dict(request.headers) for request in model.requests]) + "".join(echo.heard)
    assert [secret for secret in (KEY, BEARER, HEADER) if secret not in used] == [], "the secrets were never used"
    assert ToolCall.objects.filter(content__contains="[secret]").count() == 12, "the echo did not come through"
    assert Run.objects.filter(status="failed").count() == 4
    secrets = [KEY, NEW_KEY, TYPED, BEARER, BASIC, BASIC.partition(":")[2], HEADER, FORGOTTEN, FROM_ENV]
    secrets += [key, visitor.token, world.PASSWORD, settings.SECRET_KEY, *settings.FIELD_ENCRYPTION_KEYS]
    assert {secret: places for secret in secrets if (places := seen.places_of(secret))} == {}


def chats(site: str, house: world.House, seen: Seen) -> None:
    with Chat(site, house.linus) as chat:
        for text in ("Look it up.", "Again."):
            sent = seen.answer("chat/send", chat.send(text, "scribe"))
            seen.answer("chat/stream", chat.http.get(stream_of(sent.text)))
            seen.answer("chat/thread", chat.http.get(sent.headers["HX-Replace-Url"]))
        seen.answer("chat", chat.http.get("/chat/"))
    seen.answer("login", httpx.post(f"{site}/login/", data={"username": "linus", "password": FORGOTTEN}))
    with Chat(site, None) as guest:
        token = guest.http.get("/login/").text.split('csrfmiddlewaretoken" value="')[1].split('"')[0]
        form = {"csrfmiddlewaretoken": token, "username": "linus", "password": FORGOTTEN}
        refused = seen.answer("login", guest.http.post("/login/", data=form))
        assert refused.status_code == 200


def programs(site: str, key: str, seen: Seen) -> None:
    api = client(site, key)
    for _ in range(2):
        run = seen.answer("runs", ask(api, agent="scribe")).json()
        for path in (f"/runs/{run['id']}", f"/runs/{run['id']}/events", f"/threads/{run['thread']}/messages"):
            seen.answer(path, api.get(path))
        stream = {"Accept": "text/event-stream"}
        seen.answer("stream", api.get(f"/runs/{run['id']}/events", headers=stream))
    for path in ("/agents", "/runs", "/threads", "/openapi.json", "/docs", "/nowhere"):
        seen.answer(path, api.get(path))
    seen.answer("invalid", api.post("/runs", content=b'{"agent": NaN'))


def visits(visitor: Visitor, seen: Seen) -> None:
    for text in ("Look it up.", "Again."):
        seen.add("widget", visitor.answer_to(text, agent="scribe"))
    seen.answer("widget", visitor.frame("GET", "conversation/"))
    seen.answer("widget", visitor.http.get(""))


def terminal(seen: Seen, folder: Path) -> None:
    for command in (["talk", "scribe", "Look it up.", "--as", "ada"], ["talk", "scribe", "Again.", "--as", "ada"]):
        seen.add("talk", said_by(*command))
    seen.add("export", said_by("export"))
    seen.add("doctor", said_by("doctor"))
    bundle = folder / "bundle.yaml"
    line = "{slug: acme, name: Acme, kind: openai, base_url: 'nowhere at all', api_key: '${LLM_KEY}'}"
    bundle.write_text(f"roster: 1\nproviders:\n  - {line}\n")
    with pytest.raises(Exception, match="base_url") as refused:
        apply(bundle, {"LLM_KEY": FROM_ENV})
    seen.add("apply", str(refused.value))


def said_by(*command: str) -> str:
    out, err = StringIO(), StringIO()
    try:
        call_command(*command, stdout=out, stderr=err)
    except (CommandError, SystemExit) as error:
        err.write(str(error))
    return out.getvalue() + err.getvalue()


def broken_pages(site: str, house: world.House, seen: Seen) -> None:
    """A row that no code can read: a page of ours fails, and its traceback is in the log."""
    run = Run.objects.filter(user=house.linus, channel="chat", depth=0).first()
    assert run is not None
    torn = Event.objects.create(root=run, n=999_999, run_id=run.pk, kind="Nonsense", data={}, at=run.created_at)
    headers = session(house.linus)
    for path in (f"/chat/{run.thread_id}/", f"/chat/{uuid4()}/", "/nowhere", "/admin/nowhere/"):
        seen.answer(path, httpx.get(site + path, headers=headers, trust_env=False))
    Event.objects.filter(root=run, n=torn.n).delete()


def admin_pages(site: str, house: world.House, seen: Seen) -> None:
    """Ada changes a key, mistypes another, tests the connection, and looks at everything there is."""
    settle()
    browser, provider = Client(), Provider.objects.get(slug="canary")
    browser.force_login(house.ada)
    change = f"/admin/agents_admin/provider/{provider.pk}/change/"
    for fields in ({"api_key": TYPED, "name": ""}, {"api_key": TYPED, "base_url": "ftp://x"}, {"api_key": NEW_KEY}):
        seen.add("change a key", submit(browser, change, **fields).content.decode())
    assert Provider.objects.get(slug="canary").api_key == NEW_KEY
    login = {"username": "ada", "password": FORGOTTEN}
    seen.add("admin login", Client().post("/admin/login/", login, REMOTE_ADDR="127.0.0.9").content.decode())
    with httpx.Client(base_url=site, headers=session(house.ada), timeout=20, trust_env=False) as http:
        for path in paths() + rows_of(Provider, "agents_admin/provider") + rows_of(Run, "runtime/run"):
            if path != "logout/":
                seen.answer(f"admin/{path}", http.get(f"/admin/{path}"))
        url = reverse("admin:agents_admin_provider_test_connection", args=[provider.pk])
        tested = seen.answer("test connection", http.post(url, data={"_": ""}))
        assert "refused" in tested.text or "key" in tested.text


def rows_of(model: Any, prefix: str) -> list[str]:
    keys = model.objects.filter(depth=0) if model is Run else model.objects.all()
    return [f"{prefix}/{row.pk}/{page}/" for row in keys for page in ("change", "history", "delete")]
