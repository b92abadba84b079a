"""What a coordinator reads of a delegate's work: its answer, the sources consulted, and what it had when it broke off.

The order and the caps are the contract's ("What a delegate hands back").
"""

from collections.abc import Sequence

from runtime.events import FailReason
from runtime.ports import CONSULTED, Turn
from runtime.run.frame import Frame, Outcome

DIGEST_CHARS = 6_000
"""Shared between the results of a digest."""
WRITE_UP = "You were cut short. Write up now what you have found so far for the one who asked, without any tools."
WRITTEN_UP = "It was cut short. What it wrote up:"
DIGEST = "It was cut short before it could answer. What its tools had found:"

FAILURES: dict[FailReason, str] = {
    "timeout": "did not answer in time.",
    "budget": "stopped at a limit before it had an answer.",
    "forbidden": "may not be asked any more.",
    "failed": "could not answer.",
    "cancelled": "was stopped.",
}
_REASONS: dict[str, FailReason] = {"max_seconds": "timeout", "max_steps": "budget", "max_tokens": "budget"}


def failure_of(outcome: Outcome) -> FailReason | None:
    """Why a delegate failed; None when it has an answer of its own, also one that its last step was kept for."""
    match outcome.status:
        case "completed":
            return None
        case "limited" if outcome.reason == "max_steps" and outcome.answer:
            return None
        case "limited":
            return _REASONS[outcome.reason]
        case _:
            return "forbidden" if outcome.reason == "forbidden" else "failed"


def handed_back(answer: str, child: Frame) -> str:
    """The answer, then the sources consulted: one line a call, never a body."""
    if not child.consulted:
        return answer
    return "\n".join([answer, "", CONSULTED, *(f"- {line}" for line in child.consulted)])


def cut_short(sentence: str, written_up: str, child: Frame) -> str:
    """The sentence about the failure, then what the delegate wrote up about it, or else a digest of its results."""
    parts = [sentence]
    if written_up:
        parts.append(f"{WRITTEN_UP}\n{written_up}")
    elif found := digest(child.done):
        parts.append(f"{DIGEST}\n{found}")
    return handed_back("\n\n".join(parts), child)


def digest(done: Sequence[Turn]) -> str:
    """What calls that worked had given, each with an equal share of the cap."""
    results = [turn.text for turn in done if turn.role == "tool" and turn.ok and turn.text.strip()]
    if not results:
        return ""
    share = DIGEST_CHARS // len(results)
    return "\n\n".join(text if len(text) <= share else f"{text[: share - 1]}…" for text in results)
