"""The rows that a key may see: always its user's own."""

from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from agents_admin.actor import Actor
from runtime.errors import RunError
from runtime.models import Message, Run, Thread


def runs(actor: Actor) -> QuerySet[Run]:
    """Runs that somebody started (a delegate's is a part of one), with the tokens of their trees."""
    return (
        Run.objects.for_actor(actor)
        .filter(depth=0)
        .annotate(tree_input=_of_tree("input_tokens"), tree_output=_of_tree("output_tokens"))
    )


def _of_tree(tokens: str) -> Coalesce:
    tree = Run.objects.filter(root_id=OuterRef("pk")).order_by().values("root_id")
    return Coalesce(Subquery(tree.annotate(total=Sum(tokens)).values("total")), 0)


def threads(actor: Actor) -> QuerySet[Thread]:
    return Thread.objects.for_actor(actor)


async def run_of(actor: Actor, run_id: UUID) -> Run:
    run = await runs(actor).filter(pk=run_id).afirst()
    if run is None:
        raise RunError("not_found", "There is no such run.")
    return run


async def thread_of(actor: Actor, thread_id: UUID) -> Thread:
    thread = await threads(actor).filter(pk=thread_id).afirst()
    if thread is None:
        raise RunError("not_found", "There is no such thread.")
    return thread


def messages(thread: Thread) -> QuerySet[Message]:
    return Message.objects.filter(thread=thread)
