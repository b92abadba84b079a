"""What the chaos tests share: a town, and people in it."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import connections

from tests import world
from tests.chaos.effects import Effects, counting
from tests.chaos.town import Town, environ_of
from tests.scripted import ScriptedModel
from tests.web.api_client import scripted_agent


@pytest.fixture
def town(transactional_db: None, tmp_path) -> Iterator[Town]:
    """Processes on the test database, killed at the end. They see committed rows only."""
    entry = connections["default"].settings_dict
    url = f"postgresql:///{entry['NAME']}?host={entry['HOST']}&user={entry['USER']}"
    made = Town(environ_of(url, settings.SECRET_KEY, ",".join(settings.FIELD_ENCRYPTION_KEYS)), tmp_path)
    yield made
    made.close()


@pytest.fixture
def effects() -> Iterator[Effects]:
    with counting() as server:
        yield server


def booking_agent(model: ScriptedModel, effects: Effects, name: str, calls: int):
    """An agent that books so many times at once and then says so."""
    agent = scripted_agent(model, name, audience="everyone")
    settings_of_tool = {"method": "POST", "url": effects.url}
    tool = world.tool("http", name="Book", side_effect="acts", audience="everyone", settings=settings_of_tool)
    world.give(agent, tool)
    model.when(after_tool=False).calls_all([("book", {})] * calls, times=None)
    model.when(after_tool=True).says("It is booked.", times=None, delay=0.02)
    return agent


@pytest.fixture
def clerk(transactional_db: None, model: ScriptedModel, effects: Effects):
    """Books once."""
    return booking_agent(model, effects, "Clerk", 1)


@pytest.fixture
def busy_clerk(transactional_db: None, model: ScriptedModel, effects: Effects):
    """Books twice at once."""
    return booking_agent(model, effects, "Clerk", 2)


@pytest.fixture
def key(transactional_db: None) -> str:
    """Linus's API key."""
    return world.api_key(world.linus())
