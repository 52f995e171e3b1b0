"""Spilling: a payload over the limit loses its biggest values to refs with previews.

The ids and small values that its class requires stay, so that a fact that was valid stays valid.
The caller stores the blobs first.
"""

from typing import Any, Final

import msgspec

from factwire.facts.classes.class_tables import REQUIRED_KEYS
from factwire.facts.derived_facts import build_note
from factwire.facts.fact import PAYLOAD_NAMES, Fact
from factwire.facts.limits import PAYLOAD_CHARACTERS, PREVIEW_CHARACTERS, SPILL_FLOOR
from factwire.facts.refs import Ref, content_ref

_KEPT_KEYS: Final = REQUIRED_KEYS.union(*PAYLOAD_NAMES.values())
_WHOLE: Final = "payload"
_NOTE_CLASS: Final = "output.spilled"


class Blob(msgspec.Struct, frozen=True):
    """Content to be stored under its ref before the fact is."""

    ref: Ref
    content: bytes


class Spill(msgspec.Struct, frozen=True):
    """What to store instead of an oversized fact: a smaller fact, its blobs, and a note."""

    fact: Fact
    blobs: tuple[Blob, ...]
    note: Fact


def json_characters(value: object) -> int:
    """How many characters a value has as compact JSON."""
    encoded = msgspec.json.encode(value)
    return len(encoded) if encoded.isascii() else len(encoded.decode())


def plan_spill(fact: Fact, limit: int = PAYLOAD_CHARACTERS) -> Spill | None:
    """What has to move for the payload to fit; None when it fits already."""
    size = json_characters(fact.payload)
    if size <= limit:
        return None
    payload, blobs = _move_big_values(fact.payload, size, limit)
    if json_characters(payload) > limit:
        payload, blobs = _move_everything(fact.payload, limit)
    refs = tuple(blob.ref.ref for blob in blobs)
    smaller = msgspec.structs.replace(
        fact, payload=payload, ref_ids=tuple(dict.fromkeys((*fact.ref_ids, *refs)))
    )
    return Spill(smaller, tuple(blobs), _build_spill_note(fact, blobs))


def _move_big_values(
    payload: dict[str, Any], size: int, limit: int
) -> tuple[dict[str, Any], list[Blob]]:
    sizes = {key: json_characters(value) for key, value in payload.items()}
    rest, blobs = dict(payload), list[Blob]()
    for key in sorted(sizes, key=lambda name: (-sizes[name], name)):
        if size <= limit or sizes[key] < SPILL_FLOOR:
            break
        if f"{key}Ref" in payload or key == _WHOLE:
            continue
        blob = _build_blob(rest.pop(key))
        rest[f"{key}Ref"] = msgspec.to_builtins(blob.ref)
        size -= sizes[key] - json_characters(rest[f"{key}Ref"])
        blobs.append(blob)
    return rest, blobs


def _move_everything(payload: dict[str, Any], limit: int) -> tuple[dict[str, Any], list[Blob]]:
    blob = _build_blob(payload)
    rest = {
        key: value
        for key, value in payload.items()
        if key in _KEPT_KEYS and json_characters(value) < SPILL_FLOOR
    }
    if json_characters(rest) > limit // 2:
        rest = {}
    return {**rest, f"{_WHOLE}Ref": msgspec.to_builtins(blob.ref)}, [blob]


def _build_blob(value: object) -> Blob:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    content = text.encode("utf-8", "surrogatepass")
    ref = Ref(
        ref=content_ref("output", content),
        kind="output",
        bytes=len(content),
        media_type="text/plain" if isinstance(value, str) else "application/json",
        preview=text[:PREVIEW_CHARACTERS],
    )
    return Blob(ref, content)


def _build_spill_note(fact: Fact, blobs: list[Blob]) -> Fact:
    entries = [{"ref": blob.ref.ref, "bytes": blob.ref.bytes} for blob in blobs]
    return build_note(fact, _NOTE_CLASS, {"spilled": entries}, tuple(b.ref.ref for b in blobs))
