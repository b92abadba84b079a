"""The admin's look and its sidebar."""

from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy


def _listed(title: str, icon: str, model: str) -> dict[str, Any]:
    """One line of the sidebar: `model` is "app.model"; seen by those who may view that model."""
    app, name = model.split(".")

    def allowed(request: HttpRequest) -> bool:
        return request.user.has_perm(f"{app}.view_{name}")

    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{app}_{name}_changelist"),
        "permission": allowed,
    }


def _group(title: str, *items: dict[str, Any]) -> dict[str, Any]:
    return {"title": title, "separator": True, "items": list(items)}


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Roster",
    "SITE_HEADER": "Roster",
    "SITE_SUBHEADER": "Agents and who they ask",
    "SITE_SYMBOL": "groups",
    "DASHBOARD_CALLBACK": "config.dashboard.first_page",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda _: static("img/icon.svg")}],
    "SITE_URL": "/chat/",
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "SIDEBAR": {
        "show_search": True,
        "show_all_applications": False,
        "navigation": [
            _group(
                "People configure",
                _listed("Agents", "support_agent", "agents_admin.agent"),
                _listed("Tools", "build", "agents_admin.tool"),
                _listed("Memories", "menu_book", "agents_admin.memory"),
                _listed("Documents", "description", "agents_admin.document"),
            ),
            _group(
                "Connections",
                _listed("Providers", "dns", "agents_admin.provider"),
                _listed("Models", "neurology", "agents_admin.model"),
                _listed("Credentials", "key", "agents_admin.credential"),
            ),
            _group(
                "Access",
                _listed("API keys", "vpn_key", "agents_admin.apikey"),
                _listed("Widgets", "widgets", "agents_admin.widget"),
                _listed("Users", "person", "auth.user"),
                _listed("Groups", "group", "auth.group"),
            ),
            _group(
                "What happened",
                _listed("Runs", "account_tree", "runtime.run"),
                _listed("Threads", "forum", "runtime.thread"),
            ),
        ],
    },
}
