"""The OpenAI chat protocol against a server that goes wrong in every way we know (security rule R6)."""

import asyncio
import time

import pytest

from agents_admin import egress
from runtime.engine import faults
from runtime.engine.openai import OpenAIChat
from runtime.spec import Secret
from tests.runtime.openai_client import QUESTION, Listener, ask, fail
from tests.scripted import API_KEY

REFUSALS = {
    "400": faults.REJECTED,
    "401": faults.WRONG_KEY,
    "402": faults.QUOTA,
    "403": faults.NOT_ALLOWED,
    "404": faults.UNKNOWN_MODEL,
    "html-404": faults.UNKNOWN_MODEL,
    "409": faults.REJECTED,
    "413": faults.TOO_BIG,
    "422": faults.REJECTED,
    "quota": faults.QUOTA,
    "retry-after-absurd": faults.BUSY,
    "too-long": faults.TOO_LONG,
    "filtered": faults.FILTERED,
    "redirect": faults.REDIRECTED,
    "html-200": faults.WEB_PAGE,
    "text-body": faults.UNREADABLE,
    "empty-body": faults.NO_ANSWER,
    "error-as-json": faults.REPORTED,
    "error-in-stream": faults.REPORTED,
    "error-event": faults.REPORTED,
    "error-event-text": faults.REPORTED,
    "huge-line": faults.HUGE,
    "huge-garbage": faults.HUGE,
}


@pytest.mark.parametrize(("fault", "sentence"), REFUSALS.items())
async def test_each_refusal_has_its_sentence_and_is_not_repeated(model, http, fault, sentence):
    model.fails(fault)
    error, heard = await fail(model, http)
    assert error.message == sentence
    assert error.detail
    assert not error.partial
    assert heard.text == ""
    assert len(model.requests) == 1


PASSING = {
    "408": faults.TOOK_TOO_LONG,
    "429": faults.BUSY,
    "500": faults.OVERLOADED,
    "502": faults.OVERLOADED,
    "503": faults.OVERLOADED,
    "529": faults.OVERLOADED,
    "reset": faults.NO_ANSWER,
    "reset-after-head": faults.NO_ANSWER,
}


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr("runtime.engine.openai.random.uniform", lambda low, high: 0.01)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(("fault", "sentence"), PASSING.items())
async def test_what_may_pass_is_tried_three_times_and_then_said(model, http, fault, sentence):
    model.fails(fault, times=3).says("Too late.")
    error, _ = await fail(model, http)
    assert error.message == sentence
    assert len(model.requests) == 3


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("fault", [*PASSING, "retry-after-short"])
async def test_a_passing_fault_is_not_noticed_when_the_next_attempt_works(model, http, fault):
    model.fails(fault).says("Fine now.")
    reply, heard = await ask(model, http)
    assert reply.text == heard.text == "Fine now."


async def test_a_server_that_asks_for_hours_is_not_waited_for(model, http):
    model.fails("retry-after-absurd")
    since = time.perf_counter()
    error, _ = await fail(model, http)
    assert time.perf_counter() - since < 20
    assert "86400" in error.detail


CUT_OFF = {
    "cut-after-token": "One ",
    "closed-after-token": "One ",
    "ended-after-token": "One ",
    "no-finish-no-done": "One two three.",
    "cut-inside-utf8": "Gr",
    "not-json": "Half ",
    "error-after-token": "Half ",
}


@pytest.mark.parametrize(("fault", "text"), CUT_OFF.items())
async def test_an_answer_that_breaks_off_is_kept_marked_and_not_repeated(model, http, fault, text):
    model.fails(fault).says("A second answer.")
    error, heard = await fail(model, http)
    assert error.partial
    assert heard.text == text
    assert error.message in {faults.CUT_OFF, faults.UNREADABLE, faults.REPORTED}
    assert len(model.requests) == 1


@pytest.mark.parametrize("fault", ["hang", "hang-after-head", "drips-comments"])
async def test_a_server_that_never_answers_is_given_up_at_the_deadline(model, http, fault):
    model.fails(fault)
    error, _ = await fail(model, http, timeout_seconds=0.3)
    assert error.message == faults.SILENT
    assert not error.partial


async def test_a_server_that_falls_silent_is_given_up_sooner(model, http):
    model.fails("hang-after-token")
    since = time.perf_counter()
    error, heard = await fail(model, http, timeout_seconds=30.0, idle_seconds=0.2)
    assert time.perf_counter() - since < 20
    assert error.message == faults.FELL_SILENT
    assert error.partial
    assert heard.text == "One "


async def test_an_answer_without_end_is_given_up_at_the_deadline(model, http):
    model.says(["more "] * 1000, delay=0.02)
    error, heard = await fail(model, http, timeout_seconds=0.4)
    assert error.message == faults.TOO_SLOW
    assert error.partial
    assert heard.text.startswith("more more ")


async def test_a_slow_first_token_is_waited_for_longer_than_a_pause(model, http):
    model.answers({"text": "Slow.", "delay": 0.3})
    reply, _ = await ask(model, http, idle_seconds=0.5, timeout_seconds=5.0)
    assert reply.text == "Slow."


async def test_stopping_the_run_closes_the_stream_at_once(model, http):
    model.fails("hang-after-token")
    listener = Listener()
    task = asyncio.create_task(OpenAIChat(model.spec(), http).run_async(QUESTION, listener))
    await listener.spoken_to.wait()
    assert model.open_streams == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.05)
    assert model.open_streams == 0


@pytest.mark.usefixtures("hurried")
async def test_nobody_listening_is_said(model, http):
    error, _ = await fail(model, http, base_url="http://127.0.0.1:9/v1")
    assert error.message == faults.UNREACHABLE


@pytest.mark.parametrize(
    "address", ["", "localhost:80/v1", "ftp://example.com", "http://[::1/v1", "http://exa mple/v1"]
)
async def test_an_address_that_is_none_is_said(model, http, address):
    error, _ = await fail(model, http, base_url=address)
    assert error.message in {faults.BAD_ADDRESS, faults.UNREACHABLE}


async def test_a_key_that_can_not_be_sent_is_said_and_not_shown(model, http):
    error, _ = await fail(model, http, api_key=Secret("sk-one\r\nX-Evil: sk-two"))
    assert error.message == faults.BAD_KEY
    assert "sk-" not in error.detail


async def test_the_guarded_client_reaches_what_it_is_allowed_to(model):
    model.says("Inside.")
    async with egress.client(egress.Policy(egress.parse_allow("127.0.0.1"))) as guarded:
        reply, _ = await ask(model, guarded)
    assert reply.text == "Inside."


async def test_what_the_guard_refuses_is_said_in_its_words(model):
    async with egress.client(egress.Policy()) as guarded:
        error, _ = await fail(model, guarded)
    assert "127.0.0.1" in error.message
    assert "EGRESS_ALLOW" in error.message
    assert model.requests == []


async def test_a_server_that_repeats_key_and_prompt_is_not_quoted(model, http):
    model.fails("echoes-key-and-prompt", text=f"Bad: {API_KEY}")
    model.fails("echoes-key-and-prompt", text="Bad value 'How many days of leave does Maya get?'")
    first, _ = await fail(model, http)
    second, _ = await fail(model, http)
    assert API_KEY not in first.detail
    assert "Maya" not in second.detail
    assert second.detail.startswith("HTTP 400")


async def test_the_newer_name_of_the_limit_is_used_when_a_server_wants_it(model, http):
    model.fails("refuses-max-tokens").says("Short.")
    await OpenAIChat(model.spec(), http).run_async(QUESTION, generation_kwargs={"max_tokens": 20})
    first, second = (request.body for request in model.requests)
    assert first["max_tokens"] == second["max_completion_tokens"] == 20
    assert "max_tokens" not in second


async def test_a_server_that_can_not_count_is_not_asked_to(model, http):
    model.fails("refuses-stream-options").says("Yes.")
    reply, _ = await ask(model, http)
    assert reply.text == "Yes."
    assert "stream_options" not in model.requests[-1].body
