"""The chat page's own addresses."""

from dataclasses import dataclass
from uuid import UUID

from django.urls import reverse


@dataclass(frozen=True, slots=True)
class ChatPlaces:
    """See web.chat.turns.Places."""

    send: str = "/chat/send/"
    decides: bool = True

    def stream(self, run: UUID, after: int) -> str:
        return f"{reverse('chat-stream', args=[run])}?after={after}"

    def stop(self, run: UUID) -> str:
        return reverse("chat-stop", args=[run])


PLACES = ChatPlaces()
