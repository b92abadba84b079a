"""Security rule 2: every address, asked by everybody, with every verb, for everybody's rows.

Not yours equals not there; what is refused changes nothing; nobody ever reads a word of somebody else's.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import httpx
import orjson
import pytest

from runtime.models import Run, Thread
from tests import world
from tests.matrix.cast import Asker, Rows, askers, bearer, client, missing, rows, session, visitor
from tests.matrix.ledger import ledger
from tests.web.widget_client import SHOP
from web.routes import ROUTES, Route, Who

pytestmark = pytest.mark.django_db(transaction=True)

type Json = dict[str, Any]

VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
OWNED = {address: route for address, route in ROUTES.items() if route.owner_of}
# The admin has a matrix of its own; api/v1/ is where ninja's addresses begin and answers nobody.
DECLARED = {address: route for address, route in ROUTES.items() if address not in {"admin/", "api/v1/"}}
INSIDER = {Who.SIGNED_IN: "Linus", Who.API_KEY: "Maya's key", Who.WIDGET_VISITOR: "a visitor"}
FIELDS = {"title": "Mine now", "decision": "happened"}
NOT_IN = {401, 403, 302}
"""How somebody is refused whose credentials count for nothing at an address."""


@dataclass(frozen=True)
class Stage:
    http: httpx.Client
    house: world.House
    shop: UUID
    askers: list[Asker]
    rows: list[Rows]

    def of(self, owner: str) -> Rows:
        return next(one for one in self.rows if one.owner == owner)

    def asker(self, name: str) -> Asker:
        return next(one for one in self.askers if one.name == name)


@pytest.fixture
def stage(site: str) -> Iterator[Stage]:
    house = world.house()
    shop = world.widget(house.concierge, SHOP)
    other = world.widget(house.concierge, SHOP, name="Another")
    with client(site) as http:
        yield Stage(http, house, shop.pk, askers(house, shop, other), rows(house, shop))


def path_of(address: str, of: Rows, widget: UUID) -> str:
    ids = {"thread": of.thread, "run": of.run, "call": of.call, "widget": widget}
    return "/" + re.sub(r"<\w+:(\w+)>", lambda found: str(ids[found[1].removesuffix("_id")]), address)


def forged(of: Rows) -> dict[str, str]:
    """What a client may try to send past the views: the ticket of a stream, the number of an event."""
    ticket = {
        "run": of.run,
        "thread": of.thread,
        "renderer": "agui",
        "after": 0,
        "user": 1,
        "key": None,
        "widget": None,
    }
    return {"X-Roster-Stream": orjson.dumps(ticket).decode(), "Last-Event-ID": "0"}


def call(stage: Stage, who: Asker, verb: str, address: str, of: Rows, **more: str) -> httpx.Response:
    path = path_of(address, of, who.widget or of.widget or stage.shop)
    body: Json = {"json" if address.startswith("api/") else "data": FIELDS} if verb in UNSAFE else {}
    if address.endswith("<uuidstr:thread_id>"):
        body = {"json": {"title": "Mine now"}} if verb in UNSAFE else {}
    answer = stage.http.request(verb, path, headers={**who.headers, **forged(of), **more}, **body)
    assert answer.status_code < 500 or path == "/readyz", (who.name, verb, path, answer.text)
    for other in stage.rows:
        if other.owner != who.owns or who.limited:
            assert other.secret not in answer.text, f"{who.name} reads what is {other.owner}'s at {verb} {path}"
    return answer


def said(answer: httpx.Response) -> tuple[object, ...]:
    """An answer without what differs by chance: ids, nonces, tokens, the time."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID", answer.text)
    text = re.sub(r'(nonce|value)="[^"]+"', "", text)
    by_chance = {"date", "set-cookie", "content-security-policy"}
    headers = sorted((name, value) for name, value in answer.headers.items() if name not in by_chance)
    return answer.status_code, re.sub(r"[0-9a-f-]{36}", "ID", str(headers)), text


def gets_in(who: Asker, route: Route) -> bool:
    return who.kind is route.who


def may(who: Asker, of: Rows) -> bool:
    return who.owns == of.owner and not who.limited and who.widget == of.widget


def test_what_is_not_yours_is_not_there(stage: Stage) -> None:
    before = ledger()
    for (address, route), who in product(OWNED.items(), stage.askers):
        for verb in route.verbs:
            nothing = said(call(stage, who, verb, address, missing(stage.of("visitor"))))
            assert nothing[0] in ({404} if gets_in(who, route) else NOT_IN), (who.name, verb, nothing)
            for of in stage.rows:
                if not (gets_in(who, route) and may(who, of)):
                    theirs = said(call(stage, who, verb, address, of))
                    assert theirs == nothing, f"{who.name} can tell that {of.owner}'s is there: {verb} {address}"
    assert ledger() == before


def test_what_a_delegate_did_has_no_address_of_its_own(stage: Stage) -> None:
    for address, route in OWNED.items():
        who = stage.asker(INSIDER[route.who])
        child = Run.objects.get(root=stage.of(who.owns).run, depth=1)
        of = Rows(who.owns, uuid4(), child.pk, uuid4(), "", who.widget)
        for verb in route.verbs:
            assert call(stage, who, verb, address, of).status_code == 404, (verb, address)


def test_other_verbs_are_refused_and_change_nothing(stage: Stage) -> None:
    before = ledger()
    for (address, route), who, verb in product(DECLARED.items(), stage.askers, VERBS):
        if verb in route.verbs:
            continue
        answer = call(stage, who, verb, address, stage.of("linus"))
        what = (who.name, verb, address, answer.status_code)
        if verb == "HEAD" and "GET" in route.verbs and route.who is Who.EVERYONE:
            assert answer.text == "", what
        elif verb == "OPTIONS" and answer.status_code == 200:
            assert (answer.text, "Allow" in answer.headers) == ("", True), what
        elif gets_in(who, route) or route.who is Who.API_KEY:
            assert answer.status_code == 405, what
        else:
            assert answer.status_code in {405, *NOT_IN}, what
    assert ledger() == before


def test_looking_changes_nothing(stage: Stage) -> None:
    """Rule 11. Those who may look get something; nobody gets a word of somebody else's (see `call`)."""
    before = ledger()
    looks = [(address, route) for address, route in DECLARED.items() if "GET" in route.verbs]
    for (address, route), who in product(looks, stage.askers):
        for of, accept in product(stage.rows if route.owner_of else stage.rows[:1], ("*/*", "text/event-stream")):
            answer = call(stage, who, "GET", address, of, Accept=accept)
            if gets_in(who, route) and may(who, of):
                assert answer.status_code == 200, (who.name, address, answer.text)
            elif route.who is not Who.EVERYONE and not gets_in(who, route):
                assert answer.status_code in NOT_IN, (who.name, address)
    assert ledger() == before


def test_two_kinds_of_credentials_are_never_both_accepted(stage: Stage) -> None:
    """An address takes one kind; what comes along beside it counts for nothing."""
    headers = {**session(stage.house.linus), **bearer(world.api_key(stage.house.maya))}
    as_linus = Asker("Linus, with Maya's key", Who.SIGNED_IN, "linus", headers)
    as_maya = Asker("Maya's key, with Linus' session", Who.API_KEY, "maya", headers)
    linus, maya, before = stage.of("linus"), stage.of("maya"), ledger()
    for address, route in OWNED.items():
        for verb in route.verbs:
            match route.who:
                case Who.SIGNED_IN:
                    assert call(stage, as_linus, verb, address, maya).status_code == 404, (verb, address)
                case Who.API_KEY:
                    assert call(stage, as_maya, verb, address, linus).status_code == 404, (verb, address)
                case Who.WIDGET_VISITOR:
                    assert call(stage, as_linus, verb, address, stage.of("visitor")).status_code == 401, (verb, address)
    assert ledger() == before


def test_a_post_of_a_session_without_its_token_is_refused(stage: Stage) -> None:
    """A bearer token beside it opens nothing either."""
    unprotected = session(stage.house.linus, protected=False)
    both = unprotected | bearer(world.api_key(stage.house.linus))
    before = ledger()
    posts = [name for name, route in DECLARED.items() if "POST" in route.verbs and route.who is Who.SIGNED_IN]
    for address, headers, verb in product([*posts, "login/", "logout/"], (unprotected, both), UNSAFE):
        who = Asker("a forged request", None, "linus", headers)
        assert call(stage, who, verb, address, stage.of("linus")).status_code == 403, (verb, address)
    assert ledger() == before


TEXT = {"agent": "concierge", "text": "x", "input": "x"}
NAMING: list[tuple[str, str, str, dict[str, str]]] = [
    ("Maya", "POST", "/chat/send/", {**TEXT, "thread": "THREAD"}),
    ("Maya", "POST", "/chat/send/", {**TEXT, "retry": "RUN"}),
    ("Ada", "POST", "/chat/send/", {**TEXT, "thread": "THREAD"}),
    ("another visitor", "POST", "/widget/WIDGET/send/", {**TEXT, "thread": "THREAD"}),
    ("another visitor", "POST", "/widget/WIDGET/send/", {**TEXT, "retry": "RUN"}),
    ("another visitor", "GET", "/widget/WIDGET/conversation/?thread=THREAD", {}),
    ("another visitor", "GET", "/widget/WIDGET/conversation/?before=RUN", {}),
    ("Maya's key", "POST", "/api/v1/runs", {"agent": "concierge", "input": "x", "thread": "THREAD"}),
    ("Ada's key", "POST", "/api/v1/runs", {"agent": "concierge", "input": "x", "thread": "THREAD"}),
    ("Maya's key", "GET", "/api/v1/runs?thread=THREAD", {}),
]


def test_an_id_in_a_field_opens_no_more_than_one_in_an_address(stage: Stage) -> None:
    """Cases 16 and 18: identity comes from the session, the key or the token alone."""
    before = ledger()
    for name, verb, path, fields in NAMING:
        who = stage.asker(name)
        nothing = said(filled(stage, who, verb, path, fields, missing(stage.of("linus"))))
        for of in stage.rows:
            if of.owner != who.owns:
                assert said(filled(stage, who, verb, path, fields, of)) == nothing, (name, verb, path, of.owner)
    del before["web_widgetuse"]  # a message is counted, and given back when it is refused
    assert before.items() <= ledger().items()


def filled(stage: Stage, who: Asker, verb: str, path: str, fields: dict[str, str], of: Rows) -> httpx.Response:
    ids = {"THREAD": str(of.thread), "RUN": str(of.run), "WIDGET": str(who.widget)}
    where = re.sub("THREAD|RUN|WIDGET", lambda found: ids[found[0]], path)
    values = {name: ids.get(value, value) for name, value in fields.items()}
    body: Json = {"json" if path.startswith("/api/") else "data": values} if values else {}
    answer = stage.http.request(verb, where, headers={**who.headers, "HX-Request": "true"}, **body)
    assert of.secret not in answer.text
    return answer


def test_the_owner_gets_in(stage: Stage) -> None:
    """Without this the others would prove nothing. What deletes comes last."""
    for address in sorted(OWNED, key=lambda address: "delete/" in address or "DELETE" in OWNED[address].verbs):
        route = OWNED[address]
        who = stage.asker(INSIDER[route.who])
        path = path_of(address, stage.of(who.owns), stage.shop)
        for verb in route.verbs:
            said = {"title": "Mine"} if address.startswith("api/") else {"title": "Mine", "decision": "again"}
            fields: Json = {"json" if address.startswith("api/") else "data": said}
            answer = stage.http.request(
                verb, path, headers=who.headers, **(fields if verb in {"POST", "PATCH"} else {})
            )
            assert answer.status_code in {200, 202, 204, 302}, (verb, address, answer.text)
    assert {*Thread.objects.values_list("pk", flat=True)} == {stage.of("visitor").thread, stage.of("nobody").thread}


def test_a_stream_is_opened_by_a_view_alone(stage: Stage) -> None:
    """The ticket that views write is a header of their answers: the same header in a request opens nothing."""
    of = stage.of("linus")
    for who in stage.askers:
        for path in ("/healthz", "/login/", "/api/v1/docs", "/nowhere", f"/chat/runs/{of.run}/stream/"):
            answer = stage.http.get(path, headers={**who.headers, **forged(of)})
            opened = answer.headers["Content-Type"].startswith("text/event-stream")
            assert opened is (who.name == "Linus" and path.endswith("/stream/")), (who.name, path)
            assert "X-Roster-Stream" not in answer.headers


def test_a_token_of_another_widget_opens_no_door_here(stage: Stage) -> None:
    passer_by = visitor(world.widget(stage.house.analyst, SHOP, name="Third"), "visitor")
    for verb, path in (("GET", "conversation/"), ("POST", "send/"), ("GET", f"runs/{stage.of('visitor').run}/stream/")):
        answer = stage.http.request(verb, f"/widget/{stage.shop}/{path}", headers=passer_by)
        assert answer.status_code == 401
