"""How many messages visitors, addresses and a whole widget may send."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.utils import timezone

from runtime.models import Run
from tests.web.api_client import QUESTION, settle
from tests.web.widget_client import SHOP, Visitor
from web.models import WidgetUse
from web.widget.token import Pass, issue

pytestmark = pytest.mark.django_db(transaction=True)


def refused(answer, *words):
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 86_400
    assert answer.headers["HX-Retarget"] == "#composer-problem"
    for said in (*words, "Try again in "):
        assert said in answer.text
    return True


def test_a_visitor_may_send_so_many_messages_in_an_hour(site, widget, visitor, stranger):
    widget.visitor_per_hour = 2
    widget.save()
    for _ in range(2):
        visitor.answer_to(QUESTION)
    assert refused(visitor.say(QUESTION), "in an hour")
    assert Run.objects.filter(depth=0).count() == 2
    assert stranger.say(QUESTION).status_code == 200


def test_an_address_may_send_so_many_whoever_sits_there(site, widget, visitor, stranger):
    widget.address_per_hour = 2
    widget.save()
    elsewhere = Visitor(site, widget.pk, address="198.51.100.9").arrive()
    assert [v.say(QUESTION).status_code for v in (visitor, stranger)] == [200, 200]
    assert refused(stranger.say(QUESTION), "from your network")
    assert elsewhere.say(QUESTION).status_code == 200


def test_neighbours_in_an_ipv6_network_are_one_address(site, widget):
    widget.address_per_hour = 1
    widget.save()
    Visitor(site, widget.pk, address="2001:db8:1:2::1").arrive()
    same = Visitor(site, widget.pk, address="2001:db8:1:2:ffff::9").page("POST", "token/")
    assert same.status_code == 429
    Visitor(site, widget.pk, address="2001:db8:1:3::1").arrive()


def test_a_day_has_a_limit_for_everybody_together(site, widget, visitor):
    widget.total_per_day = 1
    widget.save()
    elsewhere = Visitor(site, widget.pk, address="198.51.100.9").arrive()
    assert visitor.say(QUESTION).status_code == 200
    assert refused(elsewhere.say(QUESTION), "in a day")


def test_new_visitors_are_limited_by_address_and_known_ones_are_not(site, widget, visitor):
    widget.address_per_hour = 1
    widget.save()
    answer = Visitor(site, widget.pk).page("POST", "token/")
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "quota")
    assert "Try again in" in answer.json()["error"]["message"]
    assert answer.headers["Access-Control-Allow-Origin"] == SHOP
    for _ in range(3):
        visitor.arrive()


def test_a_message_that_is_refused_for_another_reason_does_not_count(widget, visitor):
    widget.visitor_per_hour = 1
    widget.save()
    assert visitor.say("").status_code == 422
    assert visitor.say(QUESTION, thread="nonsense").status_code == 404
    assert visitor.say(QUESTION).status_code == 200
    assert refused(visitor.say(QUESTION))


def test_messages_at_once_do_not_slip_through(site, widget):
    widget.address_per_hour = 4
    widget.save()
    visitors = [Visitor(site, widget.pk, token=issue(Pass(widget.pk, SHOP, f"v{n}"))) for n in range(12)]
    with ThreadPoolExecutor(12) as pool:
        statuses = list(pool.map(lambda one: one.say(QUESTION).status_code, visitors))
    assert sorted(statuses) == [200] * 4 + [429] * 8


def test_no_address_is_stored(visitor):
    visitor.say(QUESTION)
    kept = " ".join(WidgetUse.objects.values_list("who", flat=True))
    assert visitor.address not in kept
    assert WidgetUse.objects.count() == 4


def test_counts_go_with_their_widget_and_with_time(site, house, widget, visitor):
    before = timezone.now() - timedelta(days=3)
    WidgetUse.objects.create(widget=widget, slot=before, who="all", times=7)
    assert visitor.say(QUESTION).status_code == 200
    assert not WidgetUse.objects.filter(slot=before).exists()
    settle()
    widget.delete()
    assert not WidgetUse.objects.exists()
    assert visitor.frame("GET", "conversation/").status_code == 403
