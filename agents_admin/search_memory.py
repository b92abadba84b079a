"""Full-text search in one memory, on Postgres; the statement and its values serve any connection.

A question is not a list of required words, so its terms are joined by OR and a hit is judged by *coverage*, the share
of the question's terms that the passage holds. A term that is rare in this memory, or missing from it, weighs up to
three times as much as one that is everywhere. Half must be covered: that is how a question about something that isn't
there finds nothing, although one of its words occurs. Words of the memory's own name say nothing: all of it is about
them.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from agents_admin.text import clean

LIMIT = 5
_QUERY_LENGTH = 2_000
_WORDS = 24
_WORD_LENGTH = 100
_QUOTED = re.compile('["\u201c\u201e\u201d]([^"\u201c\u201e\u201d]+)["\u201c\u201d]')
_LANGUAGES = ["english", "german", "french", "spanish", "italian", "portuguese", "dutch"]
"""Whose lists of function words are tried; the one that fits most words of the question is used."""
_ASKING = frozenset(
    """
    many much get gets got getting need needs want would could may might must shall please tell know let explain show
    find give happens happen long often whether rule rules policy policies allowed permitted information details
    say says mean means hi hello hey thanks thank
    """.split()  # noqa: SIM905 - a list of words reads best as words
)
"""English words of asking that Postgres' list of function words lacks: a question holds them, its answer does not."""

SEARCH_SQL = """
WITH word AS (
    SELECT w FROM unnest(%(words)s::text[]) AS w
), language AS (
    SELECT name FROM unnest(%(languages)s::regconfig[]) WITH ORDINALITY AS known (name, place)
    ORDER BY (SELECT count(*) FROM word WHERE to_tsvector(name, w) = '') DESC, place LIMIT 1
), term AS MATERIALIZED (
    SELECT DISTINCT lexeme,
        (quote || replace(replace(lexeme, '\\', '\\\\'), quote, quote || quote) || quote)::tsquery AS query
    FROM word, language, (SELECT chr(39) AS quote), unnest(tsvector_to_array(to_tsvector('english', w))) AS lexeme
    WHERE to_tsvector(language.name, w) <> ''
), source AS MATERIALIZED (
    SELECT d.id, d.title, m.name FROM agents_admin_document d JOIN agents_admin_memory m ON m.id = d.memory_id
    WHERE m.id = %(memory)s AND m.enabled AND d.state = 'ready'
), held AS MATERIALIZED (
    SELECT lexeme, found.id FROM term, LATERAL (  -- OFFSET keeps it apart, so that the index on terms answers it
        SELECT id, document_id FROM agents_admin_chunk WHERE terms @@ query OFFSET 0
    ) AS found
    WHERE document_id IN (SELECT id FROM source)
), size AS (  -- in a tiny memory every word would look common
    SELECT greatest(count(*), 20)::float AS n FROM agents_admin_chunk WHERE document_id IN (SELECT id FROM source)
), weighed AS MATERIALIZED (
    SELECT lexeme, CASE WHEN to_tsvector('english', (SELECT min(name) FROM source)) @@ query THEN 0.1
        ELSE 0.5 + ln(1 + (n - count(id) + 0.5) / (count(id) + 0.5)) / ln(2 * n + 2) END AS weight
    FROM size, term LEFT JOIN held USING (lexeme) GROUP BY lexeme, query, n
), covered AS MATERIALIZED (
    SELECT id, sum(weight) / (SELECT sum(weight) FROM weighed) AS coverage
    FROM held JOIN weighed USING (lexeme) GROUP BY id
), candidate AS (
    SELECT c.*, coverage FROM covered JOIN agents_admin_chunk c USING (id)
    WHERE coverage >= 0.5 AND NOT EXISTS (
        SELECT FROM unnest(%(phrases)s::text[]) AS phrase, phraseto_tsquery('english', phrase) AS exact
        WHERE numnode(exact) > 0 AND NOT c.terms @@ exact
    )
    ORDER BY coverage DESC, c.id LIMIT 50
)
SELECT source.name AS memory, title AS document, number, text, heading, coverage
    * (0.8 + 0.2 * ts_rank_cd(terms, (SELECT string_agg(query::text, ' | ')::tsquery FROM term), 1 | 32)) AS score
FROM candidate JOIN source ON source.id = document_id
WHERE coverage >= 0.7 * (SELECT max(coverage) FROM candidate)
ORDER BY score DESC, candidate.id LIMIT %(limit)s
"""
"""Rows of `Hit`, best first. Its parameters are made by `parameters`."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found. `number` counts from 1 within its document; `score` only ranks."""

    memory: str
    document: str
    number: int
    text: str
    heading: str
    score: float


def parameters(memory_id: int, query: str, limit: int = LIMIT) -> dict[str, Any]:
    """For SEARCH_SQL. Words are values, never query syntax; "quoted phrases" must occur as they are."""
    text = clean(query[:_QUERY_LENGTH])
    words = [word[:_WORD_LENGTH] for word in text.split() if any(character.isalnum() for character in word)]
    telling = [word for word in words if re.sub(r"\W", "", word).lower() not in _ASKING]
    return {
        "memory": memory_id,
        "words": list(dict.fromkeys(telling or words))[:_WORDS],
        "phrases": _QUOTED.findall(text)[:_WORDS],
        "languages": _LANGUAGES,
        "limit": limit,
    }


def hits(rows: Iterable[Sequence[object]]) -> list[Hit]:
    return [Hit(*row) for row in rows]  # type: ignore[arg-type]


def search(memory_id: int, query: str, limit: int = LIMIT) -> list[Hit]:
    """What an agent would find, for the admin and checks. Only `ready` documents of an enabled memory are searched."""
    with connection.cursor() as cursor:
        cursor.execute(SEARCH_SQL, parameters(memory_id, query, limit))
        return hits(cursor.fetchall())
