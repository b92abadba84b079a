"""Run one resolved agent to its end: the loop, its limits, its delegates. Plain Python; the rest comes as ports."""

from runtime.run.root import Outcome, run

__all__ = ["Outcome", "run"]
