"""What a model is told: instructions as written, the roster as text, the conversation by policy."""

from collections.abc import Mapping, Sequence

from runtime.ports import TASK_FOLLOWS, Turn
from runtime.spec import AgentSpec, ContextPolicy, DelegationSpec

SUMMARY_CHARS = 2_000
"""How much of a conversation a delegate with the context `summary` is shown: its end, where the question is."""


def opening(agent: AgentSpec, agents: Mapping[int, AgentSpec], turns: Sequence[Turn]) -> list[Turn]:
    """The messages a run starts with. Nothing of them is evaluated: braces reach the model as typed."""
    parts = [agent.instructions, roster_text(agent, agents)]
    system = "\n\n".join(part for part in parts if part)
    return [*([Turn("system", system)] if system else []), *turns]


def roster_text(agent: AgentSpec, agents: Mapping[int, AgentSpec]) -> str:
    """The roster, a line for each delegate that the actor may use; empty when there is none."""
    lines = [_roster_line(edge, agents[edge.delegate_id]) for edge in agent.roster if edge.delegate_id in agents]
    if not lines:
        return ""
    return "\n".join(["Colleagues you can ask, each with a tool of its own; tell them everything they need:", *lines])


def _roster_line(edge: DelegationSpec, delegate: AgentSpec) -> str:
    about = " ".join(part.strip() for part in (delegate.description, edge.when_to_use) if part.strip())
    return f"- {delegate.label} (tool {edge.name}){': ' + about if about else ''}"


def handover(policy: ContextPolicy, task: str, conversation: Sequence[Turn]) -> list[Turn]:
    """What a delegate is shown: a fresh conversation with the task, and of its coordinator's what the policy says.

    The coordinator's instructions never go along, so that no secret of a parent stands in a child's prompt.
    """
    said = [f"{'Person' if turn.role == 'user' else 'Agent'}: {turn.text}" for turn in conversation if _is_talk(turn)]
    if policy == "task" or not said:
        return [Turn("user", task)]
    transcript = "\n\n".join(said)
    if policy == "summary":
        transcript = transcript[-SUMMARY_CHARS:]
    return [Turn("user", f"The conversation so far:\n\n{transcript}\n\n{TASK_FOLLOWS}\n\n{task}")]


def _is_talk(turn: Turn) -> bool:
    return turn.role in {"user", "assistant"} and bool(turn.text.strip())


def delegate_description(edge: DelegationSpec, delegate: AgentSpec) -> str:
    """What a coordinator's model reads about the tool that asks this delegate."""
    about = " ".join(part.strip() for part in (delegate.description, edge.when_to_use) if part.strip())
    return f"Ask {delegate.label}. {about}".strip()
