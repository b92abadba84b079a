"""Bundles that can't be applied: what is wrong is said in words, and nothing is changed."""

import pytest

from agents_admin.models import Delegation, Provider
from agents_admin.portable.exporting import export
from tests.agents_admin.shop_bundle import SHOP

pytestmark = pytest.mark.django_db


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


@pytest.mark.parametrize("key", [r'"a\ud800": 1', r'"a\0": 1', r'agents: [{slug: "a\ud800", b: x}]'])
def test_a_complaint_can_be_printed_whatever_the_bundle_calls_things(complaint, key):
    said = complaint(f"roster: 1\n{key}\n")
    assert "a\ufffd" in said
    assert said.encode()
