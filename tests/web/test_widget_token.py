"""A visitor's token says who and where, for a quarter of an hour."""

import time
from uuid import uuid4

import pytest
from django.core import signing

from web.widget.token import RENEWABLE, Pass, issue, new_visitor, read

VISIT = Pass(uuid4(), "https://shop.example", new_visitor())


@pytest.fixture
def later(monkeypatch):
    """Let so many minutes pass."""
    now = time.time

    def pass_by(minutes):
        monkeypatch.setattr(time, "time", lambda: now() + minutes * 60)

    return pass_by


def test_a_token_says_what_was_put_in():
    assert read(issue(VISIT)) == VISIT


def test_a_token_expires_after_a_quarter_of_an_hour(later):
    token = issue(VISIT)
    later(14)
    assert read(token) == VISIT
    later(16)
    assert read(token) is None


def test_an_expired_token_says_who_it_was_for_thirty_days(later):
    token = issue(VISIT)
    later(29 * 24 * 60)
    assert read(token, RENEWABLE) == VISIT
    later(31 * 24 * 60)
    assert read(token, RENEWABLE) is None


@pytest.mark.parametrize("token", ["", "x", "a:b:c", "\x00", "é:é:é", ":" * 1000, "rk_abc"])
def test_what_is_no_token_says_nothing(token):
    assert read(token) is None


def test_a_token_that_was_changed_or_signed_for_something_else_says_nothing():
    token = issue(VISIT)
    assert read(token[:-1] + ("A" if token[-1] != "A" else "B")) is None
    assert read(signing.dumps({"widget": str(VISIT.widget), "origin": VISIT.origin, "visitor": "x"})) is None


def test_no_two_visitors_have_the_same_name():
    assert len({new_visitor() for _ in range(100)}) == 100
