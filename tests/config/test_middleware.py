"""The middleware under async: no thread for what does no I/O, and the policies it sets."""

import pytest
from asgiref.sync import SyncToAsync
from django.conf import settings
from django.http import HttpResponse
from django.urls import path


async def plain(request):
    return HttpResponse("ok")


async def greets(request):
    request.session["name"] = "Maya"
    return HttpResponse("ok")


urlpatterns = [path("plain", plain), path("greets", greets), path("admin/page", plain)]
pytestmark = pytest.mark.urls(__name__)


async def test_a_request_takes_no_thread_for_its_middleware(async_client, monkeypatch):
    taken = []
    call = SyncToAsync.__call__

    async def counted(hop, *args, **kwargs):
        taken.append(hop.func.__qualname__)
        return await call(hop, *args, **kwargs)

    monkeypatch.setattr(SyncToAsync, "__call__", counted)
    async_client.cookies[settings.SESSION_COOKIE_NAME] = "some-session"
    answer = await async_client.post("/plain")
    assert answer.status_code == 200
    djangos_own = ("send", "HttpResponseBase.close")  # signals, and the end of the response
    assert [name for name in taken if not name.endswith(djangos_own)] == []


@pytest.mark.django_db
async def test_a_changed_session_is_kept(async_client):
    await async_client.get("/greets")
    session = await async_client.asession()
    assert await session.aget("name") == "Maya"


async def test_a_form_without_its_token_is_refused_under_async_too(async_client):
    async_client.handler.enforce_csrf_checks = True
    answer = await async_client.post("/plain")
    assert answer.status_code == 403
    assert "open for too long" in answer.content.decode()


async def test_only_the_admin_may_evaluate_scripts(async_client):
    answer = await async_client.get("/plain")
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    answer = await async_client.get("/admin/page")
    assert "'unsafe-eval'" in answer.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
