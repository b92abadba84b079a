"""What a root run has said so far, as AG-UI messages: for readers who come after the pieces were put together."""

from uuid import UUID

from runtime import events
from runtime.events import Event

type Message = dict[str, object]


class Snapshot:
    """`keep` takes every event of one log in order. Clients make the same messages, under the same ids, of a stream."""

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}
        self._names: dict[UUID, str] = {}

    def keep(self, event: Event) -> None:
        if event.of.depth:
            return
        match event:
            case events.MessageText():
                self._add(str(event.message), "assistant", event.text)
            case events.ReasoningText():
                self._add(str(event.message), "reasoning", event.text)
            case events.ToolCalled():
                self._names[event.call] = event.name
            case events.ToolArguments():
                function = {"name": self._names[event.call], "arguments": event.text}
                call = {"id": event.call, "type": "function", "function": function}
                self._messages[str(event.call)] = {"role": "assistant", "toolCalls": [call]}
            case events.ToolReturned():
                answer: Message = {"role": "tool", "toolCallId": event.call, "content": event.content}
                self._messages[f"{event.call}-result"] = answer

    @property
    def messages(self) -> list[Message]:
        return [{"id": key} | message for key, message in self._messages.items()]

    def _add(self, key: str, role: str, text: str) -> None:
        said = self._messages.setdefault(key, {"role": role, "content": ""})
        said["content"] = f"{said['content']}{text}"
