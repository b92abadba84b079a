"""What went wrong on our side is said in words; a database outage is told apart."""

import pytest
from django.db import OperationalError
from django.urls import path


def breaks(request):
    raise ZeroDivisionError("secret detail")


def finds_no_database(request):
    raise OperationalError("connection to server failed")


urlpatterns = [path("breaks", breaks), path("away", finds_no_database)]
handler500 = "web.outage.server_error"
pytestmark = pytest.mark.urls(__name__)


@pytest.mark.parametrize(
    ("address", "status", "words"),
    [("/breaks", 500, "The fault is ours"), ("/away", 503, "database can&#x27;t be reached|database can't be reached")],
)
def test_a_fault_answers_in_words_without_its_details(client, address, status, words):
    client.raise_request_exception = False
    answer = client.get(address)
    assert answer.status_code == status
    page = answer.content.decode()
    assert any(word in page for word in words.split("|"))
    assert "secret detail" not in page


async def test_the_same_under_async(async_client):
    async_client.raise_request_exception = False
    assert (await async_client.get("/away")).status_code == 503
