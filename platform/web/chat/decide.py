"""A person says whether a call that acts happened before the server stopped, or has it done again."""

from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST

from runtime.errors import RunError
from runtime.execute import owned_thread
from runtime.review import DECISIONS, UNSAID, review
from web.access import session_actor
from web.chat.refusals import in_place
from web.errors import STATUS
from web.http import UserRequest


@require_POST
async def decide(request: UserRequest, run: UUID, call: UUID) -> HttpResponse:
    """The stream of the run says what comes of it; here is said only what is wrong."""
    actor = await session_actor(request)
    decision = DECISIONS.get(request.POST.get("decision", ""))
    try:
        thread = await owned_thread(actor, run)
        if decision is None:
            raise RunError("invalid", UNSAID, "decision")
        await review(actor, run, call, decision)
    except RunError as error:
        if error.code == "not_found":
            raise Http404 from error
        if request.htmx:
            problem = render_to_string("chat/problem.html", {"problem": error.message})
            return in_place(problem, STATUS[error.code], "#composer-problem")
    return HttpResponse(status=204) if request.htmx else redirect("chat-thread", thread)
