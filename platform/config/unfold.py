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


# Around --accent of css/base.css, which is 600. 500 is for links in the dark: light enough to be read there.
_INDIGO = {
    "50": "oklch(96.2% .018 272.314)",
    "100": "oklch(93% .034 272.788)",
    "200": "oklch(87% .065 274.039)",
    "300": "oklch(78.5% .115 274.713)",
    "400": "oklch(67.3% .182 276.935)",
    "500": "oklch(68% .17 277)",
    "600": "oklch(51.1% .262 276.966)",
    "700": "oklch(45.7% .24 277.023)",
    "800": "oklch(39.8% .195 277.366)",
    "900": "oklch(35.9% .144 278.697)",
    "950": "oklch(25.7% .09 281.288)",
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Roster",
    "SITE_HEADER": "Roster",
    "SITE_SUBHEADER": "Agents and who they ask",
    "SITE_SYMBOL": "groups",
    "DASHBOARD_CALLBACK": "config.dashboard.first_page",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda _: static("img/icon.svg")}],
    "SITE_URL": "/chat/",
    "COLORS": {"primary": _INDIGO},
    "STYLES": [lambda _: static("css/admin.css")],
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
