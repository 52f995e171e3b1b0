"""What travels: the three shapes of a fact, and the types around them.

The shapes are one type, `Fact`, under other names; which field is called what and which must be
there is `factwire.facts.shapes`' to say.
"""

from typing import Final, NamedTuple, get_args

import msgspec

from factwire.facts.capabilities import Answer, ApprovalStyle, CapabilityManifest, Streaming
from factwire.facts.class_payloads import payload_types
from factwire.facts.classification import KNOWN_CLASSES
from factwire.facts.fact import Fact
from factwire.facts.fixtures import Expected, Fixture
from factwire.facts.inputs import (
    AssetInput,
    AssetKind,
    CapabilityInput,
    TextInput,
    WorkspaceInput,
)
from factwire.facts.issues import Issue, IssueCode
from factwire.facts.payloads import Payload
from factwire.facts.refs import Ref, RefKind
from factwire.facts.resume import OpenAction, ResumeAnswer, ResumeCode, ResumeIssue
from factwire.facts.shapes import REQUIRED_FIELDS, Shape, wire_name
from factwire.facts.vocabulary import CLASS_ALIASES


class ReportError(msgspec.Struct, frozen=True, kw_only=True):
    """Why the input could not be read to its end; lines count from 1 where there are lines."""

    code: str
    message: str
    line: int | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a validation found. No issue of valid facts is more than information; issues beyond a
    limit are only counted.
    """

    valid: bool
    issues: list[Issue]
    facts: int
    issues_omitted: int = 0
    error: ReportError | None = None


class WireShape(NamedTuple):
    """One shape as a type of its own; `classes` names the list its classes come from."""

    shape: Shape
    title: str
    slug: str
    classes: str
    description: str


class WireField(NamedTuple):
    """A field of a shape: its name on the wire and what it is to `Fact`."""

    name: str
    required: bool
    of_fact: msgspec.structs.FieldInfo


WIRE_SHAPES: Final = (
    WireShape("facts", "Fact", "fact", "EventClass", " ".join((Fact.__doc__ or "").split())),
    WireShape(
        "runtime-event",
        "RuntimeEvent",
        "runtime-event",
        "RuntimeClass",
        "One fact as providers emit it; kind, status and title follow from `type` when absent.",
    ),
    WireShape(
        "ui",
        "UiEvent",
        "ui-event",
        "UiClass",
        "One fact as UI clients exchange it; everything but `type` may be unknown and absent.",
    ),
)

PAYLOADS: Final[dict[str, type[Payload]]] = payload_types(tuple(sorted(KNOWN_CLASSES)))
"""The payload type of every known class that has one."""

ALIASED_PAYLOADS: Final[dict[str, type[Payload]]] = {
    alias: PAYLOADS[name] for alias, name in CLASS_ALIASES.items() if name in PAYLOADS
}
"""The same for the names that are replaced when a fact is read."""

PAYLOAD_TYPES: Final[tuple[type[Payload], ...]] = tuple(
    sorted(set(PAYLOADS.values()), key=lambda payload: payload.__name__)
)

CLOSED_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "RefKind": get_args(RefKind),
    "IssueCode": get_args(IssueCode),
    "AssetKind": get_args(AssetKind),
    "Answer": get_args(Answer),
    "ApprovalStyle": get_args(ApprovalStyle),
    "ResumeCode": get_args(ResumeCode),
}
"""The lists that are not open: another word is refused."""

INPUT_TYPES: Final = (TextInput, AssetInput, WorkspaceInput, CapabilityInput)

OTHER_TYPES: Final[tuple[type[msgspec.Struct], ...]] = (
    Ref,
    Issue,
    Report,
    ReportError,
    Fixture,
    Expected,
    *INPUT_TYPES,
    CapabilityManifest,
    Streaming,
    OpenAction,
    ResumeAnswer,
    ResumeIssue,
)


def wire_fields(shape: Shape) -> list[WireField]:
    """The fields of a shape: what it requires first, then the rest in the order of `Fact`."""
    required = REQUIRED_FIELDS[shape]
    fields = {
        name: WireField(name, name in required, field)
        for field in msgspec.structs.fields(Fact)
        if (name := wire_name(shape, field.encode_name))
    }
    return [fields[name] for name in dict.fromkeys((*required, *fields))]
