"""Copies of agents."""

from itertools import count

from django.db import models, transaction

from agents_admin.models import Agent


@transaction.atomic
def duplicate(agent: Agent) -> Agent:
    """A new agent with the same tools, memories, roster and audience; switched off, so nobody meets it unfinished.

    Raises Agent.DoesNotExist when it was deleted meanwhile, and ValidationError when its roster goes too deep as it is.
    """
    copy = Agent.objects.select_for_update(no_key=True).get(pk=agent.pk)  # two copies at once get two slugs
    copy.pk = None
    copy._state.adding = True
    copy.name = f"{agent.name[:90]} (copy)"
    copy.slug = _free_slug(agent.slug)
    copy.enabled = False
    copy.save()
    copy.groups.set(agent.groups.all())
    copy.users.set(agent.users.all())
    _copy_rows(agent.agent_tools.all(), "agent", copy)
    _copy_rows(agent.agent_memories.all(), "agent", copy)
    _copy_rows(agent.roster.all(), "coordinator", copy)
    return copy


def _copy_rows(rows: models.QuerySet[models.Model], owner: str, copy: Agent) -> None:
    for row in rows:
        row.pk = None
        row._state.adding = True
        setattr(row, owner, copy)
        row.save()


def _free_slug(slug: str) -> str:
    taken = set(Agent.objects.values_list("slug", flat=True))
    candidates = (f"{slug[:40]}-copy{'' if number == 1 else f'-{number}'}" for number in count(1))
    return next(candidate for candidate in candidates if candidate not in taken)
