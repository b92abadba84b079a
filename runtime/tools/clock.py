"""The date and time, in one line that a model can't misread."""

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from uuid import UUID

from agents_admin.kinds import ClockSettings, SettingsError, time_zone
from runtime.ports import Call, Ports, ToolResult
from runtime.spec import ToolSpec


def build(tool: ToolSpec, ports: Ports) -> tuple[Mapping[str, object], Call]:
    """One optional parameter, `timezone`; without it the tool answers in the zone of its settings."""
    if not isinstance(tool.settings, ClockSettings):
        raise TypeError(f"Tool {tool.name} has no settings of a clock.")
    default = tool.settings.timezone

    async def call(arguments: Mapping[str, object], call_id: UUID) -> ToolResult:
        name = str(arguments.get("timezone") or default)
        try:
            zone = time_zone(name)
        except SettingsError as error:
            return ToolResult(error.message, False, "invalid")
        return ToolResult(told(datetime.now(UTC), name, zone))

    return _schema(default), call


def told(now: datetime, name: str, zone: tzinfo) -> str:
    """`Wednesday, 2026-03-04 15:05:09, Europe/Berlin (UTC+01:00)`; English whatever the machine's locale."""
    local = now.astimezone(zone)
    return f"{_WEEKDAYS[local.weekday()]}, {local:%Y-%m-%d %H:%M:%S}, {name} (UTC{local:%:z})"


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _schema(default: str) -> Mapping[str, object]:
    return {
        "type": "object",
        "properties": {
            "timezone": {
                "type": "string",
                "description": f"A time zone such as Europe/Berlin or UTC. Without it: {default}.",
            }
        },
        "additionalProperties": False,
    }
