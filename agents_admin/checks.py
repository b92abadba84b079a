"""What is wrong with the rows, in words, with the row and what to do about it. Only reads."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.db.models import F, Model, Q
from django.db.models.functions import Length

from agents_admin import graph
from agents_admin.egress import EgressRefused, check_url, origin_of, parse_origin
from agents_admin.kinds import PROVIDER_KINDS, TOOL_KINDS, HttpSettings, SettingsError, parse
from agents_admin.models import (
    Agent,
    AgentMemory,
    AgentTool,
    ApiKey,
    Credential,
    Delegation,
    Document,
    Memory,
    Provider,
    Tool,
    Widget,
)
from agents_admin.models import Model as ModelRow
from agents_admin.provider_check import check_provider


@dataclass(frozen=True, slots=True)
class Finding:
    """`row` names the row as people know it, `problem` says what is wrong, `fix` what to do."""

    row: str
    problem: str
    fix: str


def findings() -> list[Finding]:
    """Every problem of the rows. Asks providers that are in use for their models: up to ten seconds for each."""
    return [finding for check in CHECKS for finding in check()]


def _row(row: Model) -> str:
    kind = str(row._meta.verbose_name)
    return f"{kind[:1].upper()}{kind[1:]} “{row}”"


def _agents() -> Iterator[Finding]:
    if not Agent.objects.exists():
        yield Finding("Agents", "there are none", "Make one in the admin, or apply a bundle.")
    for agent in Agent.objects.filter(enabled=True).select_related("model__provider"):
        for part in (agent.model, agent.model.provider):
            if not part.enabled:
                fix = "Switch it on, or give the agent another model."
                yield Finding(_row(agent), f"its {part._meta.verbose_name} “{part}” is switched off", fix)
        if agent.hidden and not agent.delegated_by.filter(enabled=True).exists():
            fix = "Show it to people, or put it on the roster of another agent."
            yield Finding(_row(agent), "it is hidden and on nobody's roster, so nobody can use it", fix)


def _models() -> Iterator[Finding]:
    rows = ModelRow.objects.filter(enabled=True, fallback__isnull=False).filter(
        Q(fallback__enabled=False) | Q(fallback__provider__enabled=False)
    )
    for model in rows.select_related("fallback"):
        yield Finding(
            _row(model), f"its fallback “{model.fallback}” is switched off", "Switch it on, or choose another."
        )


def _providers() -> Iterator[Finding]:
    used = Provider.objects.filter(enabled=True, models__enabled=True, models__agents__enabled=True).distinct()
    for provider in used:
        if provider.kind not in PROVIDER_KINDS:
            yield Finding(_row(provider), f"there is no kind “{provider.kind}”", "Choose one of the kinds.")
            continue
        found = check_provider(provider)
        if not found.ok:
            yield Finding(_row(provider), found.words, "Correct it in the admin; “Test connection” there tries again.")


def _secrets() -> Iterator[Finding]:
    fix = "Enter it again, or put the old key back into FIELD_ENCRYPTION_KEYS."
    for provider in Provider.objects.annotate(stored=Length("api_key")):
        if provider.stored and not provider.api_key:
            yield Finding(_row(provider), "its API key can't be decrypted", fix)
    for credential in Credential.objects.annotate(stored=Length("secret")).filter(tools__isnull=False).distinct():
        if credential.stored and not credential.secret:
            yield Finding(_row(credential), "its secret can't be decrypted", fix)
        elif not credential.stored:
            yield Finding(_row(credential), "it has no secret", "Enter the secret.")


def _tools() -> Iterator[Finding]:
    for tool in Tool.objects.filter(enabled=True).select_related("credential"):
        try:
            settings = parse(tool.kind, tool.settings)
        except SettingsError as error:
            yield Finding(_row(tool), f"{error.field}: {error.message}", "Correct the tool's settings.")
            continue
        if isinstance(settings, HttpSettings):
            yield from _address(tool, settings)
        if tool.credential and not TOOL_KINDS[tool.kind].uses_credential:
            yield Finding(_row(tool), "its kind uses no credential, but it has one", "Take the credential away.")


def _address(tool: Tool, settings: HttpSettings) -> Iterator[Finding]:
    try:
        origin = origin_of(check_url(settings.url.partition("{")[0]))
    except EgressRefused as error:
        yield Finding(_row(tool), error.message, "Correct the address.")
        return
    if tool.credential:
        try:
            origins = [parse_origin(row.origin) for row in tool.credential.origins.all()]
        except EgressRefused as error:
            yield Finding(_row(tool.credential), error.message, "Correct the places it may be sent to.")
            return
        if origin not in origins:
            fix = f"Add {origin} to the credential's origins, or choose another credential."
            yield Finding(_row(tool), f"its credential “{tool.credential}” may not be sent to {origin}", fix)


def _memories() -> Iterator[Finding]:
    for memory in Memory.objects.filter(enabled=True, agents__enabled=True).distinct():
        if not memory.documents.filter(state=Document.State.READY).exists():
            yield Finding(_row(memory), "there is no document in it that can be searched", "Add a document.")
    for document in Document.objects.exclude(state=Document.State.READY).select_related("memory"):
        problem = document.reason or "it is still waiting to be read"
        row = f"Document “{document}” in “{document.memory}”"
        yield Finding(row, problem, "Save it again, or put other text into it.")


def _switched_off() -> Iterator[Finding]:
    """What an agent has on paper only."""
    for has_tool in AgentTool.objects.filter(agent__enabled=True, tool__enabled=False).select_related("agent", "tool"):
        yield _useless(has_tool.agent, f"its tool “{has_tool.tool}”")
    lacks = AgentMemory.objects.filter(agent__enabled=True, memory__enabled=False).select_related("agent", "memory")
    for has_memory in lacks:
        yield _useless(has_memory.agent, f"its memory “{has_memory.memory}”")
    lines = Delegation.objects.filter(enabled=True, coordinator__enabled=True).select_related("coordinator", "delegate")
    for line in lines.filter(delegate__enabled=False):
        yield _useless(line.coordinator, f"its delegate “{line.delegate}”")
    for line in lines.filter(when_to_use="", delegate__description="", delegate__enabled=True):
        problem = f"nothing tells it when to ask its delegate “{line.delegate}”"
        yield Finding(_row(line.coordinator), problem, "Describe the delegate, or say in the roster when to use it.")


def _useless(agent: Agent, what: str) -> Finding:
    return Finding(_row(agent), f"{what} is switched off", "Switch it on, or take it away from the agent.")


def _circles() -> Iterator[Finding]:
    """Saving refuses them; rows that came another way are found here, each circle once."""
    edges: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for line in Delegation.objects.select_related("coordinator", "delegate"):
        edges.setdefault(line.coordinator_id, []).append(line.delegate_id)
        names |= {line.coordinator_id: str(line.coordinator), line.delegate_id: str(line.delegate)}
    told: set[int] = set()
    for agent in edges:
        path = graph.find_path(edges, agent, agent)
        if path and told.isdisjoint(path):
            told.update(path)
            circle = " → ".join(names[node] for node in path)
            yield Finding(
                f"Agent “{names[agent]}”", f"its delegation goes round in a circle: {circle}", "Remove a line."
            )


def _audiences() -> Iterator[Finding]:
    nobody = Q(enabled=True, audience="chosen", groups__isnull=True, users__isnull=True)
    for rows in (Agent.objects.filter(nobody), Tool.objects.filter(nobody), Memory.objects.filter(nobody)):
        for row in rows:
            yield Finding(_row(row), "it is for chosen people, but nobody is chosen", "Choose groups or people.")


def _widgets() -> Iterator[Finding]:
    for widget in Widget.objects.filter(enabled=True).select_related("agent"):
        agent = widget.agent
        reasons = {
            "is switched off": not agent.enabled,
            "is hidden": agent.hidden,
            "is not for everyone, and visitors don't sign in": agent.audience != "everyone",
        }
        for reason, holds in reasons.items():
            if holds:
                fix = "Change that, or give the widget another agent."
                yield Finding(_row(widget), f"its agent “{agent}” {reason}", fix)
        if not widget.origins.exists():
            yield Finding(_row(widget), "no site may show it", "Add the site that it is for.")


def _keys() -> Iterator[Finding]:
    live = ApiKey.objects.filter(enabled=True)
    for key in live.filter(limited=True, agents__isnull=True):
        yield Finding(_row(key), "the agents it was limited to are gone", "Choose agents for it, or switch it off.")
    for key in live.filter(user__is_active=False).annotate(username=F("user__username")):
        yield Finding(_row(key), f"its user {key.username} is switched off", "Switch the key off too.")


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _agents,
    _models,
    _providers,
    _secrets,
    _tools,
    _memories,
    _switched_off,
    _circles,
    _audiences,
    _widgets,
    _keys,
)
