"""What the chaos tests measured, told at the end of the session."""

import pytest
from xdist.workermanage import WorkerController

FIGURES: list[tuple[str, str]] = []


def figure(target: str, words: str) -> None:
    FIGURES.append((target, words))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """One of several processes hands its figures to the one that tells them."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["figures"] = FIGURES


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    FIGURES.extend((target, words) for target, words in getattr(node, "workeroutput", {}).get("figures", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if FIGURES:
        terminalreporter.section("figures")
    for target, words in sorted(FIGURES):
        terminalreporter.write_line(f"{target:4} {words}")
