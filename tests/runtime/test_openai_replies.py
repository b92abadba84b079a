"""What is asked and what is read by the OpenAI chat protocol, however oddly a server writes it."""

import asyncio
from uuid import UUID

import pytest
from haystack.dataclasses import ChatMessage, ToolCall  # noqa: TID251 - what the engine speaks

from runtime.engine.openai import OpenAIChat
from runtime.spec import Secret
from tests.runtime.openai_client import LOOK_UP, QUESTION, Listener, ask
from tests.scripted import API_KEY


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
