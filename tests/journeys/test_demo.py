"""The demo: filled in once, switched to a real provider when there is one, and never undoing what people changed."""

from io import StringIO

import pytest
from django.core.management import call_command

from agents_admin.models import Agent, Document, Memory, Model, Provider, Tool
from agents_admin.portable.applying import apply
from agents_admin.portable.exporting import export
from agents_admin.search_memory import search
from runtime.models import Run
from tests import world

pytestmark = pytest.mark.django_db


def demo():
    out, err = StringIO(), StringIO()
    call_command("demo", stdout=out, stderr=err)
    return out.getvalue() + err.getvalue()


def test_the_first_start_fills_in_agents_that_know_whom_to_ask():
    assert "Concierge" in demo()
    roster = {agent.name: [line.delegate.name for line in agent.roster.all()] for agent in Agent.objects.all()}
    assert roster == {
        "Concierge": ["HR desk", "Analyst"],
        "HR desk": ["Librarian"],
        "Librarian": [],
        "Analyst": [],
    }
    assert set(Agent.objects.values_list("audience", flat=True)) == {"everyone"}
    assert set(Document.objects.values_list("state", flat=True)) == {"ready"}


def test_a_second_start_changes_nothing():
    demo()
    Agent.objects.filter(slug="analyst").delete()
    Agent.objects.filter(slug="concierge").update(name="Front desk")
    assert demo() == ""
    assert not Agent.objects.filter(slug="analyst").exists()
    assert Agent.objects.get(slug="concierge").name == "Front desk"


def test_a_provider_set_at_a_later_start_is_used(settings):
    demo()
    settings.OPENAI_API_KEY, settings.OPENAI_MODEL = "sk-1", "gpt-5"
    assert "gpt-5 at https://api.openai.com" in demo()
    model = Model.objects.get(slug="demo")
    assert (model.model_id, model.provider.kind, model.provider.api_key) == ("gpt-5", "openai", "sk-1")
    settings.OPENAI_API_KEY = "sk-2"
    demo()
    assert Provider.objects.get(slug="openai").api_key == "sk-2"


def test_a_key_and_a_model_that_people_chose_stay(settings):
    demo()
    settings.OPENAI_API_KEY = "sk-1"
    demo()
    Provider.objects.filter(slug="openai").update(secret_reference="")
    Model.objects.filter(slug="demo").update(model_id="my-choice")
    settings.OPENAI_API_KEY = "sk-2"
    demo()
    assert Provider.objects.get(slug="openai").api_key == "sk-1"
    assert Model.objects.get(slug="demo").model_id == "my-choice"


def test_an_address_that_can_not_be_used_is_said_and_the_demo_stays_offline(settings):
    settings.OPENAI_BASE_URL = "http://models.example/v1"
    assert "plain http" in demo()
    assert Model.objects.get(slug="demo").provider.kind == "offline"


def test_the_demo_exported_and_applied_to_an_empty_database_is_the_demo(tmp_path):
    demo()
    first = export()
    Agent.objects.all().delete()
    Memory.objects.all().delete()
    Tool.objects.all().delete()
    Model.objects.all().delete()
    Provider.objects.all().delete()
    (tmp_path / "demo.yaml").write_text(first)
    apply(tmp_path / "demo.yaml", {})
    assert export() == first


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("question", "asked", "answer"),
    [
        ("How many days of annual leave do I get?", ["HR desk", "Librarian"], "28 days"),
        ("What is 1,249 * 0.21?", ["Analyst"], "262.29"),
        ("What is the wifi password?", ["HR desk", "Librarian", "Analyst"], "Nothing found"),
    ],
)
def test_concierge_hands_the_question_on_and_brings_the_answer_back(question, asked, answer):
    demo()
    world.ada()
    call_command("talk", "concierge", question, stdout=StringIO())
    runs = Run.objects.order_by("created_at")
    assert [run.agent_label for run in runs] == ["Concierge", *asked]
    assert runs[0].status == "completed"
    assert answer in runs[0].output
    if "28" in answer:
        assert "Leave, passage 1" in runs[0].output


@pytest.mark.parametrize(
    ("question", "title", "words"),
    [
        ("How many days of annual leave do I get?", "Leave", "28 days"),
        ("When do I need a doctor's note?", "Leave", "fourth day"),
        ("May I work from abroad?", "Working hours", "thirty days"),
        ("How many days a week can I work from home?", "Working hours", "three days"),
        ("Which trains may I book?", "Travel and expenses", "second class"),
        ("Do I get money for glasses?", "Pay and benefits", "300 euros"),
        ("When is my salary paid?", "Pay and benefits", "25th"),
        ("How long is the probation period?", "Your first weeks", "six months"),
        ("I lost my key card", "Security", "at once"),
        ("Can I bring my dog?", "Working hours", "Thursdays"),
        ("How much is a hotel allowed to cost?", "Travel and expenses", "130 euros"),
        ("What is the meal allowance?", "Travel and expenses", "32 euros"),
        ("What are the rules for overtime?", "Working hours", "ten hours"),
        ("When is the summer party?", "Getting along", "Friday of June"),
    ],
)
def test_the_handbook_answers_questions_in_ordinary_words(question, title, words):
    demo()
    hits = search(Memory.objects.get().pk, question)
    assert words in next(hit.text for hit in hits if hit.document == title)


@pytest.mark.parametrize(
    "question",
    [
        "What is the wifi password?",
        "Who is the chief executive?",
        "Is there a canteen?",
        "What is the company's tax number?",
        "How do I cook spaghetti?",
        "What is the capital of France?",
    ],
)
def test_the_handbook_is_silent_about_what_is_not_in_it(question):
    demo()
    assert search(Memory.objects.get().pk, question) == []
