"""Requests and the threads that they get for what is synchronous in them."""

import asyncio
import threading

from asgiref.sync import sync_to_async

from config.threads import KEPT, KeptThreads


class Town:
    """An application that notes the thread of each request, and answers when `open` says so."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.open = asyncio.Event()

    async def __call__(self, scope, receive, send) -> None:
        self.threads.append(await sync_to_async(threading.get_ident)())
        await self.open.wait()


async def test_requests_one_after_another_share_a_thread():
    town = Town()
    town.open.set()
    app = KeptThreads(town)
    for _ in range(3):
        await app({}, None, None)
    assert len(set(town.threads)) == 1
    assert town.threads[0] != threading.get_ident()


async def test_requests_at_the_same_time_have_threads_of_their_own_and_few_are_kept():
    town, before = Town(), threading.active_count()
    app = KeptThreads(town)
    requests = [asyncio.create_task(app({}, None, None)) for _ in range(KEPT + 4)]
    async with asyncio.timeout(10):
        while len(town.threads) < len(requests):  # noqa: ASYNC110 - each says so by itself
            await asyncio.sleep(0.01)
    assert len(set(town.threads)) == len(requests)
    town.open.set()
    await asyncio.gather(*requests)
    async with asyncio.timeout(10):
        while threading.active_count() > before + KEPT:  # noqa: ASYNC110 - threads end by themselves
            await asyncio.sleep(0.01)


async def test_a_request_that_breaks_gives_its_thread_back():
    async def broken(scope, receive, send) -> None:
        threads.append(await sync_to_async(threading.get_ident)())
        raise ValueError

    threads: list[int] = []
    app = KeptThreads(broken)
    for _ in range(2):
        await asyncio.gather(app({}, None, None), return_exceptions=True)
    assert len(set(threads)) == 1
