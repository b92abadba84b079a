"""What the worker does by itself, every minute."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import Schedule

from config.management.commands.up import schedule_housekeeping
from runtime import tasks


@pytest.mark.django_db(transaction=True)
def test_the_schedule_that_a_start_makes_drops_expired_sessions_and_comes_once(monkeypatch):
    monkeypatch.setattr(tasks, "WATCH_SECONDS", 0.0)
    now = timezone.now()
    for key, days in (("old", -1), ("current", 1)):
        Session.objects.create(session_key=key, session_data="", expire_date=now + timedelta(days=days))
    schedule_housekeeping()
    schedule_housekeeping()
    schedule = Schedule.objects.get()
    import_string(schedule.func)()
    assert list(Session.objects.values_list("session_key", flat=True)) == ["current"]
