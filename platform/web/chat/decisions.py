"""What the page shows of calls that a person must decide about: each with its question, and that the answer waits."""

from uuid import UUID

from django.template.loader import render_to_string

from runtime.events import ApprovalDecided, ToolCalled
from web.bidi import contained
from web.chat.patches import Patch


class Decisions:
    """Of one run. `decides`: the reader may; others read that somebody has to."""

    def __init__(self, run: UUID, *, decides: bool) -> None:
        self._run = run
        self._decides = decides
        self._placed: set[UUID] = set()
        self._waiting: dict[UUID, ToolCalled] = {}

    def asked(self, call: ToolCalled, arguments: str) -> list[Patch]:
        """`arguments` is HTML. A call is asked about once more when its process dies while it is done again."""
        self._waiting[call.call] = call
        state = "waits for you" if self._decides else "waits for a person"
        return [
            Patch(f"cs-{call.call}", _render("state", css="waits", said=state)),
            self._question(call, arguments),
        ]

    def _question(self, call: ToolCalled, arguments: str) -> Patch:
        context = {"run": self._run, "call": call, "asked": arguments, "decides": self._decides}
        if call.call in self._placed:
            return Patch(f"d-{call.call}", _render("question", **context))
        self._placed.add(call.call)
        return Patch(f"f-{call.of.run}", _render("decision", **context), append=True)

    def decided(self, event: ApprovalDecided) -> list[Patch]:
        css, said = ("running", "working") if event.approved else ("done", "it happened")
        return [Patch(f"cs-{event.call}", _render("state", css=css, said=said)), *self.over(event.call)]

    def over(self, call: UUID) -> list[Patch]:
        """Somebody decided about a call, or it was stopped."""
        if self._waiting.pop(call, None) is None:
            return []
        return [Patch(f"d-{call}", ""), self.paused() if self._waiting else self.resumed()]

    def paused(self) -> Patch:
        """Of a hidden delegate's call nothing is shown but that it waits."""
        calls = list(self._waiting.values()) if self._decides else []
        return Patch(f"o-{self._run}", _render("waiting", calls=calls))

    def resumed(self) -> Patch:
        return Patch(f"o-{self._run}", _render("working"))

    def __contains__(self, call: UUID) -> bool:
        return call in self._waiting


def _render(template: str, **context: object) -> str:
    return contained(render_to_string(f"chat/events/{template}.html", context))
