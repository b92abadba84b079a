"""What goes in and out as JSON. The descriptions are the words of the OpenAPI page."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue
from pydantic.json_schema import SkipJsonSchema

from runtime.events import Status
from runtime.execute import MAX_INPUT_CHARS
from runtime.models import Message, Run, Thread
from runtime.resolve import AgentCard

MAX_METADATA_BYTES = 16_384
MAX_WAIT_SECONDS = 55

Slug = Annotated[str, Field(min_length=1, max_length=50, description="An agent's slug.")]
Title = Annotated[str, Field(max_length=200)]
RepeatKey = Annotated[str, Field(max_length=200, pattern="^[!-~]+$")]
ThreadId = Annotated[UUID, Field(strict=False, description="A thread's id.")]


def _kept(metadata: dict[str, JsonValue]) -> dict[str, JsonValue]:
    kept = {name: _written(value) for name, value in metadata.items()}
    size = len(orjson.dumps(kept))
    if size > MAX_METADATA_BYTES:
        raise ValueError(f"it has {size:,} bytes as JSON; {MAX_METADATA_BYTES:,} are allowed")
    return kept


def _written(value: JsonValue) -> JsonValue:
    """As JSON programs agree about it: RFC 8259 promises nothing of a whole number that a double can't hold."""
    match value:
        case dict():
            return {name: _written(inner) for name, inner in value.items()}
        case list():
            return [_written(inner) for inner in value]
        case int() if not -(2**63) <= value < 2**64:
            return float(value)
    return value


class Given(BaseModel):
    """A body or a filter: unknown names and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewRun(Given):
    agent: Slug
    input: str = Field(max_length=MAX_INPUT_CHARS, pattern=r"\S", description="What the person or program says.")
    thread: ThreadId | None = Field(None, description="The thread to go on with; a new one when left out.")
    wait: float = Field(0, ge=0, le=MAX_WAIT_SECONDS, description="Seconds to wait for the end of the run.")
    metadata: Annotated[dict[str, JsonValue], AfterValidator(_kept)] = Field(
        {},
        description=f"Kept with the run, at most {MAX_METADATA_BYTES:,} bytes. Of whole numbers beyond 64 bits, "
        "about 16 digits are kept.",
    )


class NewThread(Given):
    agent: Slug
    title: Title = ""


class ThreadChange(Given):
    title: Title


class Paged(Given):
    """A filter that is left out is None; the schema offers no null, since no query can say it."""

    cursor: str | SkipJsonSchema[None] = Field(None, max_length=400, description="`next` of the page before.")


class RunFilter(Paged):
    agent: Slug | SkipJsonSchema[None] = None
    status: Status | SkipJsonSchema[None] = None
    thread: ThreadId | SkipJsonSchema[None] = None


class ThreadFilter(Paged):
    agent: Slug | SkipJsonSchema[None] = None


class After(Given):
    after: int = Field(0, ge=0, le=2**31 - 1, strict=False, description="The number of the last event you have.")


class AgentOut(BaseModel):
    slug: str
    name: str
    description: str
    greeting: str
    starters: list[str]

    @classmethod
    def of(cls, card: AgentCard) -> "AgentOut":
        return cls(
            slug=card.slug,
            name=card.name,
            description=card.description,
            greeting=card.greeting,
            starters=list(card.starters),
        )


class Usage(BaseModel):
    """Tokens of the run and all its delegates."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class RunOut(BaseModel):
    id: UUID
    agent: str
    thread: UUID
    status: Status
    reason: str | None = Field(description="Why it is limited or failed, as a code.")
    error: str | None = Field(description="Why it failed, in words for people.")
    output: str = Field(description="What was said last; partial unless the status is `completed` or `limited`.")
    usage: Usage
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def of(cls, run: Run) -> "RunOut":
        """`run` with the sums of its tree (web.api.rows.runs)."""
        spent = {"input_tokens": run.tree_input, "output_tokens": run.tree_output}  # type: ignore[attr-defined]
        return cls(
            id=run.pk,
            agent=run.agent_slug,
            thread=run.thread_id,
            status=run.status,  # type: ignore[arg-type]
            reason=run.reason or None,
            error=run.error or None,
            output=run.output,
            usage=Usage(**spent, total_tokens=sum(spent.values())),
            created_at=run.created_at,
            started_at=run.started_at,
            finished_at=run.finished_at,
        )


class ThreadOut(BaseModel):
    id: UUID
    agent: str
    title: str
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, thread: Thread) -> "ThreadOut":
        return cls(
            id=thread.pk,
            agent=thread.agent_slug,
            title=thread.title,
            created_at=thread.created_at,
            updated_at=thread.updated_at,
        )


class MessageOut(BaseModel):
    id: UUID
    role: Literal["user", "assistant"]
    text: str
    complete: bool = Field(description="False when the text was cut short.")
    run: UUID | None
    created_at: datetime

    @classmethod
    def of(cls, message: Message) -> "MessageOut":
        return cls(
            id=message.pk,
            role=message.role,  # type: ignore[arg-type]
            text=message.text,
            complete=message.complete,
            run=message.run_id,
            created_at=message.created_at,
        )


class Agents(BaseModel):
    items: list[AgentOut]


class Page[Out: BaseModel](BaseModel):
    items: list[Out]
    next: str | None = Field(description="`cursor` for the next page; null on the last one.")


class Events(BaseModel):
    events: list[dict[str, Any]] = Field(description="AG-UI events, each with its number as `id`.")
    next: int = Field(description="`after` for the next call.")


class Problem(BaseModel):
    code: str
    message: str
    field: str | None = None


class Refusal(BaseModel):
    error: Problem
