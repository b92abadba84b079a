"""The rows that people edit: saved as typed, refused in words, secrets never shown."""

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from agents_admin.models import Agent, ApiKey, Credential, Document, Memory, Model, Provider, Tool, Widget
from tests import world
from tests.admin_page import add, change, fields, refused, saved, submit, text

pytestmark = pytest.mark.django_db
SECRET = "sk-canary-9f27c1"


@pytest.mark.parametrize(
    "model", ["agent", "apikey", "credential", "document", "memory", "model", "provider", "tool", "widget"]
)
def test_an_empty_list_says_what_to_do_and_its_add_page_opens(ada, model):
    assert "Nothing here yet" in text(ada.get(reverse(f"admin:agents_admin_{model}_changelist")))
    assert ada.get(add(model)).status_code == 200


def test_every_list_and_page_of_the_house_opens(ada):
    world.house()
    world.widget(Agent.objects.first())
    world.api_key(world.linus())
    for model in (Agent, ApiKey, Document, Memory, Model, Provider, Tool, Widget):
        name = f"admin:agents_admin_{model._meta.model_name}"
        assert ada.get(reverse(f"{name}_changelist")).status_code == 200
        assert ada.get(reverse(f"{name}_changelist"), {"q": "a\0'"}).status_code == 200
        assert ada.get(change(model.objects.first())).status_code == 200
        assert ada.get(reverse(f"{name}_delete", args=[model.objects.first().pk])).status_code == 200


def test_a_provider_keeps_a_key_that_no_page_shows(ada):
    saved(submit(ada, add("provider"), name="Acme", slug="acme", base_url="https://llm.example/v1", api_key=SECRET))
    provider = Provider.objects.get()
    assert provider.api_key == SECRET
    page = ada.get(change(provider))
    assert "•••• set; leave empty to keep it" in text(page)
    assert SECRET not in text(page)
    saved(submit(ada, change(provider), name="Acme Ltd"))
    provider.refresh_from_db()
    assert (provider.name, provider.api_key) == ("Acme Ltd", SECRET)
    assert SECRET not in str(LogEntry.objects.values_list("change_message", "object_repr"))
    saved(submit(ada, change(provider), **{"api_key-clear": "on"}))
    provider.refresh_from_db()
    assert provider.api_key == ""


def test_a_refused_page_does_not_show_the_key_that_was_typed(ada):
    page = submit(ada, add("provider"), name="Acme", slug="not a slug", base_url="https://llm.example", api_key=SECRET)
    assert SECRET not in refused(page)
    assert "Use small letters" in text(page)


def test_a_secret_that_was_typed_is_asked_for_again_when_something_else_is_wrong(ada):
    """Else the form would be sent again with an empty field, which means: keep the old one."""
    acme = world.provider("acme", kind="openai", base_url="https://llm.example/v1", api_key="old")
    page = submit(ada, change(acme), slug="not a slug", api_key=SECRET)
    assert "enter it again" in refused(page)
    assert "api_key" in page.context["adminform"].form.errors
    typed = {"name": "Shop", "slug": "shop", "secret": SECRET} | origins("nonsense")
    assert "enter it again" in refused(submit(ada, add("credential"), **typed))


def test_clear_it_stays_ticked_when_something_else_is_wrong(ada):
    acme = world.provider("acme", kind="openai", base_url="https://llm.example/v1", api_key="old")
    page = submit(ada, change(acme), slug="not a slug", **{"api_key-clear": "on"})
    saved(ada.post(change(acme), fields(page) | {"slug": "acme", "_save": "Save"}))
    acme.refresh_from_db()
    assert acme.api_key == ""


def test_a_file_is_asked_for_again_when_something_else_is_wrong(ada):
    upload = SimpleUploadedFile("leave.md", world.LEAVE.encode())
    assert "choose it again" in refused(submit(ada, add("document"), title="Leave", upload=upload))


def test_another_address_asks_for_the_key_again(ada):
    provider = world.provider("acme", kind="openai", base_url="https://llm.example/v1", api_key=SECRET)
    page = submit(ada, change(provider), base_url="https://evil.example/v1")
    assert "This key was given for https://llm.example:443" in refused(page)
    saved(submit(ada, change(provider), base_url="https://llm.example/v2"))
    saved(submit(ada, change(provider), base_url="https://other.example/v1", api_key="sk-new"))
    provider.refresh_from_db()
    assert (provider.base_url, provider.api_key) == ("https://other.example/v1", "sk-new")


def test_a_kind_with_an_address_of_its_own_does_not_get_the_key_either(ada):
    provider = world.provider("acme", kind="openai", base_url="https://llm.example/v1", api_key=SECRET)
    assert "To send it to https://api.openai.com:443" in refused(submit(ada, change(provider), base_url=""))


@pytest.mark.parametrize("address", ["ftp://a.example", "http://llm.example/v1", "https://u:p@llm.example", "nonsense"])
def test_an_address_that_no_request_may_go_to_is_refused(ada, address):
    refused(submit(ada, add("provider"), name="Acme", slug="acme", base_url=address))
    assert not Provider.objects.exists()


def origins(*values: str, initial: int = 0) -> dict[str, str]:
    rows = {f"origins-{number}-origin": value for number, value in enumerate(values)}
    return rows | {"origins-TOTAL_FORMS": str(len(values)), "origins-INITIAL_FORMS": str(initial)}


def test_a_credential_goes_to_a_new_place_only_with_the_secret_typed_again(ada):
    typed = {"name": "Shop", "slug": "shop", "secret": SECRET} | origins("HTTPS://Shop.example:443")
    saved(submit(ada, add("credential"), **typed))
    credential = Credential.objects.get()
    assert [row.origin for row in credential.origins.all()] == ["https://shop.example"]
    more = origins("https://shop.example", "https://evil.example", initial=1)
    assert "enter the secret again" in refused(submit(ada, change(credential), **more))
    assert "enter the secret again" in refused(
        submit(ada, change(credential), **origins("https://evil.example", initial=1))
    )
    saved(submit(ada, change(credential), secret=SECRET, **more))
    assert credential.origins.count() == 2
    assert SECRET not in text(ada.get(change(credential)))


@pytest.mark.parametrize("origin", ["https://shop.example/path", "http://shop.example", "shop.example", "https://"])
def test_an_origin_is_a_scheme_a_host_and_a_port(ada, origin):
    refused(submit(ada, add("credential"), name="Shop", slug="shop", secret=SECRET, **origins(origin)))
    assert not Credential.objects.exists()


def test_the_same_origin_twice_in_other_letters_is_an_error_in_words(ada):
    twice = origins("https://shop.example", "https://SHOP.example:443")
    assert "duplicate" in refused(submit(ada, add("credential"), name="Shop", slug="shop", secret=SECRET, **twice))


HTTP = {
    "name": "Order status",
    "slug": "order_status",
    "kind": "http",
    "http__url": "https://shop.example/orders/{order_id}",
    "http__parameters-0-name": "order_id",
    "http__parameters-0-in": "path",
    "http__parameters-0-required": "on",
    "http__parameters-0-description": "The order's number",
}


def test_a_tools_settings_are_a_form_and_stored_as_a_bundle_writes_them(ada):
    saved(submit(ada, add("tool"), **HTTP))
    tool = Tool.objects.get()
    row = {"name": "order_id", "in": "path", "required": True, "description": "The order's number"}
    assert tool.settings == {"url": HTTP["http__url"], "parameters": [row]}
    shown = fields(ada.get(change(tool)))
    assert shown["http__parameters-0-name"] == "order_id"
    saved(submit(ada, change(tool), description="Looks up an order."))
    tool.refresh_from_db()
    assert tool.settings == {"url": HTTP["http__url"], "parameters": [row]}


def test_only_the_chosen_kinds_settings_are_checked_and_kept(ada):
    saved(submit(ada, add("tool"), **HTTP | {"kind": "clock", "clock__timezone": "Europe/Berlin", "http__url": ""}))
    assert Tool.objects.get().settings == {"timezone": "Europe/Berlin"}


def test_wrong_settings_are_named_at_their_field_and_nothing_typed_is_lost(ada):
    page = submit(ada, add("tool"), **HTTP | {"http__url": "", "http__parameters-0-name": "", "name": "Lost?"})
    source = refused(page)
    assert "Row 1, Name: This field is required." in source
    assert "http__url" in page.context["adminform"].form.errors
    assert fields(page)["http__parameters-0-description"] == "The order's number"
    assert fields(page)["name"] == "Lost?"


def test_a_document_is_pasted_or_uploaded_and_can_be_found(ada):
    handbook = world.memory("Handbook")
    saved(submit(ada, add("document"), memory=handbook.pk, title="Leave", text=world.LEAVE))
    upload = SimpleUploadedFile("travel.md", ("\ufeff" + world.TRAVEL).encode())
    saved(submit(ada, add("document"), memory=handbook.pk, upload=upload))
    assert [(row.title, row.state) for row in Document.objects.order_by("title")] == [
        ("Leave", "ready"),
        ("travel", "ready"),
    ]
    page = ada.get(reverse("admin:agents_admin_memory_try_search", args=[handbook.pk]), {"q": "annual leave"})
    assert "28 days of annual leave" in text(page)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.pdf", b"%PDF", "Only .txt and .md files"),
        ("a.txt", "naïve".encode("latin-1"), "not UTF-8 text (byte 3"),
        ("a.txt", b"x" * 5_000_001, "larger than 5 MB"),
    ],
)
def test_a_file_that_is_no_text_is_refused_in_words(ada, name, content, words):
    handbook = world.memory("Handbook")
    upload = SimpleUploadedFile(name, content)
    assert words in refused(submit(ada, add("document"), memory=handbook.pk, title="A", upload=upload))


def test_a_widget_shows_its_snippet_and_says_when_visitors_cannot_use_the_agent(ada):
    inner = world.agent("Inner", hidden=True)
    page = submit(ada, add("widget"), name="Shop", agent=inner.pk, **origins("http://localhost:9000"))
    saved(page)
    widget = Widget.objects.get()
    shown = text(ada.get(change(widget)))
    assert f'data-widget="{widget.pk}"' in shown
    assert "Visitors can't use Inner yet" in shown
    assert "Inner is hidden" in shown


def test_a_widgets_colour_cannot_carry_css(ada):
    open_agent = world.agent("Open", audience="everyone")
    page = submit(ada, add("widget"), name="W", agent=open_agent.pk, accent="red;}", **origins("https://a.example"))
    assert "Write a colour" in refused(page)
