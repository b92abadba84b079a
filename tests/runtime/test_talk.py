"""Talking in the terminal: labelled lines, untrusted text made harmless, an exit status that tells how it went."""

from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from agents_admin.models import Agent
from runtime import events
from runtime.events import Origin
from runtime.management.terminal import Terminal
from runtime.models import Run
from tests import world


def talk(*arguments, **options):
    out = StringIO()
    call_command("talk", *arguments, stdout=out, **options)
    return out.getvalue()


@pytest.mark.django_db(transaction=True)
def test_a_delegated_question_is_shown_with_every_label_and_its_source():
    world.house()
    said = talk("concierge", "How many days of annual leave do I get?")
    lines = said.splitlines()
    assert lines[0] == "Concierge ▸ asks HR desk: How many days of annual leave do I get?"
    assert lines[1].startswith("  HR desk ▸ asks Librarian: ")
    assert any(line.startswith("    Librarian ▸ Employee handbook ") and ": ok, " in line for line in lines)
    assert any(line.startswith("    Librarian ▸ source: Leave, passage 1") for line in lines)
    assert any(line.startswith("  HR desk ▸ is done, ") for line in lines)
    answer = said[said.rindex("Concierge ▸") :]
    assert "28 days" in answer
    assert Run.objects.get(depth=0).channel == "terminal"


@pytest.mark.django_db(transaction=True)
def test_somebody_else_s_rights_hold_when_they_are_named():
    house = world.house()
    Agent.objects.filter(slug="analyst").update(audience="chosen")
    Agent.objects.filter(slug="librarian").update(hidden=True)
    assert "262.29" in talk("analyst", "What is 1,249 * 0.21?")
    assert "28 days" in talk("librarian", "How many days of annual leave do I get?")
    for agent in ("analyst", "librarian", "nobody"):
        with pytest.raises(CommandError, match="There is no such agent, or you may not use it"):
            talk(agent, "Hello", username=house.linus.username)


@pytest.mark.django_db(transaction=True)
def test_a_run_that_fails_ends_with_status_1_and_says_why():
    broken = world.provider("broken", kind="openai", base_url="http://127.0.0.1:9/v1")
    world.ada()
    world.agent("Mute", model=world.model("mute", provider=broken))
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("talk", "mute", "Hello", stdout=out)
    assert ended.value.code == 1
    assert "Mute ▸ failed: " in out.getvalue()


@pytest.mark.django_db
def test_a_user_who_is_not_there_is_said():
    with pytest.raises(CommandError, match="There is no administrator yet"):
        talk("concierge", "Hello")
    with pytest.raises(CommandError, match="There is no user “eve”"):
        talk("concierge", "Hello", username="eve")
    world.person("bob", is_active=False)
    with pytest.raises(CommandError, match="switched off"):
        talk("concierge", "Hello", username="bob")
    world.ada()
    with pytest.raises(CommandError, match="Write a message first"):
        talk("concierge", " ")


def shown(*what, columns=None):
    written = []
    terminal = Terminal(written.append, columns)
    for event in what:
        terminal.show(event)
    return "".join(written)


ROOT = Origin(uuid4(), uuid4(), "Concierge", "concierge")
CHILD = Origin(uuid4(), ROOT.root, "HR desk", "hr-desk", parent=ROOT.run, depth=1)
CALL = uuid4()


def test_a_failed_tool_and_a_failed_delegate_say_so():
    said = shown(
        events.ToolCalled(ROOT, CALL, "weather", "Weather", "http"),
        events.ToolArguments(ROOT, CALL, '{"city": "Rome"}'),
        events.ToolReturned(ROOT, CALL, ok=False, content="It took too long.", reason="timeout", seconds=30),
        events.DelegateStarted(ROOT, CALL, CHILD, "Look it up"),
        events.DelegateFailed(ROOT, CALL, CHILD.run, "timeout", "The HR desk took too long.", 12.25),
        events.RunFinished(ROOT, "limited", "max_steps"),
    )
    assert said.splitlines() == [
        'Concierge ▸ Weather {"city": "Rome"}: failed, timeout, 30 s: It took too long.',
        "Concierge ▸ asks HR desk: Look it up",
        "  HR desk ▸ failed (timeout), 12 s: The HR desk took too long.",
        "Concierge ▸ limited: it used all its steps",
    ]


def test_escape_sequences_of_a_model_never_reach_the_terminal():
    message = uuid4()
    said = shown(
        events.MessageText(ROOT, message, "\x1b]52;c;ZXZpbA==\x07\x9b2J\u202egnorw"),
        events.MessageFinished(CHILD, message, "\x1b[2Jgone"),
        events.Notice(ROOT, "\rConcierge ▸ all is well"),
    )
    assert not set(said) & set("\x1b\x07\x9b\u202e\r")


def test_long_lines_are_wrapped_under_their_label_where_somebody_looks():
    text = "many words " * 20
    said = shown(events.MessageFinished(CHILD, uuid4(), text), columns=60)
    lines = said.splitlines()
    assert len(lines) > 3
    assert all(len(line) <= 60 for line in lines)
    assert all(line.startswith(" " * len("  HR desk ▸ ")) for line in lines[1:])
    assert len(shown(events.MessageFinished(CHILD, uuid4(), text)).splitlines()) == 1
