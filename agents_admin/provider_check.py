"""Whether a provider can be reached and takes its key: asked for its list of models, answered in words."""

from dataclasses import dataclass

from asgiref.sync import async_to_sync
from django.conf import settings

from agents_admin import egress
from agents_admin.kinds import PROVIDER_KINDS
from agents_admin.models import Provider
from agents_admin.text import BadJson, read_json

_CAPS = egress.Caps(seconds=10, bytes=5_000_000, redirects=0)


@dataclass(frozen=True, slots=True)
class Finding:
    """`words` are for the person who set the provider up; `ok`: it can be used as it is."""

    ok: bool
    words: str


def check_provider(provider: Provider) -> Finding:
    """Changes nothing. Takes 10 seconds at most."""
    kind = PROVIDER_KINDS[provider.kind]
    if not kind.needs_base_url:
        return Finding(True, "This provider needs no address, no key and no network: there is nothing to test.")
    names = list(provider.models.filter(enabled=True).values_list("model_id", flat=True))
    try:
        answer = async_to_sync(_ask)(provider.base_url or kind.default_base_url, provider.api_key)
    except (egress.EgressRefused, egress.FetchError) as error:
        return Finding(False, f"{error.message} Check the address.")
    return read_answer(answer, names, keyed=bool(provider.api_key))


async def _ask(base_url: str, api_key: str) -> egress.Fetched:
    async with egress.client(egress.Policy(egress.parse_allow(",".join(settings.EGRESS_ALLOW)))) as client:
        request = client.build_request("GET", egress.check_url(base_url.rstrip("/") + "/models"))
        secret = egress.SecretHeaders(_headers(api_key), frozenset({egress.origin_of(request.url)}))
        return await egress.fetch(client, request, secret, _CAPS)


def _headers(api_key: str) -> dict[str, str]:
    if not api_key:
        return {}
    if not api_key.isascii() or not api_key.isprintable():
        raise egress.EgressRefused("The key holds characters that no key has. Copy it again.")
    return {"Authorization": f"Bearer {api_key}"}


def read_answer(answer: egress.Fetched, names: list[str], *, keyed: bool) -> Finding:
    """What an answer of `/models` means for a provider whose models are called `names`."""
    match answer.status:
        case 200:
            return _read_list(answer.body, names, keyed=keyed)
        case 401 | 403:
            what = "doesn't accept the key. Enter it again" if keyed else "asks for a key. Enter one"
            return Finding(False, f"The provider can be reached but {what}.")
        case 404:
            return Finding(
                False, "There is a server, but no list of models there. Check the address; often it ends in /v1."
            )
        case 429:
            return Finding(False, "The provider can be reached but says: too many requests, or nothing left to spend.")
        case status if status >= 500:
            return Finding(
                False, f"The provider can be reached but has a problem of its own (status {status}). Try later."
            )
        case status:
            return Finding(False, f"The provider gave an unexpected answer (status {status}). Check the address.")


def _read_list(body: bytes, names: list[str], *, keyed: bool) -> Finding:
    try:
        content = read_json(body)
    except BadJson:
        content = None
    listed = content.get("data") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        words = "There is a server, but its answer is not a list of models. Check the address; often it ends in /v1."
        return Finding(False, words)
    known = {str(entry.get("id")) for entry in listed if isinstance(entry, dict)}
    lead = (
        "The provider can be reached and accepts the key"
        if keyed
        else "The provider can be reached and asks for no key"
    )
    found = f"{lead}. It lists {len(listed)} model{'' if len(listed) == 1 else 's'}."
    missing = [name for name in names if name not in known]
    if missing:
        return Finding(False, f"{found} Not among them: {', '.join(missing)}. Check how the model's name is written.")
    return Finding(True, found)
