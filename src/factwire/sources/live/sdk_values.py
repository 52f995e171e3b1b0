"""Values of a program as JSON, whatever they are.

What an SDK hands over is made by the program that uses it: models, dataclasses, messages, anything.
None of it may raise here, go round in circles or become more than a fact could hold; what has no
form of its own is told by its `repr`.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, Final, cast

from factwire.sources.live.limits import VALUE_CHARACTERS, VALUE_DEPTH, VALUE_ITEMS

_SMALLEST: Final = -(2**63)
_GREATEST: Final = 2**63 - 1
_SCALARS: Final = (str, int, float)


def plain(value: object) -> Any:
    """The value as JSON can hold it."""
    return _plain(value, ())


def _plain(value: object, within: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, _SCALARS):
        return _scalar(value)
    if id(value) in within or len(within) >= VALUE_DEPTH:
        return shown(value)
    within = (*within, id(value))
    if isinstance(value, Mapping):
        return _table(cast("Mapping[object, object]", value), within)
    if isinstance(value, list | tuple | set | frozenset):
        return _listed(cast("Iterable[object]", value), within)
    fields = _fields(value)
    return shown(value) if fields is None else _table(fields, within)


def _scalar(value: str | float) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return int(value) if _SMALLEST <= value <= _GREATEST else str(value)
    return float(value) if isfinite(value) else str(value)


def _text(value: str) -> str:
    """Half a surrogate pair is no text that JSON could carry."""
    text = str.__str__(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _table(value: Mapping[object, object], within: tuple[int, ...]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for key, each in value.items():
        if len(named) >= VALUE_ITEMS:
            break
        named[_text(key) if isinstance(key, str) else shown(key)] = _plain(each, within)
    return named


def _listed(value: Iterable[object], within: tuple[int, ...]) -> list[Any]:
    found: list[Any] = []
    for each in value:
        if len(found) >= VALUE_ITEMS:
            break
        found.append(_plain(each, within))
    return found


def _fields(value: object) -> Mapping[object, object] | None:
    """What an object says that it holds: a model of pydantic's, or a dataclass."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return {name: getattr(value, name, None) for name in names}
    dump = getattr(value, "model_dump", None)
    if dump is None:
        return None
    try:
        dumped: object = dump(mode="json", warnings=False, fallback=shown)
    except Exception:  # noqa: BLE001 - a model that cannot be dumped is told by its repr
        return None
    return cast("Mapping[object, object]", dumped) if isinstance(dumped, Mapping) else None


def shown(value: object) -> str:
    """An object by its `repr`, cut to a glance."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a repr is the program's own, and may fail
        text = f"<{type(value).__name__}>"
    return _text(text[:VALUE_CHARACTERS])
