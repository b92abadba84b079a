"""Bundles: applied whole or not at all, exported in the same form."""

import textwrap
from io import StringIO

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents_admin.models import Agent, Chunk, Credential, Delegation, Document, Memory, Model, Provider, Tool
from agents_admin.portable.applying import apply
from agents_admin.portable.exporting import export
from agents_admin.portable.problem import BundleError
from tests import world

pytestmark = pytest.mark.django_db

SHOP = """
roster: 1
providers:
  - {slug: acme, name: Acme LLM, kind: openai, base_url: "${LLM_BASE_URL}", api_key: "${LLM_KEY}"}
models:
  - {slug: small, name: Small, provider: acme, model_id: gpt-5-mini}
  - {slug: large, name: Large, provider: acme, model_id: gpt-5, fallback: small, input_price: 1.25}
credentials:
  - {slug: shop, name: Shop, kind: bearer, secret: "${SHOP_TOKEN}", origins: ["https://shop.example"]}
tools:
  - {slug: calculator, name: Calculator, kind: calculator}
  - slug: order_status
    name: Order status
    kind: http
    description: Looks up one order by its number.
    side_effect: read-only
    credential: shop
    settings:
      method: GET
      url: https://shop.example/orders/{order_id}
      parameters:
        - {name: order_id, in: path, type: string, required: true, description: The order's number}
memories:
  - slug: handbook
    name: Employee handbook
    description: Rules on leave, travel and security.
    audience: chosen
    groups: [Staff]
    users: [maya]
    documents:
      - {title: Leave, file: handbook/leave.md}
      - {title: Opening hours, text: "We are open from nine to five."}
agents:
  - slug: librarian
    name: Librarian
    description: Answers from the handbook and names the source.
    instructions: Search first. Quote the passage you rely on.
    model: small
    hidden: true
    memories: [handbook]
  - slug: concierge
    name: Concierge
    description: The first contact for employees.
    instructions: |
      Help the person.
      Or ask a colleague: {{ nothing }} is evaluated, $${HOME} neither.
    model: large
    audience: signed-in
    starters: ["How many days of leave do I get?"]
    tools: [calculator, {tool: order_status, approval: ask, max_calls: 3}]
    roster:
      - {delegate: librarian, when_to_use: Questions about rules., max_calls: 2, on_failure: Not now.}
    limits: {max_steps: 8, max_tool_calls: null, max_seconds: 200, max_tokens: 50000}
"""
ENVIRON = {"LLM_BASE_URL": "https://llm.example/v1", "LLM_KEY": "sk-canary", "SHOP_TOKEN": "t-canary"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook" / "leave.md").write_text(world.LEAVE)
    Group.objects.create(name="Staff")
    world.maya()
    return tmp_path


@pytest.fixture
def load(folder):
    """Applies a text as a bundle of its own."""

    def load(text, **environ):
        path = folder / "bundle.yaml"
        path.write_text(textwrap.dedent(text))
        return apply(path, ENVIRON | environ)

    return load


@pytest.fixture
def complaint(load, folder):
    """What a bundle that can't be applied says, its path left out."""

    def complaint(text):
        with pytest.raises(BundleError) as caught:
            load(text)
        return str(caught.value).replace(f"{folder}/", "")

    return complaint


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


def test_a_circle_is_refused_with_the_names_on_the_path(complaint, load):
    load(SHOP)
    said = complaint("roster: 1\nagents:\n  - slug: librarian\n    roster:\n      - concierge\n")
    assert said == (
        "bundle.yaml:5: agents.librarian.roster.1.delegate: "
        "This would go round in a circle: Librarian → Concierge → Librarian."
    )
    assert Delegation.objects.count() == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("agents: [{slug: a, name: A, model: nowhere}]", "agents.a.model: There is no model “nowhere”"),
        ("agents: [{slug: a, name: A}]", "agents.a.model: This is required."),
        ("agents: [{name: A}]", "agents.A.slug: This is required"),
        ("agents: [{slug: A a, name: A, model: small}]", "agents.A a.slug: Use small letters"),
        ("agents: [{slug: a, instruction: x}]", "agents.a.instruction: There is no such key here. Known: slug, name"),
        ("agents: [{slug: concierge, limits: {max_steps: 0}}]", "concierge.limits.max_steps: Ensure this value"),
        ("agents: [{slug: concierge, limits: {max_steps: many}}]", "max_steps: “many” is not a whole number"),
        ("agents: [{slug: concierge, temperature: .nan}]", "temperature: “.nan” is not a number"),
        ("agents: [{slug: concierge, enabled: maybe}]", "enabled: “maybe” is not yes or no"),
        ("agents: [{slug: concierge, audience: all}]", "agents.concierge.audience: Value 'all' is not a valid choice"),
        ("agents: [{slug: concierge, users: [maya]}]", "users: This counts only with “audience: chosen”"),
        ("agents: [{slug: concierge, audience: chosen, users: [eve]}]", "There is no user “eve”"),
        ("agents: [{slug: concierge, tools: [calculator, calculator]}]", "“calculator” appears twice"),
        ("agents: [{slug: concierge, tools: calculator}]", "agents.concierge.tools: This must be a list"),
        ("agents: [{slug: concierge, roster: [{max_calls: 1}]}]", "roster.1.delegate: This is required"),
        ("agents: [{slug: concierge, name: [x]}]", "name: This must be a single value"),
        ("agents: [concierge]", "agents.1: This must be a group of: slug, name"),
        ("agents: [{slug: concierge}, {slug: concierge}]", "“concierge” appears twice"),
        ("agents: [{slug: concierge, slug: x}]", "slug: This key appears twice"),
        ("tools: [{slug: x, name: X, kind: http}]", "tools.x.settings.url: This setting is required"),
        ("tools: [{slug: calculator, settings: {a: 1}}]", "tools.calculator.settings.a: There is no setting “a”"),
        ("tools: [{slug: x, name: X, kind: magic}]", "tools.x.kind: Value 'magic' is not a valid choice"),
        ("memories: [{slug: handbook, documents: [{title: X}]}]", "documents.X: A document has either a “file”"),
        ("memories: [{slug: handbook, documents: [{title: X, text: ''}]}]", "documents.X: There is no text in it"),
        ("memories: [{slug: handbook, documents: [{text: Words}]}]", "documents.1.title: This is required"),
        ("credentials: [{slug: shop, secret: x, origins: [ftp://x]}]", "credentials.shop.origins.1: "),
        ("widgets: []", "widgets: There is no such key here. Known: roster, providers"),
        ("providers: [{slug: acme, api_key: '${NOT_SET}'}]", "api_key: The environment variable NOT_SET is not set"),
        ("agents: !!python/object:os.system [x]", "agents"),
        ("agents: [{slug: concierge, greeting: !!binary aGk=}]", "is not allowed here"),
        ("agents: [", "This is not valid YAML"),
        ("agents: &a [*a]", "aliases stand for too many"),
        ("agents: " + "[" * 500, "This is not valid YAML"),
        ("agents: " + "[" * 50_000, "This is not valid YAML"),
        (
            "a: &a [x, x, x, x, x, x, x, x]\n"
            + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)),
            "aliases stand for too many",
        ),
    ],
)
def test_what_is_wrong_is_said_with_line_and_field(load, complaint, line, said):
    load(SHOP)
    before = export()
    complaint_text = complaint(f"roster: 1\n{line}\n")
    assert said in complaint_text
    assert complaint_text.startswith("bundle.yaml:2:") or "YAML" in said or "aliases" in said
    assert export() == before


@pytest.mark.parametrize("text", ["", "x", "[1]", "agents: []", "roster: 2", "roster: 1\n---\nroster: 1", "\x00"])
def test_a_file_that_is_no_bundle_is_refused(complaint, text):
    assert complaint(text).startswith("bundle.yaml:")


def test_several_problems_are_told_at_once_and_nothing_is_applied(complaint):
    said = complaint("""
        roster: 1
        providers:
          - {slug: offline, name: Offline, kind: offline}
        models:
          - {slug: small, name: Small, provider: offline}
        agents:
          - {slug: a, name: A, model: small}
          - {slug: b, name: B, model: tiny}
    """)
    assert [line.partition(": ")[0] for line in said.splitlines()] == ["bundle.yaml:6", "bundle.yaml:9"]
    assert not Provider.objects.exists()


def test_files_outside_the_folder_of_the_bundle_are_not_read(complaint, folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.md"
    outside.write_text("secret")
    (folder / "link.md").symlink_to(outside)
    (folder / "loop.md").symlink_to(folder / "loop.md")
    (folder / "latin.md").write_bytes(b"\xe9")
    expected = {
        "../secret.md": "outside",
        str(outside): "outside",
        "link.md": "outside",
        "loop.md": "“loop.md”",
        "latin.md": "not UTF-8",
        "bundle.yaml": "no text file",
        "handbook": "no text file",
        "none.md": "There is no file",
        "n" * 5_000 + ".md": "",
    }
    for name, said in expected.items():
        document = f"{{title: X, file: '{name}'}}"
        text = complaint(f"roster: 1\nmemories: [{{slug: m, name: M, documents: [{document}]}}]")
        assert said in text
        assert "secret" not in text.replace("secret.md", "")


def test_a_stored_key_does_not_follow_a_new_address(load, complaint):
    load(SHOP)
    said = complaint("roster: 1\nproviders: [{slug: acme, base_url: 'https://evil.example/v1'}]")
    assert "providers.acme.api_key: The stored secret was not given for https://evil.example" in said
    said = complaint(
        "roster: 1\ncredentials: [{slug: shop, origins: ['https://shop.example', 'https://evil.example']}]"
    )
    assert "https://evil.example" in said
    load("roster: 1\nproviders: [{slug: acme, base_url: 'https://new.example/v1', api_key: ''}]")
    assert Provider.objects.get().api_key == ""


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
