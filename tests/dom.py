"""As much of a document as tests need: HTML in, out-of-band fragments applied as htmx does it, HTML out."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser

VOID = {"input", "br", "img", "hr", "meta", "link"}


@dataclass
class Node:
    tag: str
    attrs: dict[str, str] = field(default_factory=dict)
    children: "list[Node | str]" = field(default_factory=list)

    def walk(self) -> "Iterator[Node]":
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def by_id(self, name: str) -> "Node | None":
        return next((node for node in self.walk() if node.attrs.get("id") == name), None)

    def all(self, tag: str = "", css_class: str = "") -> "list[Node]":
        fits = lambda node: tag in {"", node.tag} and (not css_class or css_class in node.classes)  # noqa: E731
        return [node for node in self.walk() if fits(node)]

    @property
    def classes(self) -> list[str]:
        return self.attrs.get("class", "").split()

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def html(self) -> str:
        """Attributes in the order of their names, so that equal documents are equal texts."""
        inner = "".join(escape(child) if isinstance(child, str) else child.html for child in self.children)
        if not self.tag:
            return inner
        attrs = "".join(f' {name}="{escape(value)}"' for name, value in sorted(self.attrs.items()))
        return f"<{self.tag}{attrs}>{inner}</{self.tag}>"

    def apply(self, fragments: str) -> None:
        """What htmx does with a message of the stream: every top element says where its content goes."""
        tasks = []
        for fragment in parse(fragments).children:
            assert isinstance(fragment, Node), f"text beside the fragments: {fragment!r}"
            how, _, selector = fragment.attrs["hx-swap-oob"].partition(":#")
            # htmx looks for all targets before it changes anything.
            tasks.append((how, self.by_id(selector), fragment.children))
        for how, target, children in tasks:
            if target is not None:
                kept = {"innerHTML": [], "beforeend": target.children}[how]
                target.children = [*kept, *children]


def parse(html: str) -> Node:
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert len(parser.open) == 1, f"not closed: {[node.tag for node in parser.open]}"
    return parser.open[0]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        closed = self.open.pop()
        assert closed.tag == tag, f"</{tag}> closes <{closed.tag}>"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment reached the page: {data}")
