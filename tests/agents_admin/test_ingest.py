"""How documents become passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_admin import ingest as ingesting
from agents_admin.ingest import ingest
from agents_admin.models import Chunk, Document
from agents_admin.passages import LONGEST, PATH_MARK, split
from tests import world


def pieces(text):
    return [(passage.heading.replace(PATH_MARK, " / "), passage.text) for passage in split(text)]


def test_a_passage_stands_under_the_path_of_its_headings():
    text = "Before.\n\n# Leave\n\n## Annual\n\n28 days.\n\n## Sick ##\nCall.\n\n# Travel\nBy train."
    assert pieces(text) == [
        ("", "Before."),
        ("Leave / Annual", "28 days."),
        ("Leave / Sick", "Call."),
        ("Travel", "By train."),
    ]


def test_underlined_headings_count_and_rules_do_not():
    assert pieces("Leave\n=====\n\n28 days.\n\n---\n\nTwo weeks ahead.") == [
        ("Leave", "28 days.\n\n---\n\nTwo weeks ahead.")
    ]


def test_a_heading_with_nothing_under_it_is_kept():
    assert pieces("# Leave\n\n## No smoking\n\n## Annual\n\n28 days.\n\n# End") == [
        ("Leave", "No smoking"),
        ("Leave / Annual", "28 days."),
        ("", "End"),
    ]


def test_code_is_no_heading_and_stays_together():
    code = "```sh\n# not a heading\n\nmake run\n```"
    assert pieces(f"# Start\n\n{code}") == [("Start", code)]


def test_short_paragraphs_share_a_passage_and_long_ones_are_cut_between_sentences():
    sentence = "This sentence is here to fill the page with words. "
    found = [text for _, text in pieces("One.\n\nTwo.\n\n" + sentence * 60)]
    assert found[0].startswith("One.\n\nTwo.\n\nThis sentence")
    assert len(found) > 3
    assert all(text.endswith(".") and len(text) <= LONGEST for text in found)


@pytest.mark.parametrize("text", ["年次休暇は二十八日です。" * 400, "ก" * 5_000, "word " * 1_000, "e\u0301" * 3_000])
def test_no_script_and_no_lack_of_spaces_makes_a_passage_too_long(text):
    found = [passage.text for passage in split(text)]
    assert all(0 < len(piece) <= LONGEST for piece in found)
    assert "".join(found).replace(" ", "").replace("\n", "") == text.replace(" ", "")


@given(st.text(alphabet=st.sampled_from("ab #=-`~\n\t.。\u2028é"), max_size=400))
def test_no_letter_is_lost_and_no_passage_is_empty(text):
    found = list(split(text))
    assert all(passage.text.strip() for passage in found)
    written = "".join(passage.heading + passage.text for passage in found)
    assert set("abé") & set(text) <= set(written)


@pytest.mark.django_db
def test_a_new_text_replaces_the_passages_of_the_old_one():
    document = world.document(world.memory("Handbook"), "Leave", world.LEAVE)
    document.text = "Only this."
    document.save()
    ingest(document)
    ingest(document)
    assert list(Chunk.objects.values_list("document", "number", "text")) == [(document.pk, 1, "Only this.")]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "reason"), [(" \n\t ", "no text"), ("", "no text"), ("x.\n\n# y\n" * 11_000, "passages")]
)
def test_a_text_that_can_not_be_read_says_why(text, reason):
    document = world.document(world.memory("Handbook"), "Leave", text)
    document.refresh_from_db()
    assert document.state == Document.State.FAILED
    assert reason in document.reason
    assert not document.chunks.exists()


@pytest.mark.django_db
def test_a_text_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(ingesting, "MAX_CHARACTERS", 10)
    document = world.document(world.memory("Handbook"), "Leave", "Twelve chars.")
    assert "Split it" in document.reason
