"""The small company behind the site, and visitors of a widget of theirs."""

import pytest

from tests import world
from tests.web.api_client import settle
from tests.web.widget_client import SHOP, Visitor


@pytest.fixture
def house(site):
    yield world.house()
    settle()


@pytest.fixture
def widget(house):
    return world.widget(house.concierge, SHOP, title="Ask the shop", greeting="Good day!", accent="#e11d48")


@pytest.fixture
def visitor(site, widget):
    return Visitor(site, widget.pk).arrive()


@pytest.fixture
def stranger(site, widget):
    """Another visitor of the same widget."""
    return Visitor(site, widget.pk).arrive()
