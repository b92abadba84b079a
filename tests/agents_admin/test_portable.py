"""Bundles: the rows that they make, and exports in the same form."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents_admin.models import Agent, Chunk, Credential, Delegation, Document, Memory, Model, Provider, Tool
from agents_admin.portable.exporting import export
from tests import world
from tests.agents_admin.shop_bundle import ENVIRON, SHOP

pytestmark = pytest.mark.django_db


def empty():
    for model in (Delegation, Agent, Memory, Tool, Credential):
        model.objects.all().delete()
    Model.objects.update(fallback=None)
    Model.objects.all().delete()
    Provider.objects.all().delete()


def test_a_bundle_makes_rows_with_everything_it_names(load):
    assert load(SHOP).rows == {
        "providers": 1,
        "models": 2,
        "credentials": 1,
        "tools": 2,
        "memories": 1,
        "agents": 2,
    }
    concierge = Agent.objects.get(slug="concierge")
    assert concierge.instructions.endswith("{{ nothing }} is evaluated, ${HOME} neither.\n")
    assert (concierge.max_steps, concierge.max_tool_calls, concierge.max_tokens) == (8, None, 50000)
    assert concierge.model.fallback.slug == "small"
    lines = [(line.tool.slug, line.approval, line.max_calls) for line in concierge.agent_tools.all()]
    assert lines == [("calculator", "", None), ("order_status", "ask", 3)]
    assert concierge.roster.get().delegate.slug == "librarian"
    assert Provider.objects.get().api_key == "sk-canary"
    assert [origin.origin for origin in Credential.objects.get().origins.all()] == ["https://shop.example"]
    handbook = Memory.objects.get()
    assert [group.name for group in handbook.groups.all()] == ["Staff"]
    assert [user.username for user in handbook.users.all()] == ["maya"]
    assert set(handbook.documents.values_list("state", flat=True)) == {"ready"}


def test_what_is_applied_again_changes_nothing(load):
    load(SHOP)
    before = export()
    lines = list(Delegation.objects.values_list("pk", flat=True))
    chunks = list(Chunk.objects.values_list("pk", flat=True))
    load(SHOP)
    assert export() == before
    assert list(Delegation.objects.values_list("pk", flat=True)) == lines
    assert list(Chunk.objects.values_list("pk", flat=True)) == chunks


def test_an_export_applied_to_an_empty_database_exports_the_same(load):
    load(SHOP)
    first = export()
    empty()
    load(first)
    assert export() == first


def test_an_export_names_references_and_holds_no_secret(load):
    load(SHOP)
    Provider.objects.create(slug="my-own", name="Typed", base_url="https://own.example", api_key="typed-canary")
    text = export()
    assert "${LLM_KEY}" in text
    assert "${SHOP_TOKEN}" in text
    assert "${MY_OWN_API_KEY}" in text
    assert "canary" not in text


def test_rows_with_names_alike_do_not_share_a_secret():
    for slug in ("my-own", "my_own"):
        Provider.objects.create(slug=slug, name=slug, base_url="https://own.example", api_key=slug)
    text = export()
    assert [text.count(f"${{{name}_API_KEY}}") for name in ("MY_OWN", "MY__OWN")] == [1, 1]


def test_an_export_of_one_agent_holds_what_it_needs_and_no_more(load):
    load(SHOP)
    text = export(["librarian"])
    assert "Employee handbook" in text
    assert "concierge" not in text
    assert "order_status" not in text
    assert "librarian" in export(["concierge"])


def test_what_a_later_bundle_does_not_name_stays(load):
    load(SHOP)
    load("roster: 1\nagents: [{slug: concierge, greeting: Hello}]")
    concierge = Agent.objects.get(slug="concierge")
    assert (concierge.name, concierge.greeting, concierge.tools.count()) == ("Concierge", "Hello", 2)


def test_a_list_that_is_given_is_the_whole_list(load):
    load(SHOP)
    load("""
        roster: 1
        memories: [{slug: handbook, documents: [{title: Travel, text: By train.}]}]
        agents: [{slug: concierge, tools: [order_status], roster: []}]
    """)
    concierge = Agent.objects.get(slug="concierge")
    assert [tool.slug for tool in concierge.tools.all()] == ["order_status"]
    assert concierge.agent_tools.get().approval == ""
    assert not concierge.roster.exists()
    assert list(Document.objects.values_list("title", flat=True)) == ["Travel"]


def test_a_roster_can_be_turned_round_in_one_bundle(load):
    load(SHOP)
    load("roster: 1\nagents: [{slug: librarian, roster: [concierge]}, {slug: concierge, roster: []}]")
    assert str(Delegation.objects.get()) == "Librarian → Concierge"


def test_words_that_yaml_takes_for_something_else_stay_words(load):
    load("""
        roster: 1
        providers: [{slug: off, name: No, kind: offline}]
        models: [{slug: m, name: 2024-01-01, provider: off, model_id: 4.10}]
    """)
    assert Provider.objects.get(slug="off").name == "No"
    model = Model.objects.get(slug="m")
    assert (model.name, model.model_id) == ("2024-01-01", "4.10")


def test_a_reference_in_a_number_is_a_number(load):
    load(SHOP)
    load("roster: 1\nagents:\n  - slug: concierge\n    limits:\n      max_steps: ${STEPS}\n", STEPS="3")
    assert Agent.objects.get(slug="concierge").max_steps == 3


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60))
def test_any_text_survives_export_and_apply(load, text):
    empty()
    world.agent("Echo", instructions=text, greeting=f"a\n{text}\n\n b", description="${HOME} $${X} $$${Y}")
    first = export()
    empty()
    load(first)
    echo = Agent.objects.get()
    assert (echo.instructions, echo.greeting) == (text, f"a\n{text}\n\n b")
    assert export() == first


def test_the_commands_say_what_they_did_and_fail_in_words(folder, monkeypatch):
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    path = folder / "shop.yaml"
    path.write_text(SHOP)
    out = StringIO()
    call_command("apply", path, stdout=out)
    assert "agents: 2" in out.getvalue()
    out = StringIO()
    call_command("export", "librarian", stdout=out)
    assert out.getvalue() == export(["librarian"])
    with pytest.raises(CommandError, match="There is no agent “nobody”"):
        call_command("export", "nobody")
    with pytest.raises(CommandError, match="can't be read"):
        call_command("apply", folder / "missing.yaml")


def test_an_export_keeps_the_words_of_a_starter_apart_as_they_are(tmp_path):
    world.agent("Someone", starters="Two  spaces\n${HOME}")
    path = tmp_path / "all.yaml"
    path.write_text(export())
    empty()
    call_command("apply", path, stdout=StringIO())
    assert Agent.objects.get().starters == "Two  spaces\n${HOME}"
