"""The admin's first page: what to do first, how much there is, what went wrong lately."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Model as Row
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from agents_admin.models import Agent, Document, Memory, Model, Provider, Tool
from runtime.events import WAITING
from runtime.models import Run

_COUNTED: tuple[type[Row], ...] = (Agent, Tool, Memory, Document, Run)
_FAILED_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Step:
    title: str
    help: str
    link: str
    done: bool


def first_page(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """What the template shows, as far as this person may view it."""
    return context | {
        "steps": _steps(request) if _may_view(request, Agent) else [],
        "counts": [
            (str(row._meta.verbose_name_plural), _count(row), _link(row)) for row in _COUNTED if _may_view(request, row)
        ],
        "failed_runs": _failed() if _may_view(request, Run) else None,
        "waiting_runs": Run.objects.filter(depth=0, status__in=WAITING).count() if _may_view(request, Run) else 0,
    }


def _steps(request: HttpRequest) -> list[Step]:
    """Those that this person may take."""
    made: list[tuple[type[Row], str, str, QuerySet[Any]]] = [
        (Provider, "Connect a provider", "Where language models are served.", Provider.objects.all()),
        (Model, "Add a model", "One of the models that the provider serves.", Model.objects.all()),
        (
            Agent,
            "Make an agent",
            "A model with instructions, tools and colleagues.",
            Agent.objects.filter(enabled=True, hidden=False),
        ),
    ]
    return [
        *(Step(title, what, _add(row), rows.exists()) for row, title, what, rows in made if _may(request, "add", row)),
        Step("Talk to it", "In the chat, like everybody else.", "/chat/", Run.objects.exists()),
    ]


def _count(row: type[Row]) -> int:
    """A delegate's work is part of the run that asked for it."""
    return Run.objects.filter(depth=0).count() if row is Run else row._default_manager.count()


def _failed() -> list[Run]:
    runs = Run.objects.filter(depth=0, status="failed").select_related("user", "widget")
    return list(runs[:_FAILED_SHOWN])


def _may_view(request: HttpRequest, row: type[Row]) -> bool:
    return _may(request, "view", row)


def _may(request: HttpRequest, do: str, row: type[Row]) -> bool:
    return request.user.has_perm(f"{row._meta.app_label}.{do}_{row._meta.model_name}")


def _link(row: type[Row]) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_changelist")


def _add(row: type[Row]) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_add")
