"""The rows that people edit: saved as typed, refused in words, secrets never shown."""

from itertools import pairwise

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from agents_admin.models import Agent, ApiKey, Credential, Delegation, Document, Memory, Model, Provider, Tool, Widget
from agents_admin.models.access import hash_key
from tests import world
from tests.admin_page import fields, refused, saved, submit, text

pytestmark = pytest.mark.django_db
SECRET = "sk-canary-9f27c1"


def add(model: str) -> str:
    return reverse(f"admin:agents_admin_{model}_add")


def change(row) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


@pytest.fixture
def ada(client):
    client.force_login(world.ada(), "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def grace(client):
    """Staff with every right on the rows, but not a superuser."""
    user = world.grace()
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label__in=("agents_admin", "auth", "runtime"))
    )
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    client.user = user
    return client


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


def test_a_key_is_shown_once_and_stored_as_a_hash(ada):
    page = submit(ada, add("apikey"), name="Reports", user=world.linus().pk)
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    key, row = page.context["key"], ApiKey.objects.get()
    assert key in text(page)
    assert (row.digest, row.user) == (hash_key(key), world.linus())
    assert key not in text(ada.get(change(row)))
    assert key not in str(LogEntry.objects.values()) + str(dict(ada.session)) + str(ada.cookies)


def test_staff_make_keys_for_themselves_only_and_see_no_others(grace):
    world.api_key(world.linus())
    assert "linus" not in text(grace.get(reverse("admin:agents_admin_apikey_changelist")))
    page = grace.post(add("apikey"), {"name": "Mine", "user": world.ada().pk, "enabled": "on"})
    assert page.status_code == 200
    assert ApiKey.objects.get(name="Mine").user == grace.user
    foreign = ApiKey.objects.exclude(name="Mine").get()
    assert grace.get(change(foreign)).status_code == 302
    assert grace.post(change(foreign), {"name": "Taken"}).status_code == 302
    assert not ApiKey.objects.filter(name="Taken").exists()


def test_staff_cannot_give_themselves_rights(grace):
    rights = {"is_superuser": "on", "is_staff": "on", "username": "grace"}
    assert grace.post(change(grace.user), rights).status_code == 403
    grace.post(change(world.linus()), rights | {"username": "linus"})
    assert not world.linus().is_superuser
    password = reverse("admin:auth_user_password_change", args=[world.ada().pk])
    assert grace.post(password, {"password1": "x" * 20, "password2": "x" * 20}).status_code == 403
    assert grace.get(reverse("admin:auth_group_add")).status_code == 403


def test_staff_without_rights_find_nothing(client):
    house = world.house()
    client.force_login(house.grace, "django.contrib.auth.backends.ModelBackend")
    for model in ("agent", "provider", "tool", "apikey"):
        assert client.get(reverse(f"admin:agents_admin_{model}_changelist")).status_code == 403
    assert client.post(reverse("admin:agents_admin_agent_switch", args=[house.analyst.pk])).status_code == 403


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


HOSTILE = "a\0b {{x}} {% include 'x' %} {name} <script>alert(1)</script> שלום \u202e 🦉"


@pytest.mark.parametrize("model", ["agent", "credential", "document", "memory", "model", "provider", "tool", "widget"])
def test_hostile_text_in_every_field_is_saved_or_refused_in_words(ada, model):
    world.agent("Someone", slug="someone")
    filled = fields(ada.get(add(model)))
    own = [name for name in filled if not name.endswith("_FORMS") and name != "csrfmiddlewaretoken"]
    hostile = [dict.fromkeys(filled, HOSTILE), dict.fromkeys(own, HOSTILE), *({name: HOSTILE} for name in own)]
    for changes in hostile:
        answer = ada.post(add(model), filled | changes)
        assert answer.status_code in (200, 302), changes
        assert "<script>alert(1)" not in answer.content.decode()


def test_a_megabyte_is_kept_where_it_belongs_and_refused_elsewhere(ada):
    agent, megabyte = world.agent("Someone"), "x" * 1_000_000
    saved(submit(ada, change(agent), instructions=megabyte))
    agent.refresh_from_db()
    assert agent.instructions == megabyte
    assert "at most 100 characters" in refused(submit(ada, change(agent), name=megabyte))


def test_hostile_text_reaches_the_row_as_typed(ada):
    agent = world.agent("Someone")
    typed = "{{x}} {name} <script>alert(1)</script> שלום 🦉 a\0b"
    saved(submit(ada, change(agent), instructions=typed, greeting=typed))
    agent.refresh_from_db()
    assert agent.instructions == typed.replace("\0", "\ufffd")
    assert "<script>alert(1)" not in ada.get(change(agent)).content.decode()


def roster(*delegates, **more: str) -> dict[str, str]:
    rows = {"roster-TOTAL_FORMS": str(len(delegates)), "roster-INITIAL_FORMS": "0"}
    for number, delegate in enumerate(delegates):
        rows |= {f"roster-{number}-delegate": str(delegate.pk), f"roster-{number}-context": "task"}
        rows |= {f"roster-{number}-enabled": "on", f"roster-{number}-order": str(number)}
    return rows | more


def test_an_agent_is_made_with_tools_and_a_roster(ada):
    house = world.house()
    tools = {"agent_tools-TOTAL_FORMS": "1", "agent_tools-0-tool": str(house.clock.pk), "agent_tools-0-order": "0"}
    typed = {"name": "Porter", "slug": "porter", "model": house.model.pk} | tools | roster(house.hr_desk, house.analyst)
    saved(submit(ada, add("agent"), **typed))
    porter = Agent.objects.get(slug="porter")
    assert [row.tool for row in porter.agent_tools.all()] == [house.clock]
    assert [row.delegate for row in porter.roster.all()] == [house.hr_desk, house.analyst]


def test_a_circle_is_refused_at_the_row_with_its_path(ada):
    house = world.house()
    page = submit(ada, change(house.librarian), name="Renamed", **roster(house.concierge))
    assert "Librarian → Concierge → HR desk → Librarian" in refused(page)
    house.librarian.refresh_from_db()
    assert house.librarian.name == "Librarian"
    assert fields(page)["name"] == "Renamed"


def test_a_new_agent_above_a_path_of_five_is_refused_when_it_is_saved(ada):
    chain = [world.agent(f"A{number}") for number in range(6)]
    for upper, lower in pairwise(chain):
        world.delegate(upper, lower)
    model = world.model()
    typed = {"name": "Top", "slug": "top", "model": model.pk} | roster(world.agent("Free"), chain[0])
    page = submit(ada, add("agent"), **typed)
    assert "Top → A0 → A1 → A2 → A3 → A4 → A5" in refused(page)
    assert not Agent.objects.filter(slug="top").exists()
    assert page.context["inline_admin_formsets"][2].formset.forms[1].errors


def test_a_copy_has_the_same_tools_memories_and_roster_and_is_off(ada):
    house = world.house()
    url = reverse("admin:agents_admin_agent_copy", args=[house.concierge.pk])
    assert ada.get(url).status_code == 200
    assert Agent.objects.count() == 4
    ada.post(url, {"_form_submitted": "on"})
    copy = Agent.objects.get(slug="concierge-copy")
    assert not copy.enabled
    assert [row.delegate for row in copy.roster.all()] == [row.delegate for row in house.concierge.roster.all()]


def test_an_agent_is_switched_by_a_post_alone(ada):
    house = world.house()
    url = reverse("admin:agents_admin_agent_switch", args=[house.analyst.pk])
    ada.get(url)
    house.analyst.refresh_from_db()
    assert house.analyst.enabled
    ada.post(url, {"_form_submitted": "on"})
    house.analyst.refresh_from_db()
    assert not house.analyst.enabled


def test_deleting_an_agent_says_what_goes_with_it(ada):
    house = world.house()
    page = text(ada.get(reverse("admin:agents_admin_agent_delete", args=[house.analyst.pk])))
    assert "Concierge → Analyst" in page
    assert Delegation.objects.filter(delegate=house.analyst).exists()


@pytest.mark.parametrize("bad", ["abc", "99999999999999999999999", "%00"])
def test_an_address_of_no_row_is_not_found(ada, bad):
    for action in ("talk", "copy", "switch"):
        answer = ada.post(f"/admin/agents_admin/agent/{bad}/{action}/", {"_form_submitted": "on"})
        assert answer.status_code == 404
    assert ada.get(f"/admin/agents_admin/agent/{bad}/change/").status_code == 302
    chosen = {"action": "delete_selected", "_selected_action": bad}
    assert ada.post("/admin/agents_admin/agent/", chosen).status_code in (200, 302)


@pytest.mark.parametrize(
    "address",
    [
        "/admin/agents_admin/agent/?q=%00",
        "/admin/agents_admin/agent/?model__id__exact=%00",
        "/admin/agents_admin/agent/?enabled__exact=x",
        "/admin/agents_admin/agent/?o=9999.-9&p=99999999999999999999",
        "/admin/agents_admin/agent/?nonsense__x=1",
        "/admin/runtime/run/?created_at__gte=%00",
        "/admin/runtime/run/?created_at__gte=soon",
        "/admin/agents_admin/document/add/?memory=x",
        "/admin/agents_admin/document/add/?memory=99999999999999999999",
        "/admin/autocomplete/?app_label=agents_admin&model_name=agenttool&field_name=tool&term=%00",
        "/admin/autocomplete/?app_label=agents_admin&model_name=agenttool&field_name=tool&page=x",
        "/admin/search/?s=%00",
        "/admin/search/?s=agent&page=x",
        "/admin/search/?s=agent&page=99",
        "/admin/auth/user/?q=%00",
    ],
)
def test_a_strange_address_is_answered(ada, address):
    assert ada.get(address).status_code < 500
