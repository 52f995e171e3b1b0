"""Every field of some items, one at a time, missing or of another type."""

import copy
from collections.abc import Iterator
from typing import Any, cast

ODD: tuple[Any, ...] = (None, True, -1, 1e300, "", "x", [], {}, [None])


def spoil_fields(items: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The items again and again, each time with another field spoiled."""
    for place, item in enumerate(items):
        for path in _paths(item):
            for odd in (..., *ODD):
                changed = copy.deepcopy(item)
                _spoil(changed, path, odd)
                yield [*items[:place], changed, *items[place + 1 :]]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        inner: list[tuple[Any, Any]] = list(cast("dict[Any, Any]", value).items())
    else:
        inner = list(enumerate(cast("list[Any]", value))) if isinstance(value, list) else []
    for key, held in inner:
        yield (*path, key)
        yield from _paths(held, (*path, key))


def _spoil(item: Any, path: tuple[Any, ...], odd: Any) -> None:
    for key in path[:-1]:
        item = item[key]
    if odd is ...:
        del item[path[-1]]
    else:
        item[path[-1]] = copy.deepcopy(odd)
