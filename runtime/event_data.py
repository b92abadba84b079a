"""Events as JSON: what the column `data` of a log's row holds."""

from collections.abc import Mapping
from dataclasses import fields
from uuid import UUID

from runtime.events import DelegateStarted, Event, Origin

CLASSES: dict[str, type[Event]] = {cls.__name__: cls for cls in Event.__value__.__args__}


def dump(event: Event) -> dict[str, object]:
    """The event's own fields as JSON values; its origin is on the Run row."""
    return {name: _plain(getattr(event, name)) for name in _NAMES[type(event)]}


def load(kind: str, of: Origin, data: Mapping[str, object], child: Origin | None = None) -> Event:
    """The event that `dump` made. `child` is the delegate's origin, for DelegateStarted."""
    cls = CLASSES[kind]
    values = {name: data[name] for name in _NAMES[cls] if name in data}
    for name in _IDS[cls]:
        values[name] = UUID(str(values[name]))
    if cls is DelegateStarted:
        values["child"] = child
    return cls(of=of, **values)  # type: ignore[arg-type]


def _plain(value: object) -> object:
    match value:
        case UUID():
            return str(value)
        case Origin():
            return str(value.run)
        case _:
            return value


_NAMES: dict[type[Event], tuple[str, ...]] = {
    cls: tuple(option.name for option in fields(cls) if option.name != "of") for cls in CLASSES.values()
}
_IDS: dict[type[Event], tuple[str, ...]] = {
    cls: tuple(option.name for option in fields(cls) if option.type is UUID) for cls in CLASSES.values()
}
