"""Text and addresses that nobody should send: never a 500, nothing lost."""

import pytest

from tests import world
from tests.admin_page import add, change, fields, refused, saved, submit, text

pytestmark = pytest.mark.django_db
HOSTILE = "a\0b {{x}} {% include 'x' %} {name} <script>alert(1)</script> שלום \u202e 🦉"


@pytest.mark.parametrize("model", ["agent", "credential", "document", "memory", "model", "provider", "tool", "widget"])
def test_hostile_text_in_every_field_is_saved_or_refused_in_words(ada, model):
    world.agent("Someone", slug="someone")
    filled = fields(ada.get(add(model)))
    own = [name for name in filled if not name.endswith("_FORMS") and name != "csrfmiddlewaretoken"]
    hostile = [dict.fromkeys(filled, HOSTILE), dict.fromkeys(own, HOSTILE), *({name: HOSTILE} for name in own)]
    for changes in hostile:
        answer = ada.post(add(model), filled | changes)
        assert answer.status_code in (200, 302), changes
        assert "<script>alert(1)" not in answer.content.decode()


def test_a_megabyte_is_kept_where_it_belongs_and_refused_elsewhere(ada):
    agent, megabyte = world.agent("Someone"), "x" * 1_000_000
    saved(submit(ada, change(agent), instructions=megabyte))
    agent.refresh_from_db()
    assert agent.instructions == megabyte
    assert "at most 100 characters" in refused(submit(ada, change(agent), name=megabyte))


def test_hostile_text_reaches_the_row_as_typed(ada):
    agent = world.agent("Someone")
    typed = "{{x}} {name} <script>alert(1)</script> שלום 🦉 a\0b"
    saved(submit(ada, change(agent), instructions=typed, greeting=typed))
    agent.refresh_from_db()
    assert agent.instructions == typed.replace("\0", "\ufffd")
    assert "<script>alert(1)" not in ada.get(change(agent)).content.decode()


@pytest.mark.parametrize("bad", ["abc", "99999999999999999999999", "%00"])
def test_an_address_of_no_row_is_not_found(ada, bad):
    for action in ("talk", "copy", "switch"):
        answer = ada.post(f"/admin/agents_admin/agent/{bad}/{action}/", {"_form_submitted": "on"})
        assert answer.status_code == 404
    assert ada.get(f"/admin/agents_admin/agent/{bad}/change/").status_code == 302
    chosen = {"action": "delete_selected", "_selected_action": bad}
    assert ada.post("/admin/agents_admin/agent/", chosen).status_code in (200, 302)


@pytest.mark.parametrize(
    "address",
    [
        "/admin/agents_admin/agent/?q=%00",
        "/admin/agents_admin/agent/?model__id__exact=%00",
        "/admin/agents_admin/agent/?enabled__exact=x",
        "/admin/agents_admin/agent/?o=9999.-9&p=99999999999999999999",
        "/admin/agents_admin/agent/?nonsense__x=1",
        "/admin/runtime/run/?created_at__gte=%00",
        "/admin/runtime/run/?created_at__gte=soon",
        "/admin/agents_admin/document/add/?memory=x",
        "/admin/agents_admin/document/add/?memory=99999999999999999999",
        "/admin/autocomplete/?app_label=agents_admin&model_name=agenttool&field_name=tool&term=%00",
        "/admin/autocomplete/?app_label=agents_admin&model_name=agenttool&field_name=tool&page=x",
        "/admin/search/?s=%00",
        "/admin/search/?s=agent&page=x",
        "/admin/search/?s=agent&page=99",
        "/admin/auth/user/?q=%00",
        "/admin/agents_admin/apikey/add/?expires_at=soon",
    ],
)
def test_a_strange_address_is_answered(ada, address):
    assert ada.get(address).status_code < 500


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "filtered",
    [
        "agents_admin/agent/?name__regex=(",
        "agents_admin/agent/?name__range=a",
        "agents_admin/tool/?slug__iregex=*",
        "runtime/run/?created_at__year=0",
        "runtime/run/?created_at__year=99999999999",
        "auth/user/?q=%22&last_login__gte=soon",
    ],
)
def test_a_filter_that_makes_no_sense_shows_everything_and_says_so(ada, filtered):
    page = ada.get(f"/admin/{filtered}", follow=True)
    assert page.status_code == 200
    assert "be understood. Here is everything." in text(page)


@pytest.mark.parametrize("name", ["q", "o", "_changelist_filters", "name__contains"])
def test_lone_surrogates_in_an_address_are_answered(ada, name):
    """Some character sets that a request may name can write them."""
    odd = {"QUERY_STRING": f"{name}=\\ud800", "CONTENT_TYPE": "text/plain; charset=raw_unicode_escape"}
    assert ada.generic("GET", "/admin/agents_admin/agent/", **odd).status_code < 500


def test_a_page_of_documents_is_a_number(ada):
    handbook = world.memory("Handbook", {"Leave": world.LEAVE})
    assert ada.get(change(handbook), {"documents-page": "\u00b2"}).status_code == 200


@pytest.mark.parametrize("field", ["model", "groups", "users", "roster-0-delegate", "agent_tools-0-tool"])
def test_an_id_that_is_none_is_refused_in_words(ada, field):
    house = world.house()
    world.give(house.concierge, house.clock)
    assert "Please correct the error" in refused(submit(ada, change(house.concierge), **{field: "x"}))


def test_a_popup_of_no_model_is_refused_and_nothing_is_saved(ada):
    typed = fields(ada.get(add("memory"))) | {"name": "Rules", "slug": "rules", "_popup": "1"}
    assert ada.post(add("memory"), typed | {"_source_model": "nonsense"}).status_code == 400
    assert ada.post(add("memory"), typed | {"_source_model": "agents_admin.tool"}).status_code == 200


def test_a_form_beyond_all_limits_is_refused_with_what_to_do(ada):
    page = ada.post("/admin/agents_admin/agent/add/", {"name": "x" * 8_000_001})
    assert page.status_code == 400
    assert "Go back" in page.text
