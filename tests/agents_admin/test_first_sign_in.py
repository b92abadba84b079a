"""The first administrator of a fresh installation."""

import threading

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.signals import pre_save

from config.first_sign_in import first_administrator

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_two_starts_at_once_one_makes_the_administrator_whose_password_is_in_the_file(tmp_path):
    def other_start(**_):
        pre_save.disconnect(other_start, sender=User)
        thread.start()
        thread.join(timeout=1)

    def start():
        first_administrator(tmp_path)
        connection.close()

    thread = threading.Thread(target=start)
    pre_save.connect(other_start, sender=User, weak=False)
    path = first_administrator(tmp_path)
    thread.join(timeout=30)
    password = path.read_text().partition("password:")[2].strip()
    assert User.objects.get().check_password(password)
    assert path.stat().st_mode & 0o777 == 0o600
