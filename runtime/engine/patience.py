"""How long a model server is waited for."""

import asyncio

from runtime.spec import ModelSpec

LINGER_SECONDS = 5.0
"""How long the end of the stream (usage, `[DONE]`) is waited for once the answer itself is complete."""


class Patience:
    """The whole call's deadline, and a shorter one for silence once a stream has begun.

    One timer looks after the silence: moving a timer with every token would cost more than reading the token.
    """

    def __init__(self, endpoint: ModelSpec) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + endpoint.timeout_seconds
        self._idle = endpoint.idle_seconds
        self._heard = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.timeout = asyncio.timeout_at(self._end)

    @property
    def is_spent(self) -> bool:
        return self._loop.time() >= self._end

    def heard(self) -> None:
        self._heard = self._loop.time()
        if self._timer is None:
            self._look_again(self._heard + self._idle)

    def complete(self) -> None:
        """The answer is whole: wait a little for what servers send after it."""
        self._idle = min(self._idle, LINGER_SECONDS)
        self.forget()
        self.heard()

    def forget(self) -> None:
        """Listen to nothing any more: the attempt is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def pause(self, seconds: float) -> bool:
        """Wait before another attempt; false when the deadline comes first."""
        self.forget()
        if self._loop.time() + seconds >= self._end:
            return False
        await asyncio.sleep(seconds)
        return True

    def _look_again(self, when: float) -> None:
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        due = self._heard + self._idle
        if self._loop.time() < due:
            self._look_again(due)
        elif not self.timeout.expired():
            self.timeout.reschedule(self._loop.time())
