"""What a search in a memory finds, and what it rightly doesn't."""

import pytest

from agents_admin.models import Document
from agents_admin.search_memory import search
from tests import world

pytestmark = pytest.mark.django_db

OFFICE = """# Office

## Opening hours

The office is open from seven in the morning to eight in the evening, Monday to Friday.

## Visitors

Meet visitors at the reception and walk with them. A visitor's badge is valid for a day.
"""
SECURITY = """# Security

Use the password manager for every account. A password is never sent by mail. Lock your screen when you leave the desk.

Report a lost laptop at once, also at night.
"""
URLAUB = """# Urlaub

Alle Beschäftigten haben 30 Tage Urlaub im Jahr. Der Antrag wird zwei Wochen vorher gestellt.

# Krankheit

Wer krank ist, meldet sich vor zehn Uhr.
"""


@pytest.fixture
def handbook():
    documents = {"Leave": world.LEAVE, "Travel": world.TRAVEL, "Office": OFFICE, "Security": SECURITY}
    return world.memory("Handbook", documents)


def found(memory, query):
    return [f"{hit.document} {hit.number}" for hit in search(memory.pk, query)]


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("How many days of annual leave do I get?", "Leave 1"),
        ("annual leave", "Leave 1"),
        ("What must I do when I am sick?", "Leave 2"),
        ("Is a taxi paid for?", "Travel 1"),
        ("When is the office open?", "Office 1"),
        ("opening hours on Saturday", "Office 1"),
        ("I lost my laptop!", "Security 1"),
        ("Where do visitors get a badge?", "Office 2"),
    ],
)
def test_a_question_in_ordinary_words_finds_its_passage_first(handbook, question, passage):
    assert found(handbook, question)[0] == passage


@pytest.mark.parametrize(
    "question",
    [
        "What is the wifi password?",
        "Who is the chief executive?",
        "Does the canteen serve vegan lunch?",
        "How do I book a parking space?",
        "who are we",
        "",
        "?!",
    ],
)
def test_a_question_about_something_that_is_not_there_finds_nothing(handbook, question):
    assert found(handbook, question) == []


def test_a_hit_says_where_it_stands(handbook):
    hit = search(handbook.pk, "annual leave")[0]
    assert (hit.memory, hit.document, hit.number, hit.heading) == ("Handbook", "Leave", 1, "Leave \u203a Annual leave")
    assert "28 days" in hit.text
    assert hit.score > 0


def test_a_quoted_phrase_must_occur_as_it_is(handbook):
    assert found(handbook, '"password manager"') == ["Security 1"]
    assert found(handbook, '"manager password"') == []


def test_a_question_in_german_is_freed_of_german_function_words():
    memory = world.memory("Handbuch", {"Personal": URLAUB})
    assert found(memory, "Wie viele Tage Urlaub habe ich im Jahr?") == ["Personal 1"]
    assert found(memory, "Wie ist das WLAN-Kennwort?") == []


@pytest.mark.parametrize(
    ("question", "there"),
    [
        ("What is the price of the floor lamp?", True),
        ("How much does the floor lamp cost?", True),
        ("floor lamp", True),
        ("Do you sell garden lamps?", False),
        ("Do you sell chairs?", False),
        ("What is on the price list about lamps?", True),
    ],
)
def test_a_memory_of_one_passage_is_searched_by_the_same_rule(question, there):
    text = "# Lamps\n\nThe desk lamp costs 49 euros, the floor lamp 129 euros."
    memory = world.memory("Price list", {"Products": text})
    assert bool(found(memory, question)) is there


def test_words_found_in_the_title_alone_count():
    memory = world.memory("Handbook", {"Parental leave": "You may be away for twelve months."})
    assert found(memory, "parental leave") == ["Parental leave 1"]


@pytest.mark.parametrize(
    "query",
    [
        "leave & | ! ( ) :* <-> <3> ''",
        "annual' leave\\",
        "'; DROP TABLE agents_admin_chunk; --",
        "annual \x00 leave \ud800",
        '"""" annual leave "',
        "%s %(words)s annual leave",
        "annual leave " + "x" * 1_000_000,
        "\u202eannual leave\u202c 🏖️",
    ],
)
def test_hostile_text_is_only_text(handbook, query):
    assert isinstance(found(handbook, query), list)
    assert found(handbook, "annual leave") == ["Leave 1"]


def test_only_ready_documents_of_an_enabled_memory_are_searched(handbook):
    Document.objects.filter(title="Leave").update(state="failed")
    assert found(handbook, "annual leave") == []
    Document.objects.filter(title="Leave").update(state="ready")
    handbook.enabled = False
    handbook.save()
    assert found(handbook, "annual leave") == []


def test_another_memory_is_not_searched(handbook):
    other = world.memory("Recipes", {"Soup": "Annual leave from soup: none."})
    assert found(other, "annual leave") == ["Soup 1"]
    assert found(handbook, "annual leave") == ["Leave 1"]
