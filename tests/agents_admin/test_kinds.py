"""A tool's JSON becomes a typed value, or an error that names the field."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_admin.kinds import (
    TOOL_KINDS,
    ClockSettings,
    HttpSettings,
    Parameter,
    SettingsError,
    default_side_effect,
    parse,
)

ORDER = {"name": "order_id", "in": "path", "required": True, "description": "The order's number"}


def http(**settings: object) -> HttpSettings:
    parsed = parse("http", {"url": "https://shop.example/orders/{order_id}", "parameters": [ORDER]} | settings)
    assert isinstance(parsed, HttpSettings)
    return parsed


def test_settings_become_a_typed_value():
    assert http() == HttpSettings(
        "https://shop.example/orders/{order_id}",
        "GET",
        (Parameter("order_id", "path", "string", True, "The order's number"),),
    )
    assert parse("clock", {}) == ClockSettings("UTC")


def test_text_is_normalised_on_its_way_in():
    assert http(parameters=[ORDER | {"description": "a\0b\ud800"}]).parameters[0].description == "a\ufffdb\ufffd"


@pytest.mark.parametrize(
    ("kind", "settings", "field"),
    [
        ("nope", {}, "kind"),
        ("clock", {"timezone": ""}, "timezone"),
        ("clock", {"timezone": "../../etc/passwd"}, "timezone"),
        ("clock", {"timezone": "America"}, "timezone"),
        ("clock", {"timezone": "a\0"}, "timezone"),
        ("clock", {"timezone": True}, "timezone"),
        ("clock", {"zone": "UTC"}, "zone"),
        ("calculator", {"x": 1}, "x"),
        ("http", {}, "url"),
        ("http", {"url": 7}, "url"),
        ("http", {"url": ""}, "url"),
        ("http", {"url": "file:///etc/passwd"}, "url"),
        ("http", {"url": "https://user:pw@shop.example/"}, "url"),
        ("http", {"url": "https://{host}/"}, "url"),
        ("http", {"url": "https://shop.example/?q={q}"}, "url"),
        ("http", {"url": "https://shop.example/{q}"}, "url"),
        ("http", {"url": "https://shop.example/{q}", "parameters": [{"name": "q", "in": "query"}]}, "url"),
        ("http", {"url": "https://shop.example/", "method": "DELETE"}, "method"),
        ("http", {"url": "https://shop.example/", "method": ["GET"]}, "method"),
        ("http", {"url": "https://shop.example/", "parameters": {}}, "parameters"),
        ("http", {"url": "https://shop.example/", "parameters": ["q"]}, "parameters.1"),
        ("http", {"url": "https://shop.example/", "parameters": [{}]}, "parameters.1.name"),
        ("http", {"url": "https://shop.example/", "parameters": [{"name": "q"}, {"name": "a b"}]}, "parameters.2.name"),
        ("http", {"url": "https://shop.example/", "parameters": [{"name": "q"}, {"name": "Q"}]}, "parameters"),
        (
            "http",
            {"url": "https://shop.example/", "parameters": [{"name": "q", "required": 1}]},
            "parameters.1.required",
        ),
        ("http", {"url": "https://shop.example/", "parameters": [{"name": "q", "in": "cookie"}]}, "parameters.1.in"),
        ("http", {"url": "https://shop.example/", "parameters": [{"name": "q", "in": "path"}]}, "parameters.1.name"),
        ("http", {"url": "https://shop.example/", "parameters": [{"name": "q", "in": "body"}]}, "parameters.1.in"),
    ],
)
def test_settings_that_do_not_fit_name_the_field_in_words(kind, settings, field):
    with pytest.raises(SettingsError) as wrong:
        parse(kind, settings)
    assert wrong.value.field == field
    assert wrong.value.message.endswith((".", "none."))
    assert "pw" not in wrong.value.message


@pytest.mark.parametrize(
    "header",
    [
        "Host",
        "AUTHORIZATION",
        "cookie",
        "Content-Length",
        "Transfer-Encoding",
        "Proxy-Authorization",
        "Idempotency-Key",
    ],
)
def test_an_agent_never_fills_in_a_header_that_frames_or_signs_a_request(header):
    with pytest.raises(SettingsError, match="can't be filled in"):
        http(parameters=[ORDER, {"name": header, "in": "header"}])


def test_what_a_tool_does_to_the_world_unless_its_row_says_otherwise():
    assert default_side_effect("http", http()) == "read-only"
    assert default_side_effect("http", http(method="POST")) == "acts"
    assert default_side_effect("clock", ClockSettings()) == "read-only"


SCRAPS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.sampled_from(["GET", "path", "q", "https://a.b/{q}"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["url", "method", "parameters", "name", "in", "type", "timezone", "x"]), inner, max_size=4
        )
    ),
)


@given(st.sampled_from(sorted(TOOL_KINDS)), SCRAPS)
def test_any_json_is_settings_or_an_error_in_words(kind, raw):
    try:
        parse(kind, raw)
    except SettingsError as wrong:
        assert wrong.message  # noqa: PT017
