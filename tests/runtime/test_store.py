"""The pool of the hot paths when what uses it is cancelled."""

import asyncio
from collections.abc import Awaitable, Callable

import psycopg.waiting
import pytest

from runtime import store
from tests.loop import running

pytestmark = pytest.mark.django_db(transaction=True)


async def in_a_transaction() -> object:
    async with store.connection() as connection, connection.pipeline(), connection.transaction():
        await connection.execute("SELECT 1, pg_sleep(0.002)")
        return await connection.execute("SELECT 2")


WORK = {
    "one statement": lambda: store.fetch("SELECT 1, pg_sleep(0.002)"),
    "several together": lambda: store.fetch_together(["SELECT 1", "SELECT 2, pg_sleep(0.002)"], {}),
    "a transaction": in_a_transaction,
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # psycopg drops a closed pipeline so
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_whoever_is_cancelled_leaves_no_connection_behind_that_answers_with_nothing(
    work: Callable[[], Awaitable[object]], times: int, monkeypatch: pytest.MonkeyPatch
):
    """One that stays in pipeline mode takes statements and gives no rows, without an error."""
    monkeypatch.setattr(psycopg.waiting, "MAX_BUSY_TIME", -1)  # as in a busy process: it gives way at each step

    async def cancelled_after(turns: int) -> None:
        asking = asyncio.ensure_future(work())
        for _ in range(turns):
            await asyncio.sleep(0)
        for _ in range(times):
            asking.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([asking])

    async def all_of_it() -> None:
        for turns in range(12):
            await cancelled_after(turns)
            answers = await asyncio.gather(*(store.fetch("SELECT 3 AS a") for _ in range(store.POOL_SIZE)))
            assert answers == [[{"a": 3}]] * store.POOL_SIZE, f"cancelled after {turns} turns"
            await asyncio.gather(*(in_a_transaction() for _ in range(store.POOL_SIZE)))

    running(all_of_it)


def test_whoever_is_cancelled_while_connections_are_checked_does_not_go_on():
    """The pool takes it for a broken connection; a process that ends would wait for its listener for ever."""

    async def cancelled_after(turns: int) -> None:
        await store.fetch("SELECT 1")
        checking = asyncio.ensure_future(store.drop_broken())
        for _ in range(turns):
            await asyncio.sleep(0)
        told = checking.cancel()
        await asyncio.wait([checking])
        assert not told or checking.cancelled(), f"cancelled after {turns} turns"

    async def all_of_it() -> None:
        for turns in range(12):
            await cancelled_after(turns)

    running(all_of_it)
