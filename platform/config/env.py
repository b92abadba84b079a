"""The environment, read once into one frozen value. docs/settings.md has the table.

Without DATABASE_URL the product is *embedded*: its own Postgres server, loopback only, secrets
made once and kept in DATA_DIR. With DATABASE_URL it is *production*: nothing is made up.
"""

import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.fernet import Fernet

CHECKOUT = Path(__file__).resolve().parents[2]
WEAK_WORDS = ("insecure", "changeme", "change-me", "secret-key", "your-secret", "default")
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Refusal(SystemExit):
    """Ends the process with status 1 and these words on standard error, no traceback."""


@dataclass(frozen=True)
class Env:
    data_dir: Path
    port: int
    database_url: str
    secret_key: str
    field_encryption_keys: tuple[str, ...]
    egress_allow: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
    csrf_trusted_origins: tuple[str, ...]
    public_url: str
    openai_api_key: str
    openai_base_url: str
    openai_model: str
    events_collapse_hours: int
    events_keep_days: int
    runs_keep_days: int

    @property
    def production(self) -> bool:
        return bool(self.database_url)


def read(environ: Mapping[str, str]) -> Env:
    """Raises Refusal, in words, on a value nobody can start with."""
    database_url = environ.get("DATABASE_URL", "").strip()
    data_dir = Path(environ.get("DATA_DIR") or default_data_dir()).expanduser().absolute()
    port = _port(environ.get("PORT", "").strip() or "8000")
    public_url = _origin("PUBLIC_URL", environ.get("PUBLIC_URL") or f"http://127.0.0.1:{port}")
    given = {name: environ.get(name, "").strip() for name in ("SECRET_KEY", "FIELD_ENCRYPTION_KEYS")}
    secret = given if database_url else {**kept_secrets(data_dir), **{k: v for k, v in given.items() if v}}
    hosts = (*_listed(environ.get("ALLOWED_HOSTS", "")), urlsplit(public_url).hostname or "")
    env = Env(
        data_dir=data_dir,
        port=port,
        database_url=database_url,
        secret_key=secret["SECRET_KEY"],
        field_encryption_keys=_listed(secret["FIELD_ENCRYPTION_KEYS"]),
        egress_allow=_listed(environ.get("EGRESS_ALLOW", "")),
        allowed_hosts=hosts if database_url else (*hosts, *LOOPBACK),
        csrf_trusted_origins=tuple(
            _origin("CSRF_TRUSTED_ORIGINS", origin)
            for origin in (*_listed(environ.get("CSRF_TRUSTED_ORIGINS", "")), public_url)
        ),
        public_url=public_url,
        openai_api_key=environ.get("OPENAI_API_KEY", "").strip(),
        openai_base_url=environ.get("OPENAI_BASE_URL", "").strip(),
        openai_model=environ.get("OPENAI_MODEL", "").strip(),
        events_collapse_hours=_number(environ, "EVENTS_COLLAPSE_HOURS", 24),
        events_keep_days=_number(environ, "EVENTS_KEEP_DAYS", 90),
        runs_keep_days=_number(environ, "RUNS_KEEP_DAYS", 0),
    )
    _check_secrets(env)
    return env


def default_data_dir() -> Path:
    """Beside the code; as root under /var/lib, where the account that Postgres runs as can go."""
    if os.name == "posix" and os.geteuid() == 0:
        return Path("/var/lib/roster") / hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:8]
    return CHECKOUT / ".data"


def make_data_dir(data_dir: Path) -> None:
    """As root the database's account passes through it; else it is nobody else's business."""
    data_dir.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)


def kept_secrets(data_dir: Path) -> dict[str, str]:
    """The generated secrets; two processes that make them at once agree on one file."""
    path = data_dir / "secrets.json"
    try:
        make_data_dir(data_dir)
        if not path.exists():
            _write_once(path, json.dumps(_new_secrets()))
        return dict(json.loads(path.read_text()))
    except OSError as error:
        raise Refusal(
            f"The secrets can't be kept in {path}: {error.strerror}. Point DATA_DIR at a folder you own."
        ) from None
    except ValueError:
        raise Refusal(
            f"{path} is damaged. Restore it from a backup: without it stored credentials can't be read."
        ) from None


def _new_secrets() -> dict[str, str]:
    return {"SECRET_KEY": secrets.token_urlsafe(50), "FIELD_ENCRYPTION_KEYS": Fernet.generate_key().decode()}


def _write_once(path: Path, text: str) -> None:
    """A hard link either makes the complete file or finds another process's complete file."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)
    except FileExistsError:
        return
    finally:
        os.unlink(name)


def _listed(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _port(value: str) -> int:
    if not (value.isascii() and value.isdigit() and 0 < int(value) < 65536):
        raise Refusal(f"PORT is {value!r}; it must be a number from 1 to 65535, for example PORT=8001.")
    return int(value)


def _number(environ: Mapping[str, str], name: str, usual: int) -> int:
    value = environ.get(name, "").strip() or str(usual)
    if not (value.isascii() and value.isdigit() and len(value) <= 6):
        raise Refusal(f"{name} is {value!r}; it must be a whole number, 0 for never.")
    return int(value)


def _origin(name: str, value: str) -> str:
    value = value.strip().rstrip("/")
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
        raise Refusal(f"{name} holds {value!r}; it must look like https://agents.example.org (no path).")
    return value


def _check_secrets(env: Env) -> None:
    """In production nothing is generated, so that two machines never disagree on a key."""
    needed = {"SECRET_KEY": env.secret_key, "FIELD_ENCRYPTION_KEYS": env.field_encryption_keys}
    missing = " and ".join(name for name, value in needed.items() if not value)
    if missing:
        raise Refusal(
            f"DATABASE_URL is set, so this is production, and {missing} must be set too. "
            "docs/settings.md says how to make them."
        )
    if len(env.secret_key) < 32 or any(word in env.secret_key.lower() for word in WEAK_WORDS):
        raise Refusal("SECRET_KEY is too short or an example value. Use 32 random characters or more.")
    if env.secret_key in env.field_encryption_keys:
        raise Refusal("SECRET_KEY and FIELD_ENCRYPTION_KEYS are the same. Make two different values.")
    for number, key in enumerate(env.field_encryption_keys, 1):
        try:
            Fernet(key)
        except ValueError:
            raise Refusal(
                f"Key {number} of FIELD_ENCRYPTION_KEYS is not a Fernet key. docs/settings.md says how to make one."
            ) from None
