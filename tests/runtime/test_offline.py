"""The offline provider: general rules, tried with agents and handbooks that it has never heard of."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast
from uuid import UUID, uuid4

import pytest
from haystack.dataclasses import ChatMessage, StreamingChunk, ToolCall  # noqa: TID251 - what the engine speaks
from haystack.tools.tool import Tool  # noqa: TID251

from runtime.engine import questions
from runtime.engine.keywords import best_quote
from runtime.engine.offline import DISCLAIMER, OfflineChat
from runtime.ports import CONSULTED, NOTHING_FOUND, TASK_FOLLOWS, Passage, Ports
from runtime.spec import MemorySpec
from runtime.tools.search import build_search

LEAVE = Passage(
    "Handbook",
    "Leave",
    2,
    "Full-time employees have 28 days of annual leave in a calendar year. Part-time employees have a share of it.\n\n"
    "Ask your lead two weeks before you go.",
    heading="Leave \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} Annual leave",
)
TRAVEL = Passage("Handbook", "Travel", 1, "Book trips two weeks ahead. Trains come before planes.")


async def _nothing() -> None:
    """Never called: only the tool's description matters here."""


def tool(name: str, description: str, required: Sequence[str] = (), optional: Sequence[str] = (), **types: str) -> Tool:
    properties = {each: {"type": types.get(each, "string")} for each in (*required, *optional)}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(name, description, schema, async_function=_nothing)


def delegate(name: str, description: str) -> Tool:
    return tool(name, description, ["task"])


def memory(name: str, description: str) -> Tool:
    return tool(name, description, ["query"])


CALCULATOR = tool("calculator", "Works out arithmetic exactly.", ["expression"])
CLOCK = tool("clock", "Tells the date and time.", optional=["timezone"])
HANDBOOK = memory("search_handbook", "Rules on leave, travel and security.")
HR = delegate("ask_hr-desk", "HR desk: questions about leave, benefits and rules.")
ANALYST = delegate("analyst", "Analyst: works out figures.")


async def found_in(label: str, *passages: Passage) -> str:
    """What the search tool of a memory says about passages."""

    async def search(memory_id: int, query: str) -> Sequence[Passage]:
        return passages

    _, look_up = build_search(MemorySpec(1, "search", label, ""), cast(Ports, SimpleNamespace(search=search)))
    return (await look_up({"query": "leave"}, uuid4())).content


async def reply(messages: list[ChatMessage], tools: list[Tool] | None) -> ChatMessage:
    said: list[str] = []

    async def hear(chunk: StreamingChunk) -> None:
        said.append(chunk.content)

    answer = (await OfflineChat().run_async(messages, hear, tools=tools))["replies"][0]
    assert "".join(said) == (answer.text or "")
    assert answer.tool_calls or len(said) > 3
    return answer


async def first_call(question: str, *tools: Tool) -> tuple[str, dict[str, object]] | None:
    answer = await reply([ChatMessage.from_user(question)], list(tools))
    return (answer.tool_calls[0].tool_name, answer.tool_calls[0].arguments) if answer.tool_calls else None


async def told(question: str, call: ToolCall, result: str, *tools: Tool) -> ChatMessage:
    asked = ChatMessage.from_assistant("", tool_calls=[call])
    return await reply([ChatMessage.from_user(question), asked, ChatMessage.from_tool(result, call)], list(tools))


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(name, arguments, id=str(uuid4()))


async def coordinate(question: str, **desks: str) -> tuple[str, list[str]]:
    """An offline coordinator with delegates that answer these texts; gives its own answer and whom it asked."""
    tools = [delegate(name, "A colleague.") for name in desks]
    messages, asked = [ChatMessage.from_user(question)], list[str]()
    while True:
        answer = await reply(messages, tools)
        if not answer.tool_calls:
            return answer.text or "", asked
        (made,) = answer.tool_calls
        asked.append(made.tool_name)
        messages += [answer, ChatMessage.from_tool(desks[made.tool_name], made)]


async def test_a_question_goes_to_the_memory_and_the_passage_is_quoted_with_its_source():
    question = "How many days of annual leave do I get?"
    assert await first_call(question, CALCULATOR, HANDBOOK) == ("search_handbook", {"query": question})
    found = await found_in("Employee handbook", TRAVEL, LEAVE)
    answer = await told(question, call("search_handbook", query=question), found, HANDBOOK)
    assert "> Full-time employees have 28 days of annual leave in a calendar year.\n" in answer.text
    assert f"Source: Leave, passage 2, under “{LEAVE.heading}” (Employee handbook)." in answer.text
    assert "Also found: Travel, passage 1 (Employee handbook)." in answer.text
    assert answer.text.endswith(DISCLAIMER)


async def test_an_answer_goes_up_through_two_levels_whole_and_is_introduced_once():
    question = "How many days of annual leave do I get?"
    found = await found_in("Employee handbook", LEAVE)
    answer = (await told(question, call("search_handbook", query=question), found, HANDBOOK)).text
    for desk in ("librarian", "hr_desk"):
        handed_back = f"{answer}\n\n{CONSULTED}\n- search_handbook(query)"
        answer = (await told(question, call(desk, task=question), handed_back, delegate(desk, ""))).text
    assert answer.startswith("> Full-time employees have 28 days of annual leave in a calendar year.")
    assert "Source: Leave, passage 2" in answer
    assert CONSULTED not in answer
    assert answer.count("language model") == 1


async def test_arithmetic_goes_to_the_calculator_or_to_the_colleague_for_figures():
    question = "What is 1,249 * 0.21?"
    assert await first_call(question, HANDBOOK, CALCULATOR) == ("calculator", {"expression": "1,249 * 0.21"})
    assert await first_call(question, HR, ANALYST) == ("analyst", {"task": question})
    answer = await told(question, call("calculator", expression="1,249 * 0.21"), "262.29", CALCULATOR)
    assert answer.text.startswith("1,249 * 0.21 = 262.29 (calculator)")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("5-3", "5-3"),
        ("How much is (3+4)*2, please?", "(3+4)*2"),
        ("Tell me (2 + 3) * (4 - 1).", "(2 + 3) * (4 - 1)"),
        ("What is 100/4?", "100/4"),
        ("What is 12 times 12?", "12 * 12"),
        ("7 divided by 2", "7 / 2"),
        ("What's 21% of 1,249?", "1,249 * 21 / 100"),
        ("2 ** 10 = ?", "2 ** 10"),
        ("Are you open 9-17 on 2026-11-30?", ""),
        ("Is the hotline there 24/7?", ""),
        ("Call 555-1234", ""),
        ("I have 3 children", ""),
        ("", ""),
    ],
)
def test_arithmetic_is_found_where_there_is_some(question, expected):
    assert questions.expression(question) == expected


async def test_the_time_is_asked_of_the_clock_and_of_nobody_else():
    assert await first_call("What time is it?", HANDBOOK, CLOCK) == ("clock", {})
    assert await first_call("What time is it in Tokyo?", CLOCK) == ("clock", {"timezone": "Asia/Tokyo"})
    assert await first_call("What's the date today?", HR, CLOCK) == ("clock", {})
    assert (await first_call("What time does the office open?", CLOCK, HANDBOOK))[0] == "search_handbook"
    assert (await first_call("How much time off do I get?", CLOCK, HANDBOOK))[0] == "search_handbook"


async def test_the_colleague_whose_description_fits_is_asked_first():
    garden = delegate("garden_team", "Knows plants, pests and watering.")
    kitchen = delegate("kitchen_team", "Knows recipes and allergens.")
    assert (await first_call("Which plants need watering in June?", kitchen, garden))[0] == "garden_team"
    assert (await first_call("Does the recipe have an allergen?", garden, kitchen))[0] == "kitchen_team"


async def test_when_nothing_fits_everybody_is_asked_in_order_until_one_finds_something():
    answer, asked = await coordinate(
        "Who waters the cactus?",
        first=f"{NOTHING_FOUND} about this.",
        second=f"{NOTHING_FOUND} about this.",
        third="Linus does.",
        fourth="Never asked.",
    )
    assert asked == ["first", "second", "third"]
    assert "Third says:\n\n> Linus does." in answer


async def test_what_is_not_there_is_said_to_be_not_there():
    answer, asked = await coordinate(
        "What is the wifi password?", one=f"{NOTHING_FOUND} about “x”.", two=f"{NOTHING_FOUND} about this in Handbook."
    )
    assert asked == ["one", "two"]
    assert answer.startswith(f"{NOTHING_FOUND} about “What is the wifi password?”. I asked: one, two.")
    assert DISCLAIMER in answer


async def test_a_web_tool_is_called_when_the_question_holds_its_arguments():
    status = tool("order_status", "Looks up one order by its number.", ["order_id"])
    weather = tool("weather", "The weather in a city.", ["city"])
    seats = tool("free_seats", "Free seats for a group.", ["people", "day"], people="integer")
    assert await first_call("Where is order A-1042?", weather, status) == ("order_status", {"order_id": "A-1042"})
    assert await first_call("What's the weather in Paris?", status, weather) == ("weather", {"city": "Paris"})
    assert await first_call("Where is my order?", status) is None
    assert await first_call("Seats for 4 on Friday?", seats) == ("free_seats", {"people": 4, "day": "Friday"})


async def test_what_a_web_tool_says_is_quoted_under_its_name():
    answer = await told("Where is order A-1042?", call("order_status", order_id="A-1042"), '{"state": "on its way"}')
    assert answer.text.startswith('Order status says:\n\n> {"state": "on its way"}')


@pytest.mark.parametrize("greeting", ["Hello", "Hi there!", "Thanks.", "Who are you?", "What can you do?", "", "?!"])
async def test_small_talk_says_what_it_is_and_asks_nobody(greeting):
    answer = await reply([ChatMessage.from_user(greeting)], [HR, CALCULATOR])
    assert answer.tool_calls == []
    assert "not a language model" in answer.text
    assert "hr desk, calculator" in answer.text


async def test_without_tools_it_says_so():
    answer = await reply([ChatMessage.from_user("Hello")], None)
    assert "not a language model" in answer.text
    answer = await reply([ChatMessage.from_user("How many days of leave do I get?")], [])
    assert answer.text.startswith(NOTHING_FOUND)
    assert "nobody and nothing" in answer.text


async def test_only_results_since_the_last_question_count():
    before = call("search_handbook", query="leave")
    history = [
        ChatMessage.from_user("How much leave?"),
        ChatMessage.from_assistant("", tool_calls=[before]),
        ChatMessage.from_tool(await found_in("Handbook", LEAVE), before),
        ChatMessage.from_assistant("28 days."),
        ChatMessage.from_user("And how do I book a trip?"),
    ]
    answer = await reply(history, [HANDBOOK])
    assert answer.tool_calls[0].arguments == {"query": "And how do I book a trip?"}


@pytest.mark.parametrize(
    "words", [ChatMessage.from_user("Write up what you have."), ChatMessage.from_system("Last step.")]
)
async def test_asked_to_write_up_it_uses_what_was_found(words):
    asked = call("search_handbook", query="leave")
    found = ChatMessage.from_tool(await found_in("Handbook", LEAVE), asked)
    question = ChatMessage.from_user("How many days of annual leave?")
    answer = await reply([question, ChatMessage.from_assistant("", tool_calls=[asked]), found, words], None)
    assert "28 days" in answer.text


async def test_a_task_after_a_transcript_is_the_question():
    handed = f"The conversation so far:\n\nPerson: What is 2 + 2?\n\n{TASK_FOLLOWS}\n\nHow much leave does Maya get?"
    assert await first_call(handed, CALCULATOR, HANDBOOK) == (
        "search_handbook",
        {"query": "How much leave does Maya get?"},
    )


def test_the_quote_is_the_sentence_that_answers():
    text = (
        "## Expenses\n\nWe pay back what you spend for work. Meals with clients are paid up to 60 euros a person.\n\n"
        "Keep every receipt:\n- for trains, the ticket\n- for hotels, the invoice\n\n"
        "| Meal | Limit |\n|---|--:|\n| Breakfast | 12 |\n| Dinner | 25 |"
    )
    assert best_quote("How much is paid for meals with clients?", text).text.startswith(
        "Meals with clients are paid up"
    )
    assert best_quote("Which receipt for hotels?", text).text == "Keep every receipt: for hotels, the invoice"
    assert best_quote("How much is dinner?", text).text == "Meal: Dinner; Limit: 25"
    assert best_quote("Where do zebras live?", text).text.startswith("We pay back what you spend")


def test_a_number_is_preferred_when_one_is_asked_for():
    text = "Parental leave is for every parent. Parental leave lasts 14 months. Talk to us about parental leave."
    assert best_quote("How long is parental leave?", text).text == "Parental leave lasts 14 months."


async def test_hostile_text_takes_no_time_and_goes_on_whole():
    question = "((((" * 5000 + " 1" * 20000 + "\n" * 20000 + "leave"
    name, arguments = await first_call(question, CALCULATOR, CLOCK, HANDBOOK, HR)
    assert name in {"search_handbook", HR.name}
    assert question in arguments.values()


async def test_calls_have_ids_of_ours_and_nothing_is_counted():
    answer = await reply([ChatMessage.from_user("What is 2 + 2?")], [CALCULATOR])
    assert UUID(answer.tool_calls[0].id)
    assert answer.meta["usage"] == {"prompt_tokens": 0, "completion_tokens": 0}
