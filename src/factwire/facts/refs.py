"""Refs: names for what is too big or too sensitive for a fact.

A ref that Factwire makes is the kind and the hash of the content. Refs of others are kept as they
are, unless they are a local path, a local URL or a secret.
"""

import re
from hashlib import sha256
from typing import Final, Literal

import msgspec

from factwire.facts.issues import FactError, Issue
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
