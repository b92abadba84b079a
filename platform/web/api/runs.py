"""Agents that can be started, and runs: start, watch, stop."""

import hashlib
import json
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpResponseBase
from ninja import Header, Query, Router
from ninja.responses import Status
from pydantic.json_schema import SkipJsonSchema

from runtime import execute
from runtime.events import TERMINAL
from runtime.execute import Request
from runtime.resolve import agents_for
from runtime.retold import load_log
from web.api import rows
from web.api.agui import AguiRenderer
from web.api.cursor import NEWEST_CREATED, page
from web.api.schema import After, AgentOut, Agents, Events, NewRun, Page, Refusal, RepeatKey, RunFilter, RunOut
from web.api.wire import ApiRequest, only_known_filters
from web.sse import RunHead, stream_of_own, stream_response

router = Router(tags=["Runs"])
STREAM = {"content": {"text/event-stream": {"schema": {"type": "string", "description": "AG-UI 1.0 events"}}}}


@router.get("/agents", response={200: Agents, 401: Refusal, 422: Refusal}, operation_id="list_agents", tags=["Agents"])
@only_known_filters
async def list_agents(request: ApiRequest) -> Agents:
    """The agents that this key may start."""
    return Agents(items=[AgentOut.of(card) for card in await agents_for(request.auth)])


@router.post(
    "/runs",
    response={200: RunOut, 202: RunOut, frozenset({401, 404, 409, 413, 415, 422, 429, 503}): Refusal},
    operation_id="start_run",
    openapi_extra={"responses": {200: STREAM}},
)
@only_known_filters
async def start_run(
    request: ApiRequest,
    payload: NewRun,
    idempotency_key: Annotated[
        RepeatKey | SkipJsonSchema[None],
        Header(None, alias="Idempotency-Key", description="The same key, the same run."),
    ] = None,
) -> Status[RunOut] | HttpResponseBase:
    """202 with the run; 200 with the finished run when it ends within `wait`; its events when you accept
    `text/event-stream`. The same Idempotency-Key and body give the same run again."""
    started = await execute.start(
        request.auth,
        Request(
            payload.agent,
            payload.input,
            payload.thread,
            payload.metadata,
            idempotency_key=idempotency_key,
            idempotency_hash=_hash(payload),
        ),
    )
    if _wants_stream(request):
        if started.created:
            return stream_of_own(request.auth, RunHead(started.run, started.thread), "agui")
        return await stream_response(request.auth, run=started.run, renderer="agui")
    if payload.wait:
        await execute.wait(started.run, payload.wait)
    run = RunOut.of(await rows.run_of(request.auth, started.run))
    return Status(200 if run.status in TERMINAL else 202, run)


@router.get("/runs", response={200: Page[RunOut], 401: Refusal, 422: Refusal}, operation_id="list_runs")
@only_known_filters
async def list_runs(request: ApiRequest, query: Query[RunFilter]) -> dict[str, Any]:
    """Your runs, the newest first."""
    wanted = {"agent_slug": query.agent, "status": query.status, "thread_id": query.thread}
    found = rows.runs(request.auth).filter(**{name: value for name, value in wanted.items() if value is not None})
    items, following = await page(found, NEWEST_CREATED, query.cursor)
    return {"items": [RunOut.of(run) for run in items], "next": following}


@router.get("/runs/{uuid:run_id}", response={200: RunOut, frozenset({401, 404, 422}): Refusal}, operation_id="get_run")
@only_known_filters
async def get_run(request: ApiRequest, run_id: UUID) -> RunOut:
    return RunOut.of(await rows.run_of(request.auth, run_id))


@router.post(
    "/runs/{uuid:run_id}/cancel",
    response={202: RunOut, frozenset({401, 404, 422}): Refusal},
    operation_id="cancel_run",
)
@only_known_filters
async def cancel_run(request: ApiRequest, run_id: UUID) -> Status[RunOut]:
    """Ask the run to stop; what was written is kept. A run that is over stays as it is."""
    await execute.cancel(request.auth, run_id)
    return Status(202, RunOut.of(await rows.run_of(request.auth, run_id)))


@router.get(
    "/runs/{uuid:run_id}/events",
    response={200: Events, frozenset({401, 404, 422}): Refusal},
    operation_id="list_events",
    openapi_extra={"responses": {200: STREAM}},
)
@only_known_filters
async def list_events(request: ApiRequest, run_id: UUID, query: Query[After]) -> Events | HttpResponseBase:
    """What happened after event `after`, as AG-UI events; with `Accept: text/event-stream` as a stream until the run
    ends (reconnect with Last-Event-ID)."""
    run = await rows.run_of(request.auth, run_id)
    if _wants_stream(request):
        return await stream_response(request.auth, run=run.pk, renderer="agui", after=query.after)
    log = await load_log(run.pk)
    renderer = AguiRenderer(RunHead(run.pk, run.thread_id, query.after))
    frames = [(logged.n, renderer.frames(logged)) for logged in log]
    shown = [json.loads(frame) | {"id": n} for n, frame in frames if frame is not None and n > query.after]
    return Events(events=shown, next=max(query.after, log[-1].n if log else 0))


def _wants_stream(request: ApiRequest) -> bool:
    """Only when it is named: `*/*` means JSON."""
    return "text/event-stream" in request.headers.get("Accept", "").lower()


def _hash(payload: NewRun) -> str:
    """Of the body as it was understood: spaces and the order of names don't count, everything else does."""
    body = payload.model_dump(mode="json")
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
