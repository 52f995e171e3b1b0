"""Refs: names for what is too big or too sensitive for a fact, and what is spilled to them.

A ref that Factwire makes is the kind and the hash of the content. Refs of others are kept as they
are, unless they are a local path, a local URL or a secret. A payload over the limit loses its
biggest values, each replaced by a ref and a preview; the ids and small values that its class
requires stay, so that a fact that was valid stays valid. The caller stores the blobs first.
"""

import re
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from factwire.facts.classes.required_fields import REQUIRED_KEYS
from factwire.facts.derived_facts import build_note
from factwire.facts.fact import PAYLOAD_NAMES, Fact
from factwire.facts.issues import FactError, Issue
from factwire.facts.limits import PAYLOAD_CHARACTERS, PREVIEW_CHARACTERS, SPILL_FLOOR
from factwire.facts.secret_shapes import find_secrets

RefKind = Literal["output", "artifact", "evidence", "diagnostic", "trace", "raw"]

REF_KINDS: Final[tuple[RefKind, ...]] = (
    "output",
    "artifact",
    "evidence",
    "diagnostic",
    "trace",
    "raw",
)

REF_LISTS: Final = {
    "ref_ids": "refIds",
    "artifact_refs": "artifactRefs",
    "evidence_refs": "evidenceRefs",
}
"""Attribute of `Fact` that holds refs → its wire name."""

_OWN: Final = re.compile(r"(output|artifact|evidence|diagnostic|trace|raw):sha256:([0-9a-f]{64})")
_LOCAL: Final = re.compile(r"/|\\|~|[a-z]:[\\/]|file:", re.IGNORECASE)
_UPWARDS: Final = re.compile(r"(?:^|[\\/]|%2f|%5c)(?:\.|%2e){2}(?:[\\/]|%2f|%5c|$)", re.IGNORECASE)
_DATA_URL: Final = "data:"


class InvalidRef(FactError):
    """A ref that is not of the form, or that names a place on somebody's machine."""

    code = "invalid_ref"


class Ref(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A content-addressed ref with what a reader wants to know before fetching it."""

    ref: str
    kind: RefKind
    bytes: int
    media_type: str = "application/octet-stream"
    preview: str | None = None


def content_ref(kind: RefKind, content: bytes) -> str:
    """The ref of some content: the same bytes always have the same ref."""
    return f"{kind}:sha256:{sha256(content).hexdigest()}"


def parse_ref(ref: str) -> tuple[RefKind, str]:
    """The kind and the SHA-256 (hex) of a ref that Factwire made."""
    match = _OWN.fullmatch(ref)
    if match is None:
        raise InvalidRef(f"expected KIND:sha256:HEX with KIND one of {', '.join(REF_KINDS)}")
    kind, digest = match.groups()
    return kind, digest  # pyright: ignore[reportReturnType]


def ref_issue(ref: str, path: str) -> Issue | None:
    """What is wrong with a ref of anyone's: a local path, inline data or a secret."""
    name = ref.strip()
    if not name:
        return Issue("schema_mismatch", path, "a ref is never empty")
    if _LOCAL.match(name) or _UPWARDS.search(name):
        return Issue("schema_mismatch", path, "a ref is never a path or a file: URL")
    if name[: len(_DATA_URL)].lower() == _DATA_URL:
        return Issue("large_payload_inline", path, "a ref names content, it does not hold it")
    if find_secrets(ref):
        return Issue("secret_leak_risk", path, "a ref holds a secret")
    return None


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
