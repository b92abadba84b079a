"""The world of the tests: the people and agents of a small company, and builders for what a test needs besides.

Ada is the superuser, Grace is staff, Linus and Maya are colleagues who sign in. Concierge asks HR desk and
Analyst; HR desk asks Librarian, who searches the Employee handbook; Analyst has calculator and clock.
"""

from dataclasses import dataclass
from functools import cache

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, User

from agents_admin.actor import Actor
from agents_admin.ingest import ingest
from agents_admin.models import (
    Agent,
    AgentMemory,
    AgentTool,
    ApiKey,
    Delegation,
    Document,
    Memory,
    Model,
    Provider,
    Tool,
    Widget,
    WidgetOrigin,
)

PASSWORD = "correct horse battery staple"

LEAVE = """# Leave

## Annual leave

Every employee has 28 days of annual leave a year. Ask your manager two weeks ahead.

## Sick leave

Call your team before ten in the morning. A doctor's note is needed from the fourth day on.
"""
TRAVEL = """# Travel

Book trains in second class. A taxi is paid when there is no bus. Hand in receipts within thirty days.
"""


@dataclass(frozen=True)
class House:
    ada: User
    grace: User
    linus: User
    maya: User
    provider: Provider
    model: Model
    concierge: Agent
    hr_desk: Agent
    librarian: Agent
    analyst: Agent
    handbook: Memory
    calculator: Tool
    clock: Tool


@cache
def _password_hash() -> str:
    """Made once: hashing takes longer than the rest of the world together."""
    return make_password(PASSWORD)


def person(username: str, **fields: object) -> User:
    """A user who signs in with PASSWORD; the same row when asked again."""
    values = {"first_name": username.capitalize(), "email": f"{username}@example.org", "password": _password_hash()}
    return User.objects.get_or_create(username=username, defaults=values | fields)[0]


def ada() -> User:
    return person("ada", is_superuser=True, is_staff=True)


def grace() -> User:
    """Staff without any model permission: a test gives her what it needs."""
    return person("grace", is_staff=True)


def linus() -> User:
    return person("linus")


def maya() -> User:
    return person("maya")


def group(name: str, *members: User) -> Group:
    made = Group.objects.get_or_create(name=name)[0]
    made.user_set.add(*members)
    return made


def actor_of(user: User, **fields: object) -> Actor:
    """What `web.access` makes of a signed-in user, on the channel `chat` unless said otherwise."""
    values = {"channel": "chat", "user_id": user.pk}
    return Actor(**(values | fields))  # type: ignore[arg-type]


def provider(slug: str = "offline", **fields: object) -> Provider:
    """The offline provider; with `kind="openai", base_url=…` one that speaks to a server."""
    values = {"name": slug.capitalize(), "kind": "offline"} | fields
    return Provider.objects.get_or_create(slug=slug, defaults=values)[0]


def model(slug: str = "small", **fields: object) -> Model:
    values = {"name": slug.capitalize(), "model_id": slug} | fields
    values.setdefault("provider", provider())
    return Model.objects.get_or_create(slug=slug, defaults=values)[0]


def agent(name: str, **fields: object) -> Agent:
    """An agent for signed-in people on the model `small`; its slug is made from the name."""
    values = {"slug": _slug(name)} | fields
    values.setdefault("model", model())
    return Agent.objects.create(name=name, **values)


def tool(kind: str, **fields: object) -> Tool:
    values = {"name": kind.capitalize(), "slug": _slug(str(fields.get("name", kind)))} | fields
    return Tool.objects.create(kind=kind, **values)


def memory(name: str, documents: dict[str, str] | None = None, **fields: object) -> Memory:
    """A knowledge memory with documents (title → text) ready to be searched."""
    made = Memory.objects.create(name=name, **({"slug": _slug(name)} | fields))
    for title, text in (documents or {}).items():
        document(made, title, text)
    return made


def document(of: Memory, title: str, text: str) -> Document:
    made = Document.objects.create(memory=of, title=title, text=text)
    ingest(made)
    return made


def give(of: Agent, *things: Tool | Memory, **fields: object) -> None:
    """Give an agent tools and memories."""
    for order, thing in enumerate(things):
        if isinstance(thing, Tool):
            AgentTool.objects.create(agent=of, tool=thing, order=order, **fields)
        else:
            AgentMemory.objects.create(agent=of, memory=thing, order=order, **fields)


def delegate(coordinator: Agent, to: Agent, **fields: object) -> Delegation:
    """A line of the coordinator's roster, after those it has."""
    values = {"order": coordinator.roster.count()} | fields
    return Delegation.objects.create(coordinator=coordinator, delegate=to, **values)


def api_key(user: User, *agents: Agent, **fields: object) -> str:
    """A new key of the user, limited to `agents` when there are any; the key itself, as a program sends it."""
    row = ApiKey(**({"name": f"{user.username}'s program"} | fields), user=user, limited=bool(agents))
    key = row.renew()
    row.save()
    row.agents.set(agents)
    return key


def widget(of: Agent, *origins: str, **fields: object) -> Widget:
    made = Widget.objects.create(agent=of, **({"name": f"{of.name} on our site"} | fields))
    for origin in origins or ("https://shop.example",):
        WidgetOrigin.objects.create(widget=made, origin=origin)
    return made


def house() -> House:
    """Everybody, and the agents of the demo in small; everything is for everyone."""
    concierge = agent("Concierge", audience="everyone", description="The first contact for employees.")
    hr_desk = agent("HR desk", audience="everyone", description="Answers questions about work, leave and travel.")
    librarian = agent("Librarian", audience="everyone", description="Looks things up in the handbook.")
    analyst = agent("Analyst", audience="everyone", description="Calculates and knows the time.")
    handbook = memory("Employee handbook", {"Leave": LEAVE, "Travel": TRAVEL}, slug="handbook", audience="everyone")
    calculator = tool("calculator", audience="everyone", description="Works out arithmetic.")
    clock = tool("clock", audience="everyone", description="Tells the date and time.")
    give(librarian, handbook)
    give(analyst, calculator, clock)
    delegate(concierge, hr_desk, when_to_use="Questions about leave, travel and working here.")
    delegate(concierge, analyst, when_to_use="Arithmetic, dates and times.")
    delegate(hr_desk, librarian, when_to_use="What the handbook says.")
    return House(
        ada=ada(),
        grace=grace(),
        linus=linus(),
        maya=maya(),
        provider=provider(),
        model=model(),
        concierge=concierge,
        hr_desk=hr_desk,
        librarian=librarian,
        analyst=analyst,
        handbook=handbook,
        calculator=calculator,
        clock=clock,
    )


def _slug(name: str) -> str:
    return name.lower().replace(" ", "-")
