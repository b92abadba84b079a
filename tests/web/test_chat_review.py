"""A call that may have happened waits for its person: what the chat shows, who may decide, what comes of it."""

import re
import uuid

import pytest
from django.contrib.auth.models import Permission
from django.db import connection

from runtime.models import Event, Run, ToolCall
from tests import waiting, world
from tests.scripted import ScriptedModel
from tests.web.chat_client import HTMX, Chat, stream_of, until_stored
from tests.web.widget_client import Visitor
from web.chat import history
from web.chat.places import PLACES
from web.widget.token import read as _read

pytestmark = pytest.mark.django_db(transaction=True)


def address(run: Run, call: object = None) -> str:
    return f"/chat/runs/{run.pk}/review/{call or ToolCall.objects.latest('n').pk}/"


def test_a_step_that_may_have_happened_asks_under_its_card(site: str, model: ScriptedModel) -> None:
    run = waiting.waiting(waiting.clerk(model))
    with Chat(site, world.linus()) as chat:
        page = chat.page(f"/chat/{run.thread_id}/")
    (question,) = page.all(css_class="question")
    assert "Did “Order paper” happen? Clerk was doing it when the server stopped" in question.text
    assert "0 + 500" in question.text
    assert [button.text for button in question.all("button")] == ["It happened", "Do it again"]
    assert {button.attrs["hx-post"] for button in question.all("button")} == {address(run)}
    (card,) = page.all("details", "card")
    assert "waits for you" in card.text
    (link,) = [one for one in page.all("a") if one.attrs["href"].startswith("#d-")]
    assert link.text == "Order paper"
    assert [one.attrs["hx-post"] for one in page.all("button", "stop")] == [f"/chat/runs/{run.pk}/stop/"]


@pytest.mark.parametrize("decision", ["happened", "again"])
def test_a_decision_lets_the_run_go_on(site: str, model: ScriptedModel, decision: str) -> None:
    run = waiting.waiting(waiting.clerk(model))
    with Chat(site, world.linus()) as chat:
        before = chat.http.get(f"/chat/{run.thread_id}/").text
        assert chat.post(address(run), decision=decision).status_code == 204
        went_on = chat.http.get(stream_of(before)).text
        assert went_on.endswith("event: end\ndata: end\n\n")
        page = chat.page(f"/chat/{run.thread_id}/")
        assert "Ordered." in page.text
        assert page.all(css_class="question") == []
        late = chat.post(address(run), decision="again")
        assert (late.status_code, "waits for no decision any more" in late.text) == (409, True)
        assert late.headers["HX-Retarget"] == "#composer-problem"
    result = ToolCall.objects.get().content
    assert result == ("A person confirmed that this was done." if decision == "happened" else "0 + 500 = 500")
    assert len(model.requests) == 1


def test_an_open_page_is_told_and_waits_for_what_follows(site: str, model: ScriptedModel) -> None:
    run = waiting.broken_off(waiting.clerk(model))
    with Chat(site, world.linus()) as chat:
        live = stream_of(chat.http.get(f"/chat/{run.thread_id}/").text)
        waiting.lose(run)
        told = chat.http.get(live).text
        assert "Did “Order paper” happen?" in told
        assert "This answer waits until you have decided" in told
        assert "event: end" not in told  # the browser connects again
        last = re.findall(r"^id: (\d+)$", told, re.MULTILINE)[-1]
        with chat.http.stream("GET", live, headers={"Last-Event-ID": last}) as rest:
            assert chat.post(address(run), decision="happened").status_code == 204
            text = "".join(rest.iter_text())
        assert "it happened" in text
        assert "The server was restarted in the middle" in text
        assert "Did “Order paper” happen?" not in text
        assert text.endswith("event: end\ndata: end\n\n")


def test_each_of_two_calls_is_decided(site: str, model: ScriptedModel) -> None:
    run = waiting.waiting(waiting.clerk(model), calls=2)
    first, second = ToolCall.objects.order_by("n").values_list("pk", flat=True)
    with Chat(site, world.linus()) as chat:
        assert chat.post(address(run, second), decision="happened").status_code == 204
        page = chat.page(f"/chat/{run.thread_id}/")
        assert [one.attrs["href"] for one in page.all("a") if one.text == "Order paper"] == [f"#d-{first}"]
        assert chat.post(address(run, first), decision="again").status_code == 204
        until_stored()
        assert "Ordered." in chat.page(f"/chat/{run.thread_id}/").text


def test_nobody_else_decides(site: str, model: ScriptedModel) -> None:
    run = waiting.waiting(waiting.clerk(model))
    for person in (world.maya(), world.ada()):
        with Chat(site, person) as chat:
            assert chat.post(address(run), decision="again").status_code == 404
            assert chat.http.get(f"/chat/{run.thread_id}/").status_code == 404
    with Chat(site, world.linus()) as chat:
        assert chat.http.get(address(run)).status_code == 405
        assert chat.post(address(run), decision="again", token="x" * 64).status_code == 403
        assert chat.post(address(run), decision="").status_code == 422
        assert chat.post(address(run, uuid.uuid4()), decision="again").status_code == 409
    with Chat(site, None) as chat:
        assert chat.http.post(address(run), headers=HTMX).status_code in {401, 403}
    run.refresh_from_db()
    assert (run.status, model.requests) == ("needs_review", [])


def test_without_scripts_the_buttons_lead_back_to_the_conversation(site: str, model: ScriptedModel) -> None:
    run = waiting.waiting(waiting.clerk(model))
    with Chat(site, world.linus()) as chat:
        for _ in ("first", "too late"):
            decided = chat.post(address(run), htmx=False, decision="happened")
            assert (decided.status_code, decided.headers["location"]) == (302, f"/chat/{run.thread_id}/")
        until_stored()


def test_a_conversation_that_waits_says_so_to_who_goes_on(site: str, model: ScriptedModel) -> None:
    run = waiting.waiting(waiting.clerk(model))
    with Chat(site, world.linus()) as chat:
        more = chat.send("And now?", "clerk", thread=str(run.thread_id))
        assert (more.status_code, "waits for a person to decide" in more.text) == (409, True)
        assert f'href="#o-{run.pk}"' in more.text
        assert chat.post(f"/chat/{run.thread_id}/delete/").status_code == 409
        assert chat.post(f"/chat/runs/{run.pk}/stop/").status_code == 204
        until_stored()
        page = chat.page(f"/chat/{run.thread_id}/")
    assert "Nobody decided whether this happened." in page.text
    assert page.all(css_class="question") == []
    assert Run.objects.get().status == "cancelled"


def test_visitors_of_a_widget_read_that_somebody_has_to_look(site: str, model: ScriptedModel) -> None:
    agent = waiting.clerk(model)
    widget = world.widget(agent)
    visitor = Visitor(site, widget.pk).arrive()
    run = waiting.broken_off(agent, user=None, widget=widget, visitor=_name(visitor.token), channel="widget")
    waiting.lose(run)
    for path in (f"runs/{run.pk}/stream/", "conversation/"):
        words = visitor.frame("GET", path).text
        assert "A person has to look at this" in words
        assert "waits for a person" in words
        assert "It happened" not in words


def _name(token: str) -> str:
    said = _read(token)
    assert said is not None
    return said.visitor


def test_another_tab_gets_the_turns_that_it_lacks(site: str, model: ScriptedModel) -> None:
    waiting.clerk(model)
    model.says("One.").says("Two.")
    with Chat(site, world.linus()) as chat:
        thread = chat.say("first", "clerk")
        seen = str(Run.objects.get().pk)
        there = f"/chat/{thread}/"
        assert chat.http.get(there, params={"after": seen}, headers=HTMX).status_code == 204
        chat.say("second", "clerk", thread=thread)
        newer = chat.http.get(there, params={"after": seen}, headers=HTMX).text
        assert "second" in newer
        assert "first" not in newer
        assert 'class="button send"' in newer
        assert chat.http.get(there, params={"after": str(uuid.uuid4())}, headers=HTMX).status_code == 204
    with Chat(site, world.maya()) as chat:
        assert chat.http.get(there, params={"after": seen}, headers=HTMX).status_code == 204


def test_a_delegate_that_starts_while_the_page_is_read_is_no_error(model: ScriptedModel) -> None:
    run = waiting.broken_off(waiting.clerk(model))

    def meanwhile(execute, sql, params, many, context):
        if "runtime_event" in sql and not Run.objects.filter(depth=1).exists():
            child = uuid.uuid4()
            Run.objects.create(id=child, root=run, parent=run, depth=1, thread=run.thread, user=run.user)
            last = Event.objects.latest("n")
            Event.objects.create(root=run, n=last.n + 1, run_id=child, kind="RunStarted", data={}, at=last.at)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(meanwhile):
        assert history.conversation(world.actor_of(world.linus()), run.thread_id, PLACES) is not None


def test_staff_who_may_change_runs_decide_in_the_admin(site: str, model: ScriptedModel) -> None:
    run = waiting.waiting(waiting.clerk(model))
    grace, page = world.grace(), f"/admin/runtime/run/{run.pk}/change/"
    there = f"/admin/runtime/run/{run.pk}/review/{ToolCall.objects.get().pk}/"
    may = Permission.objects.filter(content_type__app_label="runtime", content_type__model="run")
    with Chat(site, grace) as admin:
        assert admin.post(there, htmx=False, decision="happened").status_code == 403
        grace.user_permissions.set(may.filter(codename="view_run"))
        seen = admin.http.get(page).text
        assert "somebody who may change runs" in seen
        assert "Do it again" not in seen
        grace.user_permissions.set(may.filter(codename__in=["view_run", "change_run"]))
        assert there in admin.http.get(page).text
        assert admin.http.get(there).status_code == 405
        assert admin.post(there, htmx=False, decision="again", token="x" * 64).status_code == 403
        assert admin.post(there, htmx=False, decision="").headers["location"] == page
        assert "Say whether it happened" in admin.http.get(page).text
        assert (
            admin.post(there.replace(str(run.pk), str(uuid.uuid4())), htmx=False, decision="again").status_code == 404
        )
        assert admin.post(there, htmx=False, decision="again").headers["location"] == page
        until_stored()
        assert "goes on as soon as" in admin.http.get(page).text
        admin.post(there, htmx=False, decision="happened")
        assert "waits for no decision any more" in admin.http.get(page).text
    with Chat(site, world.linus()) as chat:
        assert chat.post(there, htmx=False, decision="again").headers["location"].startswith("/admin/login/")
    assert ToolCall.objects.get().content == "0 + 500 = 500"
    assert Run.objects.get().status == "completed"


def test_the_runs_page_says_who_decided_what(site: str, model: ScriptedModel) -> None:
    run = waiting.waiting(waiting.clerk(model), calls=2)
    first, second = ToolCall.objects.order_by("n").values_list("pk", flat=True)
    with Chat(site, world.linus()) as chat:
        assert chat.post(address(run, second), decision="happened").status_code == 204
    with Chat(site, world.ada()) as admin:
        admin.post(f"/admin/runtime/run/{run.pk}/review/{first}/", htmx=False, decision="again")
        until_stored()
        page = admin.http.get(f"/admin/runtime/run/{run.pk}/change/").text
    told = re.findall(r'<p class="roster-soft">(\w+ decided: [^<,]+), \d{4}-', page)
    assert told == ["ada decided: do it again", "linus decided: it happened"]
    key = {"Authorization": f"Bearer {world.api_key(world.linus())}"}
    with Chat(site, world.linus()) as chat:
        for seen in (chat.http.get(f"/chat/{run.thread_id}/"), chat.http.get(f"/chat/runs/{run.pk}/stream/")):
            assert "ada" not in re.findall(r"\w+", seen.text)
        public = chat.http.get(f"/api/v1/runs/{run.pk}/events", headers=key)
        assert (public.status_code, "ada" in re.findall(r"\w+", public.text)) == (200, False)
