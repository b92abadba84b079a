"""The widget on a page of another site, with a small company behind it."""

import pytest

from tests import world
from tests.web.api_client import settle
from tests.web.host_page import host_site

QUESTION = "How many days of annual leave do I get?"


@pytest.fixture
def shop(site):
    with host_site(site) as shop:
        yield shop
    settle()


@pytest.fixture
def house(shop):
    house = world.house()
    house.concierge.starters = QUESTION
    house.concierge.save()
    shop.show(world.widget(house.concierge, shop.origin, title="Ask the shop").pk)
    return house
