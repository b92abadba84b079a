"""python -m tests.bench [--quick] [--json FILE]

docs/performance.md says what each figure means.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from statistics import median

import orjson
import uvloop

from tests.bench import measure
from tests.bench.figures import Figure, table
from tests.bench.load import load
from tests.bench.measure import Held, Rounds
from tests.bench.product import ROSTER
from tests.bench.sides import Bench, start


@dataclass(frozen=True)
class Plan:
    """How much is measured: `seconds` of each load on each side, `hold` for each number of streams."""

    clients: tuple[int, ...] = (1, 16, 64)
    seconds: float = 2.0
    rounds: int = 3
    streams: tuple[int, ...] = (1, 100, 500)
    hold: float = 4.0
    counted: int = 7


QUICK = Plan(clients=(1, 16), seconds=0.8, rounds=1, streams=(1, 25), hold=1.2, counted=3)


def main() -> None:
    asked = argparse.ArgumentParser(prog="make bench", description="Roster beside two baselines.")
    asked.add_argument("--quick", action="store_true", help="half a minute, rough figures")
    asked.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    options = asked.parse_args()
    began, plan = time.monotonic(), QUICK if options.quick else Plan()
    with ExitStack() as stack:
        say("Starting a model server, a database, Roster and bare")
        bench = start(stack)
        figures = list(measured(bench, plan))
    print(table(figures))
    print(f"\n{time.monotonic() - began:.0f} seconds in all. {circumstances()}")
    if options.json:
        found = {"figures": [figure.as_json() for figure in figures], "circumstances": circumstances()}
        options.json.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2))


def circumstances() -> str:
    load_now = os.getloadavg()[0]
    return (
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load_now:.1f}; "
        "everything on one machine, Postgres with fsync off."
    )


def measured(bench: Bench, plan: Plan) -> Iterator[Figure]:
    yield Figure("cold start of the web process", "s", measure.cold_start(bench.database.environ("cold")))
    measure.warm_up(bench.sides)
    loads = {}
    for clients in plan.clients:
        say(f"Runs of {clients} clients")
        loads[clients] = measure.by_turns(bench.sides, "plain", clients, plan.seconds, plan.rounds, bench.database)
    yield from plain_figures(bench, plan, loads)
    say("Runs whose words come one by one")
    paced = measure.by_turns(bench.sides, "paced", 16, plan.seconds, plan.rounds, bench.database)
    yield cpu_figure("CPU per run, words 10 ms apart", paced)
    say("A coordinator with two delegates")
    yield from delegated_figures(bench, plan, loads)
    say("SQL statements")
    yield from statement_figures(bench, plan)
    say(f"Open streams, up to {plan.streams[-1]}")
    yield from stream_figures(bench, plan)


def say(what: str) -> None:
    print(f"{what} …", file=sys.stderr, flush=True)


def plain_figures(bench: Bench, plan: Plan, loads: dict[int, dict[str, Rounds]]) -> Iterator[Figure]:
    client_cpu = time.process_time()
    direct = {clients: uvloop.run(load(bench.direct, clients, 1.0)) for clients in plan.clients}
    client_cpu = (time.process_time() - client_cpu) * 1000 / sum(one.runs for one in direct.values())
    alone = {name: median(rounds.first_texts) * 1000 for name, rounds in loads[1].items()}
    first = median(direct[1].first_texts) * 1000
    yield Figure("first text after, p50, 1 client", "ms", alone["roster"], alone["bare"], first)
    yield Figure("first text, added to direct", "ms", alone["roster"] - first, alone["bare"] - first)
    for clients, sides in loads.items():
        rates = {name: median(rounds.rates) for name, rounds in sides.items()}
        yield Figure(f"runs a second, {clients} clients", "", rates["roster"], rates["bare"], direct[clients].rate)
    for clients, sides in loads.items():
        yield cpu_figure(f"CPU per run, {clients} clients", sides)
    busiest = loads[plan.clients[-1]]["roster"]
    yield Figure("Postgres CPU per run", "ms", median(busiest.database_ms))
    yield Figure("client CPU per run (reading direct)", "ms", client_cpu)


def delegated_figures(bench: Bench, plan: Plan, loads: dict[int, dict[str, Rounds]]) -> Iterator[Figure]:
    """Five model calls in one run, beside five runs of bare, one after the other."""
    alone, many = (
        measure.by_turns([bench.roster], "delegated", clients, plan.seconds, plan.rounds, bench.database)["roster"]
        for clients in (1, 16)
    )
    bare = loads[1]["bare"]
    fifth = (4 / median(bare.rates) + median(bare.first_texts)) * 1000
    yield Figure("CPU of five model calls, 1 client", "ms", median(alone.cpu_ms), 5 * median(bare.cpu_ms))
    yield Figure("CPU of five model calls, 16 clients", "ms", median(many.cpu_ms), 5 * median(loads[16]["bare"].cpu_ms))
    yield Figure("first text of the fifth model call, 1 client", "ms", median(alone.first_texts) * 1000, fifth)


def cpu_figure(name: str, sides: dict[str, Rounds]) -> Figure:
    return Figure(name, "ms", *(median(sides[side].cpu_ms) for side in ("roster", "bare")))


def statement_figures(bench: Bench, plan: Plan) -> Iterator[Figure]:
    with bench.database.logging_statements():
        run = measure.statements_of_a_run(bench.roster.asks("plain"), bench.database, ROSTER, plan.counted)
        yield Figure("SQL statements per run", "", run.asked)
        yield Figure("  and BEGIN, COMMIT", "", run.brackets)
        for slug, words in (("plain", "a plain agent"), ("concierge", "a roster of four")):
            with bench.database.counting("rows") as asked:
                bench.rows.resolve(slug)
            yield Figure(f"SQL statements per resolve, {words}", "", asked[0].asked)


def stream_figures(bench: Bench, plan: Plan) -> Iterator[Figure]:
    bare = uvloop.run(measure.hold(bench.bare, plan.streams, plan.hold, lambda: 0))
    roster = uvloop.run(measure.hold(bench.roster, plan.streams, plan.hold, lambda: bench.database.connections(ROSTER)))
    for streams, ours, theirs in zip_longest(plan.streams, roster, bare):
        at = f"{streams} open streams"
        yield held_figure(f"threads, {at}", "", lambda one: one.threads, ours, theirs)
        yield held_figure(f"memory, {at}", "MB", lambda one: one.megabytes, ours, theirs)
        yield held_figure(f"database connections, {at}", "", lambda one: one.connections, ours, None)
        yield held_figure(f"delay of events, p95, {at}", "ms", lambda one: one.late_ms, ours, theirs)


def held_figure(name: str, unit: str, of: Callable[[Held], float], *sides: Held | None) -> Figure:
    """Nothing for a side that did not get so many streams to begin in time."""
    return Figure(name, unit, *(None if side is None else of(side) for side in sides))


if __name__ == "__main__":
    main()
