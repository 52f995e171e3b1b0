"""Where two screens differ: the first place, as a path and what stands there on either side."""

from typing import Any, cast

import msgspec

from factwire.facts import redact_text, redact_value
from factwire.projection import ProjectionState, encode_state

_EXCERPT = 120


def difference(one: object, other: object, path: str = "") -> str | None:
    """`/path: this on one side, that on the other`, for the first place that differs."""
    if one == other:
        return None
    members = _members(one), _members(other)
    for key in {**members[0], **members[1]} if type(one) is type(other) else ():
        found = difference(members[0].get(key), members[1].get(key), f"{path}/{key}")
        if found is not None:
            return found
    return f"{path}: {_excerpt(one)} instead of {_excerpt(other)}"


def _members(value: object) -> dict[str, Any]:
    """What stands beneath a value, by name or by place."""
    if isinstance(value, list):
        return {str(place): item for place, item in enumerate(cast("list[Any]", value))}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def plain(state: ProjectionState) -> dict[str, Any]:
    """A state as JSON."""
    return msgspec.json.decode(encode_state(state))


def _excerpt(value: object) -> str:
    text = redact_text(msgspec.json.encode(redact_value(value)[0]).decode())[0]
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
