"""Errors that a person sees: a code for programs, a sentence for people, the field where it belongs."""

from typing import Literal

type Code = Literal[
    "not_found",
    "invalid",
    "run_in_progress",
    "decided",
    "idempotency_conflict",
    "quota",
    "unavailable",
    "unauthenticated",
    "forbidden",
]


class RunError(Exception):
    """A request that can't be done. `message` says what happened and what to do, `field` which input is at fault."""

    def __init__(self, code: Code, message: str, field: str = "") -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
        self.field = field


class ModelError(Exception):
    """A model call that failed for good.

    `message` is for people; `detail` is for administrators and holds neither secrets nor prompts.
    """

    def __init__(self, message: str, detail: str = "", *, partial: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.partial = partial
