"""A run of a concierge and a delegate as the chat page shows it, live and after a reload, without a database."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

from runtime import events as e
from runtime.events import Event, Logged, Origin
from runtime.models import Run
from tests.dom import Node, parse
from web.chat.render import ChatRenderer
from web.chat.turns import turn
from web.sse import RunHead

THREAD = uuid4()
CALL, CHILD_CALL, MESSAGE = uuid4(), uuid4(), uuid4()
ROOT = Origin(run=(_root := uuid4()), root=_root, agent="Concierge", slug="concierge")
HR = Origin(run=uuid4(), root=_root, agent="HR desk", slug="hr", parent=_root, parent_call=CALL, depth=1)
ASKED = e.ToolCalled(ROOT, CALL, "ask_hr", "HR desk", "delegate")


class Places:
    send = "/send"
    decides = True

    def stream(self, run: UUID, after: int) -> str:
        return f"/stream/{run}?after={after}"

    def stop(self, run: UUID) -> str:
        return f"/stop/{run}"


def numbered(*happened: Event) -> list[Logged]:
    return [Logged(n, datetime.now(UTC), event) for n, event in enumerate(happened, 1)]


def root_row(of: Origin, status: str = "running") -> Run:
    return Run(
        id=of.run, root_id=of.run, thread_id=THREAD, agent_label=of.agent, input="<b>How many days?</b>", status=status
    )


def stored(log: list[Logged], status: str = "running") -> Node:
    """The turn as a page that is loaded now has it."""
    return parse(turn(root_row(log[0].event.of, status), log, Places()).html)


def live(log: list[Logged], after: int = 0) -> Node:
    """The turn of a page that was loaded after so many events and has streamed the rest."""
    page = parse(turn(root_row(log[0].event.of), log[:after], Places()).html)
    renderer = ChatRenderer(RunHead(log[0].event.of.run, THREAD), decides=True)
    for logged in log:
        frame = renderer.frames(logged)
        if frame and logged.n > after:
            page.apply(streamed(frame))
    return page


def streamed(frame: str) -> str:
    """A frame after its way through the lines of an event stream, which know no CR."""
    return frame.replace("\r\n", "\n").replace("\r", "\n")


def shown(*happened: Event) -> str:
    """The words on the live page."""
    return " ".join(live(numbered(e.RunStarted(ROOT), *happened)).text.split())
