"""The pages of runs and threads: the labelled tree, for those who may see it, never to edit."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from runtime.models import Event, Message, Run, Thread, ToolCall
from tests import world
from tests.admin_page import text

pytestmark = pytest.mark.django_db
BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture
def run():
    """Concierge asked HR desk, which called a tool, and said something; one thing was left out."""
    house, now = world.house(), timezone.now()
    thread = Thread.objects.create(user=house.linus, agent=house.concierge, agent_label="Concierge", channel="chat")
    times = {"started_at": now, "finished_at": now + timedelta(seconds=3), "status": "completed"}
    shared = {"thread": thread, "user": house.linus, "channel": "chat", "input_tokens": 10, "output_tokens": 5} | times
    root, child, asked, called = uuid4(), uuid4(), uuid4(), uuid4()
    run = Run.objects.create(
        id=root,
        root_id=root,
        agent=house.concierge,
        agent_label="Concierge",
        input="How many days?",
        omitted=[["Concierge", "the delegate Payroll", "the person who asks may not use it."]],
        **shared,
    )
    Run.objects.create(
        id=child, root=run, parent=run, parent_call=asked, depth=1, agent_label="HR desk", detail="Traceback", **shared
    )
    ToolCall.objects.create(
        id=asked, run=run, label="HR desk", kind="delegate", child_run=child, n=3, state="done", content="28 days"
    )
    ToolCall.objects.create(
        id=called, run_id=child, label="Handbook", kind="memory", n=5, state="done", content="x" * 900, arguments="<b>"
    )
    said = {"text": "You get 28 days.", "complete": True}
    Event.objects.create(root=run, n=9, run_id=root, kind="MessageFinished", data=said, at=now)
    private = {"text": "Payroll was left out.", "audience": "administrators"}
    Event.objects.create(root=run, n=2, run_id=root, kind="Notice", data=private, at=now)
    Message.objects.create(thread=thread, role="user", text="How many days?")
    return run


def test_a_run_shows_its_tree_in_the_order_in_which_it_happened(client, run):
    client.force_login(world.ada(), BACKEND)
    page = text(client.get(reverse("admin:runtime_run_change", args=[run.pk])))
    told = ["the delegate Payroll", "How many days?", "Payroll was left out.", "Asks HR desk", "Calls Handbook"]
    told += ["Traceback", "28 days", "You get 28 days."]
    places = [page.index(part) for part in told]
    assert places == sorted(places)
    assert "30" in page  # tokens of the whole tree
    assert "<b>" not in client.get(reverse("admin:runtime_run_change", args=[run.pk])).content.decode()


def test_the_list_shows_root_runs_with_the_tokens_of_their_tree(client, run):
    client.force_login(world.ada(), BACKEND)
    page = client.get(reverse("admin:runtime_run_changelist"))
    assert [row.pk for row in page.context["cl"].result_list] == [run.pk]
    assert page.context["cl"].result_list[0].tree_tokens == 30
    assert client.get(reverse("admin:runtime_run_changelist"), {"status__exact": "failed", "q": "x"}).status_code == 200


def test_a_thread_shows_what_was_said(client, run):
    client.force_login(world.ada(), BACKEND)
    assert client.get(reverse("admin:runtime_thread_changelist")).status_code == 200
    assert "How many days?" in text(client.get(reverse("admin:runtime_thread_change", args=[run.thread_id])))


def test_staff_need_the_right_to_view_and_can_change_nothing(client, run):
    grace = world.grace()
    client.force_login(grace, BACKEND)
    url = reverse("admin:runtime_run_change", args=[run.pk])
    assert client.get(url).status_code == 403
    assert client.get(reverse("admin:runtime_run_changelist")).status_code == 403
    grace.user_permissions.set(Permission.objects.filter(content_type__app_label="runtime"))
    assert client.get(url).status_code == 200
    client.post(url, {"agent_label": "Changed", "_save": "Save"})
    assert client.get(reverse("admin:runtime_run_add")).status_code == 403
    assert client.post(reverse("admin:runtime_run_delete", args=[run.pk]), {"post": "yes"}).status_code == 403
    run.refresh_from_db()
    assert run.agent_label == "Concierge"


def test_a_superuser_deletes_a_run_with_everything_below(client, run):
    client.force_login(world.ada(), BACKEND)
    url = reverse("admin:runtime_run_delete", args=[run.pk])
    assert "everything that its agents" in text(client.get(url))
    client.post(url, {"post": "yes"})
    assert not Run.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.parametrize("bad", ["x", "7d1a2c54-0000-4000-8000-000000000000", "%00"])
def test_a_run_that_is_not_there_is_not_found(client, bad):
    client.force_login(world.ada(), BACKEND)
    assert client.get(f"/admin/runtime/run/{bad}/change/").status_code == 404


def test_the_first_page_shows_steps_counts_and_failures(client, run):
    Run.objects.filter(pk=run.pk).update(status="failed", error="The model can't be reached.")
    client.force_login(world.ada(), BACKEND)
    page = text(client.get("/admin/"))
    assert "Connect a provider" in page
    assert "The model can't be reached." in page
    client.force_login(world.grace(), BACKEND)
    assert "Ask a superuser" in text(client.get("/admin/"))


def test_the_first_page_leads_nobody_to_what_they_may_not_do(client, run):
    grace = world.grace()
    grace.user_permissions.set(Permission.objects.filter(codename__in=["view_agent", "add_model"]))
    client.force_login(grace, BACKEND)
    steps = client.get("/admin/").context["steps"]
    assert [step.title for step in steps] == ["Add a model", "Talk to it"]


def test_runs_that_wait_for_a_person_are_counted_and_found(client, run):
    Run.objects.filter(pk=run.pk).update(status="needs_review", finished_at=None)
    client.force_login(world.ada(), BACKEND)
    assert "1 run waits for a person." in text(client.get("/admin/"))
    found = client.get(reverse("admin:runtime_run_changelist"), {"waiting": "yes"})
    assert [row.pk for row in found.context["cl"].result_list] == [run.pk]
    Run.objects.filter(pk=run.pk).update(status="completed")
    assert "for a person." not in text(client.get("/admin/"))
    assert not client.get(reverse("admin:runtime_run_changelist"), {"waiting": "yes"}).context["cl"].result_list
