"""Clock, search and delegation as a model meets them: a schema, and a call that answers in words."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID, uuid4

import httpx
import pytest
from jsonschema import Draft202012Validator

from agents_admin.kinds import CalculatorSettings, ClockSettings
from runtime.events import Event, Origin
from runtime.ports import NOTHING_FOUND, Call, Passage, Ports, Right, Source, ToolResult
from runtime.spec import AgentSpec, DelegationSpec, MemorySpec, ModelSpec, ToolSpec
from runtime.tools import BUILDERS, clock
from runtime.tools.delegate import build_delegate
from runtime.tools.search import build_search

HANDBOOK = MemorySpec(7, "search_handbook", "Employee handbook", "Rules on leave.")
LIBRARIAN = AgentSpec(3, "librarian", "Librarian", ModelSpec(1, "Small", "offline", "offline"))
EDGE = DelegationSpec(5, 3, "ask_librarian")


class Log:
    def record(self, event: Event) -> None: ...

    def text(self, of: Origin, message: UUID, delta: str) -> None: ...

    async def commit(self) -> None: ...

    def acting(self, calls: int) -> None: ...


async def allowed(right: Right) -> bool:
    return True


def ports(*passages: Passage) -> Ports:
    async def search(memory_id: int, query: str) -> list[Passage]:
        assert memory_id == HANDBOOK.id
        return list(passages)

    return Ports(Log(), allowed, search, httpx.AsyncClient())


async def ask(built: tuple[Mapping[str, object], Call], **arguments: object) -> ToolResult:
    schema, call = built
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(arguments)
    return await call(arguments, uuid4())


def a_clock(timezone: str = "Europe/Berlin"):
    return BUILDERS["clock"](ToolSpec(1, "clock", "Clock", "clock", ClockSettings(timezone), ""), ports())


def test_the_clock_tells_date_time_weekday_and_zone_in_one_line():
    zone = clock.time_zone("Europe/Berlin")
    assert clock.told(datetime(2026, 3, 4, 14, 5, 9, tzinfo=UTC), "Europe/Berlin", zone) == (
        "Wednesday, 2026-03-04 15:05:09, Europe/Berlin (UTC+01:00)"
    )


async def test_the_clock_answers_in_its_own_zone_or_the_one_it_is_asked_for():
    assert "Europe/Berlin" in (await ask(a_clock())).content
    told = (await ask(a_clock(), timezone="UTC")).content
    assert re.fullmatch(r"\w+day, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, UTC \(UTC\+00:00\)", told)


@pytest.mark.parametrize("zone", ["Berlin", "UTC+2", "../../etc/passwd", "a\0b", "x" * 10_000, "/etc/localtime"])
async def test_an_unknown_zone_is_answered_with_how_to_write_one(zone):
    result = await ask(a_clock(), timezone=zone)
    assert not result.ok
    assert "Write it like Europe/Berlin" in result.content
    assert len(result.content) < 200


async def test_the_calculator_says_what_it_worked_out():
    built = BUILDERS["calculator"](
        ToolSpec(1, "calculator", "Calculator", "calculator", CalculatorSettings(), ""), ports()
    )
    assert (await ask(built, expression="1,249 * 0.21")).content == "1,249 * 0.21 = 262.29"
    refused = await ask(built, expression="1 / 0")
    assert (refused.ok, refused.reason) == (False, "invalid")


async def test_a_search_names_document_and_passage():
    found = (
        Passage("Employee handbook", "Leave", 2, "30 days a year.", heading="Leave > Annual leave"),
        Passage("Employee handbook", "Travel", 1, "By\0train."),
    )
    result = await ask(build_search(HANDBOOK, ports(*found)), query="annual leave")
    assert result.content == (
        'Found in Employee handbook:\n\n[1] Leave, passage 2: "30 days a year." (under: Leave > Annual leave)\n\n'
        '[2] Travel, passage 1: "By\ufffdtrain."'
    )
    assert result.sources == (Source("Employee handbook", "Leave", 2), Source("Employee handbook", "Travel", 1))


async def test_a_search_that_finds_nothing_says_so_plainly():
    result = await ask(build_search(HANDBOOK, ports()), query="parrots")
    assert result.content == f"{NOTHING_FOUND} about this in Employee handbook."
    assert result.ok
    assert result.sources == ()


async def test_an_empty_question_is_not_searched():
    assert (await ask(build_search(HANDBOOK, ports()), query=" \n")).reason == "invalid"


async def test_a_delegate_is_handed_the_task_as_it_was_written():
    handed: list[tuple[DelegationSpec, str]] = []

    async def start_child(edge: DelegationSpec, task: str, call_id: UUID) -> ToolResult:
        handed.append((edge, task))
        return ToolResult("30 days.")

    built = build_delegate(EDGE, LIBRARIAN, start_child)
    assert (await ask(built, task=" How many days {{x}}?\0 ")).content == "30 days."
    assert handed == [(EDGE, "How many days {{x}}?\ufffd")]
    assert (await ask(built, task=" ")).reason == "invalid"
    assert (await ask(built, task="x" * 20_001)).reason == "invalid"
    assert len(handed) == 1
