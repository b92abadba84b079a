"""The house stands: pages answer, in words, and the database is there."""

import httpx
import pytest


@pytest.mark.django_db
def test_the_sign_in_page_greets_with_a_policy_that_allows_no_foreign_script(client):
    answer = client.get("/login/")
    assert answer.status_code == 200
    assert "default-src 'self'" in answer["Content-Security-Policy"]
    assert "unsafe" not in answer["Content-Security-Policy"]


def test_the_served_site_is_alive(site):
    assert httpx.get(site + "/healthz").text == "ok\n"
    assert httpx.get(site + "/static/css/base.css").status_code == 200
    assert httpx.get(site + "/readyz").json() == {"database": True, "worker": False, "hub": True}
    assert httpx.get(site + "/nothing").status_code == 404


def test_the_sign_in_page_opens_in_a_browser_without_complaint(page):
    page.goto("/login/")
    assert page.get_by_role("button", name="Sign in").is_visible()
