"""What an agent has in hand: its rows' tools, a search for each memory, a tool for each delegate."""

from collections.abc import Awaitable, Callable
from uuid import UUID

from runtime.ports import BoundTool, Right, ToolResult
from runtime.run import prompt
from runtime.run.frame import Frame
from runtime.spec import DelegationSpec, MemorySpec, ToolSpec
from runtime.tools import BUILDERS
from runtime.tools.delegate import build_delegate
from runtime.tools.search import build_search

SEARCH_SECONDS = 30

type HandOver = Callable[[Frame, DelegationSpec, str, UUID], Awaitable[ToolResult]]


def equip(frame: Frame, hand_over: HandOver) -> None:
    """Give the frame its tools. Delegates the actor may not use were left out when the agent was resolved."""
    agent = frame.agent
    bound = [_bind_tool(frame, tool) for tool in agent.tools]
    bound += [_bind_memory(frame, memory) for memory in agent.memories]
    bound += [_bind_delegate(frame, edge, hand_over) for edge in agent.roster if edge.delegate_id in frame.world.agents]
    frame.tools = {tool.name: tool for tool in bound}


def _bind_tool(frame: Frame, tool: ToolSpec) -> BoundTool:
    parameters, call = BUILDERS[tool.kind](tool, frame.ports)
    return BoundTool(
        name=tool.name,
        label=tool.label,
        kind=tool.kind,
        description=tool.description,
        parameters=parameters,
        call=call,
        right=Right(frame.path, frame.edges, tool=tool.id),
        side_effect=tool.side_effect,
        approval=tool.approval,
        timeout_seconds=tool.timeout_seconds,
        max_output_chars=tool.max_output_chars,
        max_calls=tool.max_calls,
    )


def _bind_memory(frame: Frame, memory: MemorySpec) -> BoundTool:
    parameters, call = build_search(memory, frame.ports)
    return BoundTool(
        name=memory.name,
        label=memory.label,
        kind="memory",
        description=memory.description,
        parameters=parameters,
        call=call,
        right=Right(frame.path, frame.edges, memory=memory.id),
        timeout_seconds=SEARCH_SECONDS,
    )


def _bind_delegate(frame: Frame, edge: DelegationSpec, hand_over: HandOver) -> BoundTool:
    delegate = frame.world.agents[edge.delegate_id]

    async def start_child(edge: DelegationSpec, task: str, call_id: UUID) -> ToolResult:
        return await hand_over(frame, edge, task, call_id)

    parameters, call = build_delegate(edge, delegate, start_child)
    return BoundTool(
        name=edge.name,
        label=delegate.label,
        kind="delegate",
        view=delegate.view,
        description=prompt.delegate_description(edge, delegate),
        parameters=parameters,
        call=call,
        right=Right((*frame.path, edge.delegate_id), (*frame.edges, edge.id)),
        max_calls=edge.max_calls,
    )
