"""`createkey` prints a key once and says in words why there is none."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from agents_admin.models import ApiKey
from agents_admin.models.access import hash_key
from tests import world

pytestmark = pytest.mark.django_db


def made(*arguments: str) -> list[str]:
    out = StringIO()
    call_command("createkey", *arguments, stdout=out)
    return out.getvalue().splitlines()


def test_the_key_is_alone_on_the_last_line_and_only_its_hash_is_kept():
    linus = world.linus()
    key = made("Reports", "--user", "linus")[-1]
    row = ApiKey.objects.get()
    assert key.startswith("rk_")
    assert (row.digest, row.user, row.limited) == (hash_key(key), linus, False)


def test_a_key_for_some_agents_stays_limited_when_they_are_deleted():
    world.linus()
    concierge, analyst = world.agent("Concierge"), world.agent("Analyst")
    made("Reports", "--user", "linus", "--agent", "concierge", "--agent", "analyst")
    row = ApiKey.objects.get()
    assert set(row.agents.all()) == {concierge, analyst}
    assert row.limited


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("Reports", "--user", "nobody"), "There is no user “nobody”"),
        (("Reports", "--user", "linus", "--agent", "nothing"), "no agent with the slug nothing"),
        (("two\nlines", "--user", "linus"), "on one line"),
        (("x" * 101, "--user", "linus"), "at most 100 characters"),
    ],
)
def test_no_key_is_made_of_what_is_not_there(arguments, words):
    world.linus()
    with pytest.raises(CommandError, match=words):
        made(*arguments)
    assert not ApiKey.objects.exists()


def test_a_person_who_is_switched_off_gets_no_key():
    world.person("ex", is_active=False)
    with pytest.raises(CommandError, match="switched off"):
        made("Reports", "--user", "ex")


def test_bytes_that_are_no_text_are_accepted_or_refused_in_words():
    """A terminal hands them over as lone surrogates."""
    world.linus()
    made("Reports\udcff", "--user", "linus")
    assert ApiKey.objects.get().name == "Reports\ufffd"
    with pytest.raises(CommandError, match="no user"):
        made("Reports", "--user", "lin\udcff")
    with pytest.raises(CommandError, match="no agent"):
        made("Reports", "--user", "linus", "--agent", "\udcff")
    with pytest.raises(CommandError, match="no agent"):
        call_command("export", "\udcff")
