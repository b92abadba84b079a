"""The environment: read once, refused in words."""

import os
import re
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.fernet import Fernet

from config import env
from config.env import CHECKOUT, Refusal

KEY = Fernet.generate_key().decode()
GOOD = {
    "DATABASE_URL": "postgresql://roster@db/roster",
    "SECRET_KEY": "random-and-long-enough-to-sign-sessions-with",
    "FIELD_ENCRYPTION_KEYS": KEY,
    "PUBLIC_URL": "https://agents.example.org",
}


class Recorder(dict):
    def __init__(self, values):
        super().__init__(values)
        self.asked = set()

    def get(self, name, default=None):
        self.asked.add(name)
        return super().get(name, default)


def test_the_table_of_settings_lists_exactly_what_is_read(tmp_path):
    production, embedded = Recorder(GOOD), Recorder({"DATA_DIR": str(tmp_path)})
    env.read(production)
    env.read(embedded)
    listed = set(re.findall(r"^\| `([A-Z_]+)` \|", (CHECKOUT / "docs" / "settings.md").read_text(), re.MULTILINE))
    assert listed == production.asked | embedded.asked


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"SECRET_KEY": ""}, "SECRET_KEY must be set"),
        ({"FIELD_ENCRYPTION_KEYS": " , "}, "FIELD_ENCRYPTION_KEYS must be set"),
        ({"SECRET_KEY": "short"}, "too short"),
        ({"SECRET_KEY": "django-insecure-" + "x" * 50}, "example value"),
        ({"FIELD_ENCRYPTION_KEYS": f"{KEY},nonsense"}, "Key 2 of FIELD_ENCRYPTION_KEYS"),
        ({"SECRET_KEY": KEY}, "are the same"),
        ({"PORT": "http"}, "PORT is 'http'"),
        ({"PORT": "70000"}, "1 to 65535"),
        ({"PUBLIC_URL": "agents.example.org"}, "PUBLIC_URL holds"),
        ({"CSRF_TRUSTED_ORIGINS": "*"}, "CSRF_TRUSTED_ORIGINS holds"),
        ({"EVENTS_KEEP_DAYS": "-1"}, "EVENTS_KEEP_DAYS is '-1'"),
        ({"RUNS_KEEP_DAYS": "a year"}, "0 for never"),
    ],
)
def test_a_value_nobody_can_start_with_is_refused_in_words(change, words):
    with pytest.raises(Refusal, match=re.escape(words)):
        env.read(GOOD | change)


def test_a_refused_start_shows_words_and_no_traceback():
    environ = os.environ | {"DATABASE_URL": GOOD["DATABASE_URL"], "SECRET_KEY": "", "FIELD_ENCRYPTION_KEYS": ""}
    command = [sys.executable, "manage.py", "check"]
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "SECRET_KEY and FIELD_ENCRYPTION_KEYS must be set" in done.stderr
    assert "Traceback" not in done.stderr


def test_generated_secrets_are_made_once_and_kept_from_others(tmp_path):
    with ThreadPoolExecutor(8) as many:
        made = list(many.map(lambda _: env.read({"DATA_DIR": str(tmp_path)}), range(16)))
    assert len({(e.secret_key, e.field_encryption_keys) for e in made}) == 1
    kept = tmp_path / "secrets.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["secrets.json"]


def test_a_folder_that_can_not_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(Refusal, match="DATA_DIR"):
        env.read({"DATA_DIR": str(tmp_path / "file" / "data")})


def test_loopback_is_always_a_host_of_the_embedded_mode_and_never_of_production(tmp_path):
    embedded = env.read({"DATA_DIR": str(tmp_path), "PUBLIC_URL": "https://try.example.org"})
    assert {"127.0.0.1", "localhost", "try.example.org"} <= set(embedded.allowed_hosts)
    assert env.read(GOOD).allowed_hosts == ("agents.example.org",)
