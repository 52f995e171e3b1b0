"""Refs: names for what is too big or too sensitive for a fact.

A ref that Factwire makes is the kind and the hash of the content. Refs of others are kept as they
are, unless they are a local path, a local URL or a secret.

A fact states refs in its three lists, in its payload and in its unknown fields, in any field whose
name ends in a word for a ref, in camel or snake case: as text, as an object with a `ref`, or as a
list of either. Outputs and attachments may be refs themselves. `refs_of`
is the one function that finds them all, so that no surface has a list of its own to keep complete.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, Literal, cast

import msgspec

from factwire.facts.fact import PAYLOAD_NAMES, Fact, snake_case
from factwire.facts.issues import FactError, Issue
from factwire.facts.json_values import text_at
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

REF_NAME: Final = re.compile(r"(?:^ref|Ref|_ref)(?:s|Ids?|_ids?)?$")
"""Names of payload fields that hold refs: `ref`, `outputRef`, `output_refs`, `refIds`, …"""

REF_HOLDERS: Final = frozenset({"attachments", "expired", "input", "outputs", "spilled"})
"""Payload fields that hold a list of objects, each of which may have fields with refs."""

_LISTED_REFS: Final = REF_HOLDERS - {"input"}
"""Those of them in which a text that is one word is a ref; in an input it is somebody's word."""

PLAIN_NAMES: Final = frozenset(
    {
        *(key for name, keys in PAYLOAD_NAMES.items() if name != "evidenceId" for key in keys),
        *("args", "command", "delta", "decision", "durationMs", "exitCode", "failureCategory"),
        *("message", "mode", "model", "offset", "output", "path", "phase", "progress", "prompt"),
        *("provider", "reason", "reasonCode", "recoveryHint", "rule", "status", "stream"),
        *("summary", "text", "title", "toolName", "total", "usage"),
    }
)
"""Frequent names of payload fields that hold no ref: a payload with no others is not searched,
because `refs_of` runs several times for every fact that is projected.
"""

_OWN: Final = re.compile(r"(output|artifact|evidence|diagnostic|trace|raw):sha256:([0-9a-f]{64})")
_LOCAL: Final = re.compile(r"\.?[/\\]|~|[a-z]:[\\/]|file:", re.IGNORECASE)
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


def refs_of(fact: Fact) -> list[str]:
    """Every ref that a fact states, once, in its order: its lists first, then its payload."""
    is_plain = PLAIN_NAMES.issuperset(fact.payload)
    own = None if is_plain and not fact.evidence_id else _own_evidence(fact)
    if is_plain and not (fact.ref_ids or fact.artifact_refs or fact.evidence_refs or own):
        return list(dict.fromkeys(_refs_in_payload(fact.extra))) if fact.extra else []
    lists = (*fact.ref_ids, *fact.artifact_refs, *fact.evidence_refs, *((own,) if own else ()))
    found = () if is_plain else _refs_in_payload(fact.payload)
    unknown = _refs_in_payload(fact.extra) if fact.extra else ()
    return list(dict.fromkeys((*lists, *found, *unknown)))


def nested_refs_of(fact: Fact) -> list[str]:
    """Every ref that a fact of a class which nobody knows states, once: its own, and those in its
    fields at any depth.
    """
    found = refs_of(fact)
    waiting: list[object] = [fact.payload, fact.extra]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            found += _refs_in_fields(fields)
            waiting += fields.values()
        elif isinstance(value, list):
            waiting += cast("list[object]", value)
    return list(dict.fromkeys(found))


def ref_at(payload: Mapping[str, Any], *names: str) -> str | None:
    """The first ref in these fields (wire names), each in camel or snake case."""
    for name in names:
        for spelling in _spellings(name):
            if spelling in payload:
                for ref in _refs_in_value(payload[spelling]):
                    return ref
    return None


def refs_at(payload: Mapping[str, Any], *names: str) -> list[str]:
    """All refs in these fields (wire names), each in camel or snake case."""
    keys = [key for name in names for key in _spellings(name) if key in payload]
    return [ref for key in keys for ref in _refs_in_value(payload[key])]


@lru_cache(maxsize=256)
def _spellings(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((name, snake_case(name))))


def artifact_refs_of(fact: Fact) -> list[str]:
    """The artifacts that a fact lists, at its top level or in its payload."""
    return [*fact.artifact_refs, *refs_at(fact.payload, "artifactRefs")]


def evidence_refs_of(fact: Fact) -> list[str]:
    """The evidence that a fact lists, at its top level or in its payload, and that it names as the
    evidence of its subject.
    """
    if not (fact.evidence_refs or fact.evidence_id) and _EVIDENCE_KEYS.isdisjoint(fact.payload):
        return []
    own = _own_evidence(fact)
    listed = [*fact.evidence_refs, *refs_at(fact.payload, "evidenceRefs")]
    return listed if own is None or own in listed else [*listed, own]


_EVIDENCE_KEYS: Final = frozenset({"evidenceRefs", "evidence_refs", *PAYLOAD_NAMES["evidenceId"]})
_EVIDENCE_FAMILIES: Final = ("evidence.", "review.", "benchmark.")


def _own_evidence(fact: Fact) -> str | None:
    """The `evidenceId` of a fact about something else; in facts of evidence it is their own id."""
    own = fact.evidence_id or None
    if own is None and ("evidenceId" in fact.payload or "evidence_id" in fact.payload):
        own = text_at(fact.payload, "evidenceId", "evidence_id")
    return None if own is None or (fact.event_class or "").startswith(_EVIDENCE_FAMILIES) else own


def _refs_in_payload(payload: Mapping[str, Any]) -> Iterator[str]:
    for name in _ref_fields(tuple(payload)):
        value = payload[name]
        if name not in REF_HOLDERS:
            yield from _refs_in_value(value)
        elif isinstance(value, list):
            for item in cast("list[object]", value):
                if isinstance(item, dict):
                    yield from _refs_in_fields(cast("dict[str, Any]", item))
                elif isinstance(item, str) and name in _LISTED_REFS and len(item.split()) == 1:
                    yield item


@lru_cache(maxsize=4_096)
def _ref_fields(names: tuple[str, ...]) -> tuple[str, ...]:
    """Which of the fields of a payload can hold refs; payloads of a class mostly have the same."""
    return tuple(name for name in names if REF_NAME.search(name) or name in REF_HOLDERS)


def _refs_in_fields(fields: dict[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        if REF_NAME.search(name):
            yield from _refs_in_value(value)


def _refs_in_value(value: object) -> Iterator[str]:
    """A ref as text or as an object, or a list of them; anything else is no ref."""
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, dict):
        ref = cast("dict[str, object]", value).get("ref")
        if isinstance(ref, str) and ref:
            yield ref
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            if not isinstance(item, list):
                yield from _refs_in_value(item)
