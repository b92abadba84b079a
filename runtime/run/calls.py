"""One tool call, from the checks to the result. Every failure is soft: the model reads a sentence, the run goes on."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from jsonschema import Draft202012Validator

from runtime import crash
from runtime.ports import BoundTool, RequestedCall, RunLost, ToolResult
from runtime.run.frame import Frame

logger = logging.getLogger(__name__)

type Check = Callable[[Frame, BoundTool, RequestedCall], ToolResult | None]


GONE = ToolResult("This may not be used any more.", False, "forbidden")


async def perform(frame: Frame, call: RequestedCall) -> str:
    """Check, do and record a call that its frame announced; gives what the model reads. Raises only CancelledError."""
    tool = frame.tools.get(call.name)
    if tool is None:  # it was there when it was asked for, before this process took the run over
        frame.returned(call.id, GONE)
        return GONE.content
    task = cast(asyncio.Task[object], asyncio.current_task())
    frame.working.add(task)
    try:
        result = refused(frame, tool, call) or await _allowed(frame, tool) or await _do(frame, tool, call)
    except asyncio.CancelledError:
        if call.id in frame.calls:
            frame.returned(call.id, ToolResult("The call was stopped.", False, "cancelled"))
        raise
    finally:
        frame.working.discard(task)
    result = _capped(result, tool.max_output_chars)
    frame.returned(call.id, result)
    return result.content


def refused(frame: Frame, tool: BoundTool, call: RequestedCall) -> ToolResult | None:
    """The first reason not to make a call, as the stub result that answers it."""
    return next((stub for check in _CHECKS if (stub := check(frame, tool, call))), None)


def _readable(frame: Frame, tool: BoundTool, call: RequestedCall) -> ToolResult | None:
    if call.unreadable is None:
        return None
    return ToolResult("The arguments are not a JSON object. Call again with valid JSON.", False, "invalid")


def _fitting(frame: Frame, tool: BoundTool, call: RequestedCall) -> ToolResult | None:
    errors = Draft202012Validator(tool.parameters).iter_errors(call.arguments)
    error = next(iter(errors), None)
    if error is None:
        return None
    where = ".".join(str(part) for part in error.absolute_path) or "arguments"
    return ToolResult(f"The call does not fit: {where}: {error.message[:300]}", False, "invalid")


def _approved(frame: Frame, tool: BoundTool, call: RequestedCall) -> ToolResult | None:
    match tool.approval:
        case "refuse":
            return ToolResult("This tool may not be used here.", False, "refused")
        case "ask":
            return ToolResult(
                "A person would have to approve this call, and nobody was asked. It was not made.", False, "refused"
            )
    return None


def _affordable(frame: Frame, tool: BoundTool, call: RequestedCall) -> ToolResult | None:
    used = frame.per_tool[tool.name]
    if tool.max_calls is not None and used >= tool.max_calls:
        return ToolResult(
            f"The limit of {tool.max_calls} calls of {tool.name} is used up. Answer with what you have.",
            False,
            "budget",
        )
    if not frame.budget.take_tool_call():
        return ToolResult("The limit of tool calls is used up. Answer with what you have.", False, "budget")
    frame.per_tool[tool.name] += 1
    return None


_CHECKS: tuple[Check, ...] = (_readable, _fitting, _approved, _affordable)


async def _allowed(frame: Frame, tool: BoundTool) -> ToolResult | None:
    """Rights are asked again when the call is made: rows may have changed since the run was resolved."""
    if await frame.ports.may_call(tool.right):
        return None
    return GONE


async def _do(frame: Frame, tool: BoundTool, call: RequestedCall) -> ToolResult:
    frame.ready(call.id)
    if tool.side_effect != "acts":
        result = await _call(tool, call)
        return replace(result, reason="failed") if result.reason == "unsure" else result
    log = frame.ports.log
    log.acting(1)
    try:
        await log.commit()
        crash.point("acts-committed")
        result = await _call(tool, call)
        crash.point("acts-done")
        return result
    finally:
        log.acting(-1)


async def _call(tool: BoundTool, call: RequestedCall) -> ToolResult:
    try:
        async with asyncio.timeout(tool.timeout_seconds):
            return await tool.call(call.arguments, call.id)
    except TimeoutError:
        return ToolResult(f"{tool.label} took longer than {tool.timeout_seconds:g} seconds.", False, "timeout")
    except RunLost:
        raise
    except Exception:  # a tool's fault never ends a run, and its words never leak
        logger.exception("Tool %s failed", tool.name)
        return ToolResult(f"{tool.label} failed.", False, "unsure")


def _capped(result: ToolResult, most: int) -> ToolResult:
    """Head and tail of a result that is too long for a model, with a note of what is missing."""
    if len(result.content) <= most:
        return result
    head, tail = result.content[: most * 2 // 3], result.content[-(most // 3) :]
    left_out = len(result.content) - len(head) - len(tail)
    content = f"{head}\n[… {left_out:,} characters left out …]\n{tail}"
    return ToolResult(content, result.ok, result.reason, result.sources)
