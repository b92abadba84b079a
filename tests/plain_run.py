"""Run specs without rows or database: a log that is a list, rights that are a function, the real engine and HTTP."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import httpx

from agents_admin.kinds import CalculatorSettings
from runtime.closing import DIED, closes, opens, shuts
from runtime.events import Event, MessageText, Origin, RunFinished, ToolReturned
from runtime.ports import Passage, Ports, Right, Turn
from runtime.run import Outcome, run
from runtime.spec import AgentSpec, DelegationSpec, ModelSpec, RuntimeAgent, ToolSpec

OFFLINE = ModelSpec(id=1, label="Offline", kind="offline", model_id="offline")
CALCULATOR = ToolSpec(1, "calculator", "Calculator", "calculator", CalculatorSettings(), "Works out arithmetic.")


@dataclass
class ListLog:
    events: list[Event] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)

    def record(self, event: Event) -> None:
        self.events.append(event)

    def text(self, of: Origin, message: UUID, delta: str) -> None:
        self.events.append(MessageText(of, message, delta))

    async def commit(self) -> None:
        self.commits.append(len(self.events))

    def acting(self, calls: int) -> None:
        pass

    def of_kind[E](self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


@dataclass
class Ran:
    """What came of a run."""

    log: ListLog
    ended: Outcome | None

    @property
    def cancelled(self) -> bool:
        return self.ended is None

    @property
    def outcome(self) -> Outcome:
        assert self.ended is not None, "it was cancelled"
        return self.ended

    @property
    def labels(self) -> list[str]:
        return [event.of.agent for event in self.log.events if type(event).__name__ == "RunStarted"]


def agent(number: int, name: str, model: ModelSpec, **fields: object) -> AgentSpec:
    return AgentSpec(id=number, slug=name.lower(), label=name, model=model, **fields)  # type: ignore[arg-type]


def edge(number: int, to: AgentSpec | int, **fields: object) -> DelegationSpec:
    target = to if isinstance(to, int) else to.id
    return DelegationSpec(id=number, delegate_id=target, name=f"ask_{target}", **fields)  # type: ignore[arg-type]


def world_of(*agents: AgentSpec) -> RuntimeAgent:
    """The first is the root."""
    return RuntimeAgent(agents[0].id, {one.id: one for one in agents})


async def found_nothing(memory_id: int, query: str) -> Sequence[Passage]:
    return []


async def run_async(
    world: RuntimeAgent,
    text: str,
    *,
    may: Callable[[Right], bool] = lambda right: True,
    memories: Mapping[int, Sequence[Passage]] | None = None,
    cancel_when: Callable[[Event], bool] | None = None,
) -> Ran:
    log = ListLog()
    root = uuid4()

    async def may_call(right: Right) -> bool:
        return may(right)

    async def search(memory_id: int, query: str) -> Sequence[Passage]:
        return (memories or {}).get(memory_id, [])

    async with httpx.AsyncClient(trust_env=False, verify=False) as http:
        ports = Ports(log=log, may_call=may_call, search=search, http=http)
        origin = Origin(root, root, world.root.label, world.root.slug)
        task = asyncio.create_task(run(world, origin, [Turn("user", text)], ports))
        if cancel_when:
            await _cancel_at(task, log, cancel_when)
        await asyncio.wait([task])
    return Ran(log, None if task.cancelled() else task.result())


def run_plainly(world: RuntimeAgent, text: str = "Please help.", **options: object) -> Ran:
    """The run is checked: every open has one close, the terminal event is the one last event."""
    ran = asyncio.run(run_async(world, text, **options))  # type: ignore[arg-type]
    check_order(ran.log.events)
    return ran


def returns(ran: Ran) -> list[tuple[bool, str]]:
    """Of each call whether it was ok, and why not."""
    return [(event.ok, event.reason) for event in ran.log.of_kind(ToolReturned)]


def check_order(log: Sequence[Event]) -> None:
    """The contract's order: one open and one close of everything, inside its parent, one terminal event, last."""
    inside: list[tuple[str, UUID]] = []
    seen: set[tuple[str, UUID]] = set()
    for event in log:
        if door := opens(event):
            assert door not in seen, f"opened twice: {event}"
            seen.add(door)
            inside.append(door)
        elif door := shuts(event):
            assert door in inside, f"closed without being open: {event}"
            inside.remove(door)
            if door[0] == "run":
                assert not [one for one in inside if one[1] in _of_run(log, door[1])], f"closed around open: {event}"
    assert not inside
    assert closes(log, DIED) == []
    terminal = [event for event in log if isinstance(event, RunFinished) and event.of.depth == 0]
    assert terminal == [log[-1]]


def _of_run(log: Sequence[Event], run_id: UUID) -> set[UUID]:
    """What a run itself opened, its delegates' runs included."""
    return {door[1] for event in log if event.of.run == run_id and (door := opens(event)) and door[0] != "run"}


async def _cancel_at(task: asyncio.Task, log: ListLog, when: Callable[[Event], bool]) -> None:
    while not task.done():
        if any(when(event) for event in log.events):
            task.cancel()
            return
        await asyncio.sleep(0.002)
