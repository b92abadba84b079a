"""What is refused is refused in words, as JSON, with the field at fault: never a 500, never HTML."""

import json

import httpx
import pytest

from tests import world
from tests.web.api_client import ask, client, settle

pytestmark = pytest.mark.django_db(transaction=True)

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def api(site):
    yield client(site, world.api_key(world.house().linus))
    settle()


def refused(answer: httpx.Response, status: int, code: str) -> dict:
    assert answer.status_code == status, answer.text
    error: dict = answer.json()["error"]
    assert error["code"] == code
    assert len(error["message"]) > 15
    return error


def test_a_body_is_refused_with_the_field_at_fault(api):
    good = {"agent": "concierge", "input": "Hello"}
    for change, field in (
        ({"surprise": 1}, "surprise"),
        ({"agent": None}, "agent"),
        ({"agent": ["concierge"]}, "agent"),
        ({"input": 7}, "input"),
        ({"input": ""}, "input"),
        ({"input": "  \n"}, "input"),
        ({"input": "x" * 100_001}, "input"),
        ({"thread": "no id"}, "thread"),
        ({"thread": 7}, "thread"),
        ({"wait": "5"}, "wait"),
        ({"wait": True}, "wait"),
        ({"wait": 56}, "wait"),
        ({"wait": -1}, "wait"),
        ({"metadata": "text"}, "metadata"),
    ):
        error = refused(api.post("/runs", json=good | change), 422, "invalid")
        assert error["field"] == field, change
    for missing in good:
        body = {name: value for name, value in good.items() if name != missing}
        assert refused(api.post("/runs", json=body), 422, "invalid")["field"] == missing
    assert api.get("/runs").json()["items"] == []


def test_json_that_nothing_else_could_hold_is_refused_in_words(api):
    for body, words in (
        ("", "JSON object"),
        ("{", "not valid JSON"),
        ("[]", "JSON object"),
        ("null", "JSON object"),
        ('{"agent": "concierge", "agent": "analyst", "input": "x"}', "twice"),
        ('{"agent": "concierge", "input": "x", "wait": NaN}', "NaN"),
        ('{"agent": "concierge", "input": "x", "wait": 1e999}', ""),
        ('{"agent": "concierge", "input": "x", "metadata": {"a": 1e999}}', ""),
        ('{"agent": "concierge", "input": "x", "metadata": {"a": ' + "9" * 5000 + "}}", "digits"),
        ('{"a":' * 60 + "1" + "}" * 60, "nested"),
        (b"\xff\xfe{}", "UTF-8"),
    ):
        answer = api.post("/runs", content=body, headers=JSON)
        assert words in refused(answer, 422, "invalid")["message"], body


def test_hostile_text_is_cleaned_and_answered(api):
    for text in ("NUL \x00 here", "\ud800 alone", "{{x}} {name}", "<script>alert(1)</script>", "مرحبا \u202e 🦉"):
        content = json.dumps({"agent": "analyst", "input": text, "wait": 30, "metadata": {text: text}})
        answer = api.post("/runs", content=content, headers=JSON)
        assert answer.status_code == 200, answer.text
        thread = answer.json()["thread"]
        kept = api.get(f"/threads/{thread}/messages").json()["items"][0]["text"]
        assert kept == text.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
        renamed = api.patch(f"/threads/{thread}", content=json.dumps({"title": text}), headers=JSON)
        assert (renamed.status_code, renamed.json()["title"]) == (200, kept)


def test_unknown_filters_and_wrong_values_are_refused(api):
    for path, field in (
        ("/runs?state=failed", "state"),
        ("/runs?status=broken", "status"),
        ("/runs?thread=no-id", "thread"),
        ("/runs?cursor=nonsense", "cursor"),
        ("/runs?cursor=WyIyMDI2LTAxLTAxIiwgIngiXQ", "cursor"),
        ("/threads?cursor=W1tdLFtdXQ", "cursor"),
        ("/threads?status=failed", "status"),
        ("/agents?agent=concierge", "agent"),
        ("/runs?a%00b=1", "a\ufffdb"),
    ):
        assert refused(api.get(path), 422, "invalid")["field"] == field, path
    run = ask(api).json()["id"]
    for after in ("-1", "x", "1.5", "99999999999999999999"):
        assert refused(api.get(f"/runs/{run}/events?after={after}"), 422, "invalid")["field"] == "after"


def test_an_idempotency_key_is_short_and_printable(api):
    for key in ("x" * 201, "tab\there"):
        assert refused(ask(api, key=key), 422, "invalid")["field"] == "Idempotency-Key"


def test_what_no_view_answers_is_json_too(api, site):
    refused(api.get("/nothing"), 404, "not_found")
    refused(httpx.get(f"{site}/api/", trust_env=False), 404, "not_found")
    refused(api.get("/runs/"), 404, "not_found")
    not_allowed = api.put("/runs", json={})
    refused(not_allowed, 405, "method_not_allowed")
    assert set(not_allowed.headers["Allow"].split(", ")) == {"GET", "POST"}
    refused(api.post("/runs", content=b"x" * 3_000_000, headers=JSON), 413, "too_large")
    chunked = api.post("/runs", content=iter([b"x" * 1_000_000] * 3), headers=JSON)
    refused(chunked, 413, "too_large")
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = api.post("/runs", content=b'{"agent": "concierge", "input": "x"}', headers={"Content-Type": kind})
        refused(answer, 415, "unsupported_media_type")
    assert httpx.get(f"{site}/nothing", trust_env=False).headers["Content-Type"].startswith("text/html")
