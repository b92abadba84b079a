"""Tools an agent may call: one file per kind. A kind is a file that you can delete and a line in BUILDERS."""

from collections.abc import Callable, Mapping

from runtime.ports import Call, Ports
from runtime.spec import ToolSpec
from runtime.tools import calculator, clock, http

type Builder = Callable[[ToolSpec, Ports], tuple[Mapping[str, object], Call]]
"""The JSON Schema of a tool's parameters, and what a call does."""

BUILDERS: dict[str, Builder] = {
    "calculator": calculator.build,
    "clock": clock.build,
    "http": http.build,
}
