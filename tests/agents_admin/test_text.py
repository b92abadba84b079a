"""Text and JSON at the edge: what can't be stored is replaced or refused in words."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_admin.text import BadJson, clean, cleaned, read_json

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**200), 10**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(ANY_TEXT)
def test_clean_text_can_be_stored_and_only_loses_what_cannot(text):
    result = clean(text)
    assert "\0" not in result
    assert len(result) == len(text)
    result.encode()
    assert clean(result) == result


def test_text_that_can_be_stored_stays_as_it_is():
    assert clean("naïve \U0001f600 \ufffd\n") == "naïve \U0001f600 \ufffd\n"


@given(JSON)
def test_json_is_read_back_with_its_strings_clean(value):
    assert read_json(json.dumps(value)) == cleaned(value)
    json.dumps(read_json(json.dumps(value)), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NaN", "NaN is not a JSON value"),
        ("[-Infinity]", "-Infinity is not a JSON value"),
        ("1e999", "too large"),
        ('{"a": 1, "a": 2}', "“a” appears twice"),
        ("1" * 5_000, "more than 300 digits"),
        ("[" * 51 + "]" * 51, "deeper than 50"),
        ("[" * 200_000, "deeper than 50|not valid JSON"),
        ('{"a":' * 51 + "1" + "}" * 51, "deeper than 50"),
        (b"\xff", "not valid UTF-8"),
        ("\ufeff1", "not valid JSON"),
        ("", "not valid JSON"),
        ('{"a": 1', "line 1, column"),
    ],
)
def test_json_that_nothing_else_could_hold_is_refused_in_words(text, words):
    with pytest.raises(BadJson, match=words):
        read_json(text)


def test_brackets_inside_strings_are_no_nesting():
    assert read_json(json.dumps(["[" * 100 + '\\"' + "{" * 100])) == ["[" * 100 + '\\"' + "{" * 100]
    assert read_json("[" * 50 + "]" * 50)


@given(st.text() | st.binary())
def test_anything_is_read_or_refused(text):
    try:
        read_json(text)
    except BadJson as refused:
        assert str(refused).endswith(".")  # noqa: PT017


def test_a_megabyte_is_read_in_a_blink():
    text = json.dumps([{"name": "x" * 20, "values": [1, 2, 3]}] * 20_000)
    began = time.process_time()
    read_json(text)
    assert time.process_time() - began < 2
