"""The web request tool against a server on loopback: the model fills in values and changes nothing else."""

import json
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agents_admin.egress import Policy, client, parse_allow
from agents_admin.kinds import HttpSettings, parse
from runtime.ports import Passage, Ports, ToolResult
from runtime.spec import CredentialSpec, Secret, ToolSpec
from runtime.tools import http
from runtime.tools.http_request import BadValueError, make_request
from tests.loopback import Server, answer, redirect, serving
from tests.runtime.test_tools import Log, allowed

CALL = uuid4()
SECRET = "s3cret-canary-value"


@pytest.fixture
async def shop() -> AsyncIterator[Server]:
    async with serving() as server:
        server.answers["/orders/42"] = answer(b'{"state": "sent"}', "Content-Type: application/json")
        yield server


async def nothing(memory_id: int, query: str) -> list[Passage]:
    return []


async def call(shop: Server, path: str, arguments: dict[str, object] | None = None, **options) -> ToolResult:
    allow = options.pop("allow", "127.0.0.1")
    credential = options.pop("credential", None)
    timeout = options.pop("timeout", 5.0)
    tool = ToolSpec(
        1,
        "order_status",
        "Order status",
        "http",
        parse("http", {"url": f"http://127.0.0.1:{shop.port}{path}"} | options),
        "",
        timeout_seconds=timeout,
        max_output_chars=1_000,
        credential=credential,
    )
    async with client(Policy(parse_allow(allow))) as guarded:
        schema, perform = http.build(tool, Ports(Log(), allowed, nothing, guarded))
        Draft202012Validator.check_schema(schema)
        return await perform(arguments or {}, CALL)


def declared(*parameters: str) -> list[dict[str, object]]:
    """`order_id:path` or `amount:body:number`."""
    return [dict(zip(("name", "in", "type"), one.split(":"), strict=False)) for one in parameters]


async def test_a_value_goes_where_its_parameter_says(shop):
    shop.answers["/orders/42?full=true&note=a+b%26c"] = answer(b"sent", "Content-Type: text/plain")
    result = await call(
        shop,
        "/orders/{order_id}",
        {"order_id": 42, "full": True, "note": "a b&c", "X-Trace": "abc"},
        parameters=declared("order_id:path:integer", "full:query:boolean", "note:query", "X-Trace:header"),
    )
    assert result == ToolResult("sent")
    assert "\r\nX-Trace: abc\r\n" in shop.requests[0]


async def test_post_sends_a_json_object_and_a_key_against_doing_it_twice(shop):
    shop.answers["/refunds"] = answer(b"ok", "Content-Type: text/plain", status="201 Created")
    values = {"amount": 12.5, "why": "broken\0"}
    result = await call(shop, "/refunds", values, method="POST", parameters=declared("amount:body:number", "why:body"))
    assert result.ok
    head, _, body = shop.requests[0].partition("\r\n\r\n")
    assert json.loads(body) == {"amount": 12.5, "why": "broken\ufffd"}
    assert f"Idempotency-Key: {CALL}" in head


def test_the_schema_holds_what_the_administrator_declared():
    parameters = [
        {"name": "order_id", "in": "path", "description": "The order's number"},
        {"name": "full", "in": "query", "type": "boolean", "required": True},
        {"name": "note", "in": "query"},
    ]
    parsed = parse("http", {"url": "https://shop.example/{order_id}", "parameters": parameters})
    assert isinstance(parsed, HttpSettings)
    assert http._schema(parsed.parameters) == {
        "type": "object",
        "properties": {
            "order_id": {"type": "string", "description": "The order's number"},
            "full": {"type": "boolean"},
            "note": {"type": "string"},
        },
        "required": ["order_id", "full"],
        "additionalProperties": False,
    }


SETTINGS = parse(
    "http",
    {
        "url": "https://shop.example:8443/v1/orders/{order_id}/lines?fixed=1",
        "parameters": declared("order_id:path", "note:query", "X-Trace:header"),
    },
)
CLIENT = client(Policy())
HOSTILE = [
    "/",
    "..",
    "../..",
    "..\\..",
    "a/../b",
    "?x=1",
    "#x",
    "a?b#c",
    "%2e%2e",
    "%2F",
    "@evil.example",
    "\r\nX: y",
    "",
]


@given(*[st.sampled_from([*HOSTILE, "{note}", "{order_id}"]) | st.text(max_size=30)] * 3)
def test_no_value_leaves_its_place(order_id, note, trace):
    assert isinstance(SETTINGS, HttpSettings)
    try:
        request = make_request(CLIENT, SETTINGS, {"order_id": order_id, "note": note, "X-Trace": trace}, CALL)
    except BadValueError:
        return
    assert (request.url.scheme, request.url.host, request.url.port) == ("https", "shop.example", 8443)
    path, _, query = request.url.raw_path.decode().partition("?")
    assert len(path.split("/")) == 5
    assert (path[:11], path[-6:]) == ("/v1/orders/", "/lines")
    assert query.startswith("fixed=1&note=")
    assert query.count("&") == 1
    assert request.url.fragment == ""
    assert not {"\r", "\n", "\0"} & set(request.headers["X-Trace"])


@pytest.mark.parametrize("order_id", ["", ".", "..", "../admin", "a/../b", "..\\admin", "a\r\nb", "x" * 2_001])
async def test_a_value_that_would_be_another_path_is_refused_in_words(shop, order_id):
    result = await call(shop, "/orders/{order_id}", {"order_id": order_id}, parameters=declared("order_id:path"))
    assert result.reason == "invalid"
    assert result.content.startswith("order_id ")
    assert shop.requests == []


def bearer(*origins: str, kind="bearer", secret=SECRET, header="") -> CredentialSpec:
    return CredentialSpec(1, kind, Secret(secret), origins, header)


@pytest.mark.parametrize(
    ("credential", "sent"),
    [
        ({"kind": "bearer"}, f"Authorization: Bearer {SECRET}"),
        ({"kind": "header", "header": "X-Api-Key"}, f"X-Api-Key: {SECRET}"),
        ({"kind": "basic", "secret": "shop:pass"}, "Authorization: Basic c2hvcDpwYXNz"),
    ],
)
async def test_a_credential_is_sent_to_its_origin(shop, credential, sent):
    result = await call(shop, "/orders/42", credential=bearer(f"http://127.0.0.1:{shop.port}", **credential))
    assert result.ok
    assert sent.lower() in shop.requests[0].lower()


async def test_a_credential_for_another_origin_refuses_the_call(shop):
    result = await call(shop, "/orders/42", credential=bearer("https://shop.example"))
    assert not result.ok
    assert "may not be sent" in result.content
    assert SECRET not in result.content
    assert shop.requests == []


@pytest.mark.parametrize(
    "bad", [{"secret": ""}, {"secret": "a\nb"}, {"secret": "ключ"}, {"kind": "header", "header": "a b"}]
)
async def test_a_credential_that_cannot_be_sent_refuses_the_call(shop, bad):
    result = await call(shop, "/orders/42", credential=bearer(f"http://127.0.0.1:{shop.port}", **bad))
    assert "An administrator can" in result.content
    assert shop.requests == []


async def test_a_secret_that_the_service_echoes_does_not_reach_the_model(shop):
    shop.answers["/echo"] = answer(f"you sent {SECRET}".encode(), "Content-Type: text/plain", status="400 Bad Request")
    result = await call(shop, "/echo", credential=bearer(f"http://127.0.0.1:{shop.port}"))
    assert result.content == "The service answered 400 (Bad Request). you sent [secret]"


@pytest.mark.parametrize(
    ("raw", "content"),
    [
        (answer(b"caf\xe9", "Content-Type: text/plain; charset=iso-8859-1"), "café"),
        (answer(b"caf\xe9\0", "Content-Type: text/plain; charset=punycode"), "caf\ufffd\ufffd"),
        (answer(b"\xef\xbb\xbf[1]", "Content-Type: application/problem+json"), "[1]"),
        (answer(b"plain"), "plain"),
        (answer(b"", status="204 No Content"), "The service answered 204 (No Content) without any text."),
        (
            answer(b"\x89PNG\0", "Content-Type: image/png"),
            "The answer is image/png of 5 bytes, which can't be read as text.",
        ),
        (answer(b"\0\1\2"), "The answer is data of 3 bytes, which can't be read as text."),
        (answer(b"x" * 5_000, "Content-Type: text/plain"), "x" * 4_000 + "\n[… the rest of the answer was left out …]"),
    ],
)
async def test_an_answer_is_read_leniently(shop, raw, content):
    shop.answers["/x"] = raw
    assert await call(shop, "/x") == ToolResult(content)


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "599 Odd"])
async def test_an_error_of_the_service_is_not_ok_and_short(shop, status):
    shop.answers["/x"] = answer(b"e" * 5_000, "Content-Type: text/plain", status=status)
    result = await call(shop, "/x")
    assert (result.ok, result.reason) == (False, "failed" if status.startswith("4") else "unsure")
    assert result.content.startswith(f"The service answered {status[:3]}")
    assert len(result.content) < 600


async def test_a_private_address_is_refused_without_telling_where_it_points(shop):
    result = await call(shop, "/orders/42", allow="")
    assert (result.ok, result.reason) == (False, "failed")
    assert "127.0.0.1" not in result.content
    assert shop.requests == []


async def test_a_redirect_to_a_private_address_is_refused(shop):
    shop.answers["/x"] = redirect("http://10.0.0.1/")
    assert not (await call(shop, "/x")).ok


async def test_a_service_that_hangs_times_out(shop):
    shop.answers["/x"] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
    result = await call(shop, "/x", timeout=0.2)
    assert (result.ok, result.reason) == (False, "timeout")
