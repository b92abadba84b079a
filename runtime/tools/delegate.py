"""Asking a colleague: the tool a coordinator's model calls for one line of its roster."""

from collections.abc import Mapping
from uuid import UUID

from agents_admin.text import clean
from runtime.ports import Call, StartChild, ToolResult
from runtime.spec import AgentSpec, DelegationSpec

_MAX_TASK = 20_000


def build_delegate(
    edge: DelegationSpec, delegate: AgentSpec, start_child: StartChild
) -> tuple[Mapping[str, object], Call]:
    """One parameter, `task`: of the conversation the delegate sees only what the delegation's context policy gives."""

    async def call(arguments: Mapping[str, object], call_id: UUID) -> ToolResult:
        task = clean(str(arguments["task"])).strip()
        if not task:
            return ToolResult(f"Say in `task` what {delegate.label} should do.", False, "invalid")
        if len(task) > _MAX_TASK:
            words = f"The task has {len(task):,} characters. Put it in {_MAX_TASK:,} or fewer."
            return ToolResult(words, False, "invalid")
        return await start_child(edge, task, call_id)

    return _schema(delegate.label), call


def _schema(label: str) -> Mapping[str, object]:
    return {
        "type": "object",
        "properties": {
            "task": {
                "type": "string",
                "description": f"What {label} should do or answer, with everything needed to do it.",
            }
        },
        "required": ["task"],
        "additionalProperties": False,
    }
