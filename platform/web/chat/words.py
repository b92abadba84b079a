"""What the chat page says about states, reasons and durations."""

from runtime.events import RunFinished

REFUSED = {
    "unknown": "there is no such tool",
    "invalid": "the arguments don't fit",
    "cycle": "that agent is already on this path",
    "depth": "delegation goes no deeper",
    "forbidden": "not allowed",
    "budget": "the limit of calls is reached",
    "refused": "needs an approval",
    "timeout": "took too long",
    "failed": "failed",
    "unsure": "failed, and may have happened all the same",
    "cancelled": "stopped",
}

_LIMITS = {
    "max_steps": "Stopped at the limit of steps: the answer may be incomplete.",
    "max_seconds": "Stopped at the time limit: the answer may be incomplete.",
    "max_tokens": "Stopped at the limit of tokens: the answer may be incomplete.",
    "daily_budget": "Stopped at today's budget: the answer may be incomplete.",
}


def duration(seconds: float) -> str:
    if seconds < 0.05:
        return ""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def outcome(finished: RunFinished) -> str:
    """One sentence about how a run ended; empty when it simply completed."""
    match finished.status:
        case "limited":
            return _LIMITS.get(finished.reason, "Stopped at a limit: the answer may be incomplete.")
        case "cancelled":
            return "Stopped. What was written so far is kept."
        case "failed" if finished.reason == "forbidden":
            return "You may not use this agent any more, so its answer ends here."
        case "failed":
            return finished.error or "This could not be answered: something went wrong on our side."
        case _:
            return ""
