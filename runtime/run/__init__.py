"""Run one resolved agent to its end: the loop, its limits, its delegates. Plain Python; the rest comes as ports."""

from runtime.run.frame import Outcome
from runtime.run.root import run

__all__ = ["Outcome", "run"]
