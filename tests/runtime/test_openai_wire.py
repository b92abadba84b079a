"""The OpenAI chat protocol against a server that goes wrong in every way we know (security rule R6)."""

import asyncio
import time
from collections.abc import AsyncIterator
from uuid import UUID

import httpx
import pytest
from haystack.dataclasses import ChatMessage, StreamingChunk, ToolCall  # noqa: TID251 - what the engine speaks
from haystack.tools.tool import Tool  # noqa: TID251

from agents_admin import egress
from runtime.engine import faults
from runtime.engine.openai import OpenAIChat
from runtime.errors import ModelError
from runtime.spec import Secret
from tests.scripted import API_KEY, ScriptedModel

QUESTION = [ChatMessage.from_system("Be brief."), ChatMessage.from_user("How many days of leave does Maya get?")]


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


class Listener:
    """Hears the stream as a run does."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.reasonings: list[str] = []
        self.spoken_to = asyncio.Event()

    async def __call__(self, chunk: StreamingChunk) -> None:
        if chunk.reasoning:
            self.reasonings.append(chunk.reasoning.reasoning_text)
        if chunk.content:
            self.texts.append(chunk.content)
            self.spoken_to.set()

    @property
    def text(self) -> str:
        return "".join(self.texts)


async def _nothing() -> None:
    """Never called: only the tool's description matters here."""


LOOK_UP = Tool(
    "look_up",
    "Looks something up.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    async_function=_nothing,
)


async def ask(
    model: ScriptedModel, http: httpx.AsyncClient, messages: list[ChatMessage] = QUESTION, **changes
) -> tuple[ChatMessage, Listener]:
    listener = Listener()
    answer = await OpenAIChat(model.spec(**changes), http).run_async(messages, listener, tools=[LOOK_UP])
    return answer["replies"][0], listener


async def fail(model: ScriptedModel, http: httpx.AsyncClient, **changes) -> tuple[ModelError, Listener]:
    listener = Listener()
    with pytest.raises(ModelError) as raised:
        await OpenAIChat(model.spec(**changes), http).run_async(QUESTION, listener)
    return raised.value, listener


async def test_text_arrives_as_it_is_spoken_and_the_reply_is_the_same_text(model, http):
    model.says("Maya gets twenty-eight days.", delay=0.01, reasoning="Handbook first.")
    reply, heard = await ask(model, http)
    assert reply.text == heard.text == "Maya gets twenty-eight days."
    assert len(heard.texts) > 1
    assert "".join(heard.reasonings) == "Handbook first."
    assert reply.meta["finish_reason"] == "stop"
    assert reply.meta["model"] == "small"
    assert reply.meta["usage"] == {"prompt_tokens": 10, "completion_tokens": 4}
    assert "usage_estimated" not in reply.meta


async def test_a_request_says_who_asks_and_wants_a_counted_stream(model, http):
    model.says("Yes.")
    generator = OpenAIChat(model.spec(), http)
    settings = {"temperature": 0.2, "max_tokens": 50, "seed": 7, "top_p": None, "stream": False, "model": "other"}
    await generator.run_async(QUESTION, generation_kwargs=settings, tools=[LOOK_UP])
    (request,) = model.requests
    assert request.headers["authorization"] == f"Bearer {API_KEY}"
    assert request.body["model"] == "small"
    assert request.body["stream"] is True
    assert request.body["stream_options"] == {"include_usage": True}
    assert (request.body["temperature"], request.body["max_tokens"], request.body["seed"]) == (0.2, 50, 7)
    assert "top_p" not in request.body
    assert request.tools == ["look_up"]


async def test_without_a_key_no_authorization_is_sent(model, http):
    model.says("Yes.")
    await ask(model, http, api_key=Secret(""))
    assert "authorization" not in model.requests[0].headers


async def test_a_conversation_with_calls_is_sent_back_with_the_same_ids(model, http):
    model.calls("look_up", {"query": "leave"}).says("28 days.")
    asked, _ = await ask(model, http)
    call = asked.tool_calls[0]
    assert str(UUID(call.id)) == call.id
    results = [ChatMessage.from_tool("28 days", call), ChatMessage.from_tool("of leave", call)]
    await ask(model, http, [*QUESTION, asked, *results])
    _, _, assistant, *answered = model.requests[-1].messages
    assert assistant["content"] == ""
    assert assistant["tool_calls"][0]["id"] == call.id
    assert assistant["tool_calls"][0]["function"] == {"name": "look_up", "arguments": '{"query": "leave"}'}
    assert [entry["tool_call_id"] for entry in answered] == [call.id, call.id]
    assert [entry["content"] for entry in answered] == ["28 days", "of leave"]


async def test_an_unreadable_call_is_sent_back_in_a_form_that_servers_accept(model, http):
    call = ToolCall(" look\x00up! ", {}, id="6c1b1c4e-0000-4000-8000-000000000001", extra={"unreadable": "{oops"})
    big = ToolCall("look_up", {"query": 10**40}, id="6c1b1c4e-0000-4000-8000-000000000002")
    await ask(model, http, [*QUESTION, ChatMessage.from_assistant("", tool_calls=[call, big])])
    functions = [sent["function"] for sent in model.requests[0].messages[-1]["tool_calls"]]
    assert functions[0] == {"name": "_look_up__", "arguments": "{}"}
    assert functions[1]["arguments"] == '{"query": 1' + "0" * 40 + "}"


ODD_BYTES = "split-bytes one-lump crlf bom comments no-spaces no-last-newline no-done no-finish"
NOT_STREAMED = ["not-streamed", "not-streamed-pretty"]


@pytest.mark.parametrize("oddity", [*ODD_BYTES.split(), *NOT_STREAMED])
async def test_a_server_may_write_its_stream_oddly(model, http, oddity):
    model.fails(oddity, text="Grüße aus Zürich — 你好 \N{GRINNING FACE}!")
    reply, heard = await ask(model, http)
    assert reply.text == heard.text == "Grüße aus Zürich — 你好 \N{GRINNING FACE}!"
    assert reply.meta["finish_reason"] == "stop"


@pytest.mark.parametrize("ending", ["hang-after-done", "abort-after-done"])
async def test_an_answer_that_is_complete_is_not_lost_by_a_bad_goodbye(model, http, ending, monkeypatch):
    monkeypatch.setattr("runtime.engine.patience.LINGER_SECONDS", 0.1)
    model.fails(ending)
    reply, _ = await ask(model, http)
    assert reply.text == "One two three."
    assert reply.meta["usage"]["completion_tokens"] == 3


async def test_ten_megabytes_in_one_token_are_an_answer(model, http):
    model.fails("huge-token")
    reply, heard = await ask(model, http)
    assert len(reply.text or "") == len(heard.text) == 10 * 1024 * 1024


@pytest.mark.parametrize("oddity", ["invalid-utf8", "surrogates-and-nul"])
async def test_text_that_nobody_can_store_is_replaced(model, http, oddity):
    model.fails(oddity)
    reply, _ = await ask(model, http)
    assert reply.text in {"a\ufffdb", "a\ufffdb\ufffdc"}
    assert reply.text.encode()


async def test_shapes_that_are_no_answer_are_passed_over(model, http):
    model.fails("odd-shapes")
    reply, _ = await ask(model, http)
    assert reply.text == "Parts."
    assert reply.tool_calls == []


@pytest.mark.parametrize("oddity", ["no-usage", "wrong-usage", "absurd-usage"])
async def test_tokens_that_were_not_counted_are_estimated_and_marked(model, http, oddity):
    model.fails(oddity)
    reply, _ = await ask(model, http)
    assert reply.meta["usage_estimated"] is True
    assert 10 < reply.meta["usage"]["prompt_tokens"] < 200
    assert reply.meta["usage"]["completion_tokens"] == 4


ONE_CALL = "names-repeated name-in-pieces arguments-object"
TWO_CALLS = "no-ids same-ids same-index same-index-no-ids no-index interleaved"
UNREADABLE = {
    "arguments-array": '["leave"]',
    "arguments-array-text": '["leave"]',
    "arguments-malformed": '{"query": "leave"',
    "arguments-nan": '{"query": NaN}',
}


@pytest.mark.parametrize("oddity", ONE_CALL.split())
async def test_one_call_is_read_from_odd_fragments(model, http, oddity):
    model.fails(oddity, text="Let me see. ")
    reply, heard = await ask(model, http)
    assert [(call.tool_name, call.arguments) for call in reply.tool_calls] == [("look_up", {"query": "leave"})]
    assert reply.text == heard.text == "Let me see. "
    assert reply.meta["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("oddity", TWO_CALLS.split())
async def test_two_calls_stay_two_with_ids_of_ours(model, http, oddity):
    model.fails(oddity)
    reply, _ = await ask(model, http)
    assert [call.arguments for call in reply.tool_calls] == [{"query": "a"}, {"query": "b"}]
    assert len({UUID(call.id) for call in reply.tool_calls}) == 2


async def test_text_and_a_call_in_one_delta_are_both_kept(model, http):
    model.fails("text-and-call")
    reply, heard = await ask(model, http)
    assert heard.text == "Let me see. "
    assert reply.tool_calls[0].tool_name == "look_up"


@pytest.mark.parametrize(("oddity", "raw"), UNREADABLE.items())
async def test_arguments_that_are_no_object_are_kept_as_they_came(model, http, oddity, raw):
    model.fails(oddity)
    reply, _ = await ask(model, http)
    (call,) = reply.tool_calls
    assert call.arguments == {}
    assert call.extra == {"unreadable": raw}


async def test_absurdly_deep_arguments_are_unreadable_not_fatal(model, http):
    model.fails("arguments-deep")
    reply, _ = await ask(model, http)
    assert reply.tool_calls[0].extra["unreadable"].startswith('{"query": [[[')


async def test_a_call_without_arguments_or_with_an_odd_name_is_a_call(model, http):
    model.fails("no-arguments").fails("odd-name").fails("no-name")
    without, _ = await ask(model, http)
    odd, _ = await ask(model, http)
    nameless, _ = await ask(model, http)
    assert (without.tool_calls[0].tool_name, without.tool_calls[0].arguments) == ("look_up", {})
    assert odd.tool_calls[0].tool_name == "functions.look\ufffdup\N{GRINNING FACE}"
    assert nameless.tool_calls[0].tool_name == ""


async def test_an_empty_answer_is_an_empty_reply(model, http):
    model.fails("only-done")
    reply, heard = await ask(model, http)
    assert reply.text == heard.text == ""


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
    assert time.perf_counter() - since < 2
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
    assert time.perf_counter() - since < 5
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


async def test_one_instance_serves_runs_at_the_same_time(model, http):
    for number in range(20):
        model.when(contains=f"question {number}.").says(f"answer {number}.", delay=0.001)
    generator = OpenAIChat(model.spec(), http)
    listeners = [Listener() for _ in range(20)]
    await asyncio.gather(
        *(
            generator.run_async([ChatMessage.from_user(f"question {number}.")], listener)
            for number, listener in enumerate(listeners)
        )
    )
    assert [listener.text for listener in listeners] == [f"answer {number}." for number in range(20)]


async def test_it_is_asynchronous_only(model, http):
    with pytest.raises(NotImplementedError, match="run_async"):
        OpenAIChat(model.spec(), http).run(QUESTION)
