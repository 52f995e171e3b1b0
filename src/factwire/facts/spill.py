"""Spill: the pure decision which part of a payload moves to a blob.

A payload over the limit loses its biggest values, largest first, each replaced by a ref and a
preview under the key with `Ref` behind it. When many small values are the cause, the whole payload
moves to `payloadRef`, except the ids and the small values that its class needs: a fact that was
valid stays valid. The caller stores the blobs before it stores the fact.
"""

from typing import Any, Final

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.ids import PAYLOAD_NAMES
from factwire.facts.limits import PAYLOAD_CHARACTERS, PREVIEW_CHARACTERS, SPILL_FLOOR
from factwire.facts.needs import NEEDED_KEYS
from factwire.facts.notes import note_about
from factwire.facts.refs import Ref, content_ref

_KEPT_KEYS: Final = NEEDED_KEYS.union(*PAYLOAD_NAMES.values())
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
    return Spill(smaller, tuple(blobs), _note(fact, blobs))


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
        blob = _blob(rest.pop(key))
        rest[f"{key}Ref"] = msgspec.to_builtins(blob.ref)
        size -= sizes[key] - json_characters(rest[f"{key}Ref"])
        blobs.append(blob)
    return rest, blobs


def _move_everything(payload: dict[str, Any], limit: int) -> tuple[dict[str, Any], list[Blob]]:
    blob = _blob(payload)
    kept = {
        key: value
        for key, value in payload.items()
        if key in _KEPT_KEYS and json_characters(value) < SPILL_FLOOR
    }
    if json_characters(kept) > limit // 2:
        kept = {}
    return {**kept, f"{_WHOLE}Ref": msgspec.to_builtins(blob.ref)}, [blob]


def _blob(value: object) -> Blob:
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


def _note(fact: Fact, blobs: list[Blob]) -> Fact:
    spilled = [{"ref": blob.ref.ref, "bytes": blob.ref.bytes} for blob in blobs]
    return note_about(fact, _NOTE_CLASS, {"spilled": spilled}, tuple(b.ref.ref for b in blobs))
