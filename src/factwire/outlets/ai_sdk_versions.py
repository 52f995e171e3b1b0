"""What the versions of the AI SDK's chunks have.

Older versions refuse a chunk that they do not know and a field that they do not know, and the whole
stream with it; so nothing is sent to a version that it may not have.
"""

from typing import Any, Final, Literal

Version = Literal[5, 6, 7]

_CHUNKS_SINCE: Final = {
    "reset-step": 7,
    "steering-message": 7,
    "tool-approval-request": 6,
    "tool-approval-response": 7,
    "tool-output-denied": 6,
}
_FIELDS_SINCE: Final[dict[str, dict[str, int]]] = {
    "abort": {"reason": 6},
    "finish": {"finishReason": 6},
    "tool-approval-request": {"reason": 7},
    "tool-input-available": {"title": 6},
    "tool-input-start": {"title": 6},
}
_NONE_NEW: Final[dict[str, int]] = {}


def has_chunk(version: Version, kind: str) -> bool:
    """Whether a version knows a kind of chunk."""
    return version >= _CHUNKS_SINCE.get(kind, 0)


def chunk(version: Version, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """A chunk with the fields that are given and that the version knows."""
    since = _FIELDS_SINCE.get(kind, _NONE_NEW)
    given = {
        name: value
        for name, value in fields.items()
        if value is not None and version >= since.get(name, 0)
    }
    return {"type": kind, **given}
