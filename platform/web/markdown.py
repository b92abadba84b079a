"""The one renderer of text that models and tools wrote: Markdown in, safe HTML out (security rule 6)."""

from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from web.bidi import contained

LONGEST = 40_000
"""Characters. A longer text is shown as it is: parsing it would hold up everybody else's stream."""

_ALLOWED_TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "a", "code", "pre", "blockquote"),
    *("ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td"),
}
# No `class` and no `title`: attribute values would be the only place where a `<` survives (see _dressed).
_ALLOWED_ATTRIBUTES: dict[str, set[str]] = {
    "*": set(),
    "a": {"href"},
    "ol": {"start"},
    "th": {"align"},
    "td": {"align"},
}
_COPY = '<button type="button" class="copy" aria-label="Copy code">Copy</button>'


@lru_cache(maxsize=1024)
def to_html(text: str) -> SafeString:
    """Links name their host, images are left out in favour of their description, nothing is loaded from elsewhere."""
    if len(text) > LONGEST:
        return mark_safe(f'<div class="plain">{escape(contained(text))}</div>')  # noqa: S308 - escaped on this line
    clean = nh3.clean(
        _MARKDOWN.render(text),
        tags=_ALLOWED_TAGS,
        attributes=_ALLOWED_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        url_relative="deny",
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}, "ul": {"dir": "auto"}, "ol": {"dir": "auto"}},
    )
    return mark_safe(_dressed(contained(clean)))  # noqa: S308 - nh3 cleaned it


def _dressed(html: str) -> str:
    """Code gets its copy button, tables a frame that scrolls. In nh3's output a tag in the text is never literal."""
    html = html.replace("<pre>", f'<div class="code">{_COPY}<pre tabindex="0">').replace("</pre>", "</pre></div>")
    return html.replace("<table>", '<div class="wide" tabindex="0"><table>').replace("</table>", "</table></div>")


def _name_hosts(state: StateCore) -> None:
    for block in state.tokens:
        if block.type == "inline" and block.children:
            block.children = _with_hosts(block.children)
        elif block.type in {"th_open", "td_open"} and "style" in block.attrs:
            # A style attribute is against our content policy; `align` says the same.
            block.attrs = {"align": str(block.attrs["style"]).removeprefix("text-align:")}


def _with_hosts(tokens: Sequence[Token]) -> list[Token]:
    result: list[Token] = []
    opened: list[tuple[str, int]] = []
    for token in tokens:
        result.append(token)
        if token.type == "link_open":
            opened.append((str(token.attrs.get("href", "")), len(result)))
        elif token.type == "link_close" and opened:
            href, start = opened.pop()
            words = "".join(part.content for part in result[start:])
            if (place := _place(href)) and words not in {href, place}:
                result.append(Token("text", "", 0, content=f" ({place})"))
    return result


def _place(href: str) -> str:
    """What a person should know of a link before following it: the host, or the address that would get a mail."""
    try:
        parts = urlsplit(href)
        return parts.path if parts.scheme == "mailto" else (parts.hostname or "")
    except ValueError:
        return "broken link"


def _image(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: MutableMapping[str, Any],
    env: MutableMapping[str, Any],
) -> str:
    described = renderer.renderInlineAsText(tokens[index].children or [], options, env)  # type: ignore[arg-type]
    return f"[image: {escape(described)}]" if described else "[image]"


_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
_MARKDOWN.core.ruler.push("name_hosts", _name_hosts)
_MARKDOWN.add_render_rule("image", _image)
