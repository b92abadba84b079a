"""What is measured: Roster and bare by turns, so that whatever else the machine does hits both."""

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import quantiles

import uvloop

from tests.bench.load import Client, Load, Target, load
from tests.bench.product import Database, Statements
from tests.bench.sides import Side

SETTLE_SECONDS = 0.1
"""After the last answer Roster commits what it still holds: that belongs to the runs."""
CONNECT_SECONDS = 40.0
"""For all the streams of one level to begin."""
_AT_ONCE = 50
_CLOCK = re.compile(rb"word@([\d.]+)")


@dataclass
class Rounds:
    """The same load, several times. All but `first_texts` (seconds) have a value for each round."""

    rates: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    database_ms: list[float] = field(default_factory=list)
    first_texts: list[float] = field(default_factory=list)

    def add(self, done: Load, cpu: float, database_cpu: float) -> None:
        self.rates.append(done.rate)
        self.cpu_ms.append(cpu * 1000 / done.runs)
        self.database_ms.append(database_cpu * 1000 / done.runs)
        self.first_texts += done.first_texts


def by_turns(
    sides: list[Side], kind: str, clients: int, seconds: float, rounds: int, database: Database
) -> dict[str, Rounds]:
    """A B, B A, A B …: neither side always comes after the other."""
    found = {side.name: Rounds() for side in sides}
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            cpu, database_cpu = side.program.cpu(), database.cpu()
            done = uvloop.run(load(side.asks(kind), clients, seconds))
            time.sleep(SETTLE_SECONDS)
            found[side.name].add(done, side.program.cpu() - cpu, database.cpu() - database_cpu)
    return found


def cold_start(environ: Mapping[str, str]) -> float:
    """Seconds until the web application could answer, in a process that does nothing else."""
    command = [sys.executable, "-c", "import sys; sys.path.insert(0, 'platform'); import config.asgi"]
    since = time.monotonic()
    subprocess.run(command, env={**os.environ, **environ}, check=True, timeout=120)
    return time.monotonic() - since


def warm_up(sides: list[Side]) -> None:
    for side in sides:
        uvloop.run(load(side.asks("plain"), 4, 0.5))


def statements_of_a_run(target: Target, database: Database, application: str, times: int) -> Statements:
    """The median of single runs, which leaves out what is asked every few seconds beside them."""
    counts = []
    for _ in range(times):
        with database.counting(application) as count:
            uvloop.run(load(target, 1, 0))
        counts += count
    return sorted(counts)[len(counts) // 2]


@dataclass(frozen=True)
class Held:
    """A process with so many streams open. `late_ms`: 95 % of events arrived sooner after the model sent them."""

    streams: int
    threads: int
    megabytes: float
    connections: int
    late_ms: float


async def hold(side: Side, levels: tuple[int, ...], seconds: float, connections: Callable[[], int]) -> list[Held]:
    """Open more and more streams of slow answers, and look at the process at each level that it reaches in time."""
    late: list[float] = []

    def heard(body: bytes) -> None:
        now = time.monotonic()
        late.extend(now - float(sent) for sent in _CLOCK.findall(body))

    target, clients, found = side.asks("clock"), list[Client](), list[Held]()
    try:
        for level in levels:
            async with asyncio.timeout(CONNECT_SECONDS):
                while len(clients) < level:
                    clients += await _begun([Client(target, heard) for _ in range(min(_AT_ONCE, level - len(clients)))])
            late.clear()
            await asyncio.sleep(seconds)
            slowest = quantiles(late, n=20)[-1] * 1000
            found.append(Held(level, side.program.threads(), side.program.megabytes(), connections(), slowest))
    except TimeoutError:
        return found
    finally:
        for client in clients:
            client.close()
    return found


async def _begun(clients: list[Client]) -> list[Client]:
    await asyncio.gather(*(client.connect() for client in clients))
    for client in clients:
        client.send()
    for client in clients:
        await client.begun.wait()
    return clients
