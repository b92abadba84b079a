"""The fake model server of the tests, with one more answer: `clock`, whose words are the time they were sent.

python -m tests.bench.model        prints its port
"""

import time
from collections.abc import Iterator

import uvloop

from tests.model_answers import DONE, END, HEAD, Json, chunk, delta, event
from tests.model_faults import FAULTS, Step
from tests.model_server import serve


def clock(model: str, turn: Json) -> Iterator[Step]:
    """`words` moments of the machine's monotonic clock, `delay` seconds apart."""
    yield HEAD
    for _ in range(int(str(turn["words"]))):
        yield float(str(turn["delay"]))
        yield chunk(event(delta(model, {"content": f"word@{time.monotonic():.4f} "})))
    yield chunk(event(delta(model, {}, "stop")))
    yield chunk(DONE)
    yield END


FAULTS["clock"] = clock

if __name__ == "__main__":
    uvloop.run(serve(0))
