"""What a run is expected to have done, as data: a small, typed language of assertions.

A case is a name and assertions. It travels in a pack as an `evidence.changed` fact of kind
`replay` whose payload has `assertions` (a later fact about the same evidence replaces it), or is
added at export, or lies in a file beside the pack.
"""

from typing import Annotated, Any, Final, cast, get_args

import msgspec

from factwire.evidence.errors import CaseProblem
from factwire.evidence.limits import ASSERTIONS, POINTER_CHARACTERS
from factwire.evidence.pack_format import CASES
from factwire.evidence.pack_reader import Pack
from factwire.facts import Fact
from factwire.projection.artifacts import evidence_ids

_Text = Annotated[str, msgspec.Meta(min_length=1)]


class Assertion(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="assert",
):
    """What all assertions share; without `thread_id` the pack's first thread is meant."""

    thread_id: str | None = None


class TurnOutcome(Assertion, frozen=True, tag="turn.outcome"):
    """The turn, or the last one, ended so: completed, failed or canceled."""

    outcome: _Text
    turn_id: str | None = None


class AnswerEquals(Assertion, frozen=True, tag="answer.equals"):
    """What the assistant said in a turn, or in the last one, is this text."""

    text: str
    turn_id: str | None = None


class AnswerContains(Assertion, frozen=True, tag="answer.contains"):
    """What the assistant said in a turn, or in any, holds this text."""

    text: _Text
    turn_id: str | None = None


class ToolCalled(Assertion, frozen=True, tag="tool.called"):
    """The tool was called; each of `args`, where given, with this value. `times` counts calls."""

    tool_name: _Text
    args: dict[str, Any] | None = None
    times: Annotated[int, msgspec.Meta(ge=0)] | None = None


class ToolStatus(Assertion, frozen=True, tag="tool.status"):
    """The call, or every call of the tool, is in this state."""

    state: _Text
    tool_call_id: str | None = None
    tool_name: str | None = None


class ApprovalDecided(Assertion, frozen=True, tag="approval.decision"):
    """The action, or some action, was decided so."""

    decision: _Text
    action_id: str | None = None


class FileChanged(Assertion, frozen=True, tag="file.changed"):
    """The file was changed, in this way where one is given."""

    path: _Text
    change: str | None = None


class ArtifactExists(Assertion, frozen=True, tag="artifact.exists"):
    """There is an artifact with this id, title or kind, and it was not deleted."""

    artifact_id: str | None = None
    title: str | None = None
    kind: str | None = None


class FactCount(Assertion, frozen=True, tag="count"):
    """So many facts are of the class or of one below it."""

    event_class: _Text
    equals: int | None = None
    at_least: int | None = None
    at_most: int | None = None


class ProjectionEquals(Assertion, frozen=True, tag="projection"):
    """The projected state has this value at a JSON Pointer."""

    pointer: Annotated[str, msgspec.Meta(pattern="^(/|$)", max_length=POINTER_CHARACTERS)]
    equals: Any


AnyAssertion = (
    TurnOutcome
    | AnswerEquals
    | AnswerContains
    | ToolCalled
    | ToolStatus
    | ApprovalDecided
    | FileChanged
    | ArtifactExists
    | FactCount
    | ProjectionEquals
)


class ReplayCase(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A named list of assertions; `fact_id` is the fact that carried it, where one did."""

    name: str
    assertions: tuple[AnyAssertion, ...]
    fact_id: str | None = None


class _CaseFile(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: str
    assertions: list[msgspec.Raw]


_NEEDS_ONE: Final[dict[type[Assertion], tuple[str, ...]]] = {
    ToolStatus: ("tool_call_id", "tool_name"),
    ArtifactExists: ("artifact_id", "title", "kind"),
    FactCount: ("equals", "at_least", "at_most"),
}
"""Assertions that say nothing unless one of these fields is given."""


ASSERTION_KINDS: Final = tuple(
    str(kind.__struct_config__.tag)
    for kind in cast("tuple[type[Assertion], ...]", get_args(AnyAssertion))
)
"""What may stand under `assert`."""

TOOL_STATES: Final = (
    *("running", "input-streaming", "input-available", "progress"),
    *("output-available", "output-error", "cancelled", "stale"),
)
"""The states that a projected call can be in."""

_LEGAL_VALUES: Final[dict[type[Assertion], tuple[str, tuple[str, ...]]]] = {
    TurnOutcome: ("outcome", ("completed", "failed", "canceled")),
    ToolStatus: ("state", TOOL_STATES),
}
"""Fields whose values are Factwire's own words. What was decided is the word of whoever decided."""


class _Kind(msgspec.Struct, frozen=True):
    kind: str = msgspec.field(name="assert")


def parse_case(data: bytes, where: str) -> ReplayCase:
    """A case as somebody wrote it down; raises `CaseProblem`."""
    try:
        found = msgspec.json.decode(data, type=_CaseFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"{where}: expected an object with name and assertions: {error}"
        raise CaseProblem("case_malformed", message) from error
    return ReplayCase(name=found.name, assertions=parse_assertions(found.assertions, where))


def parse_assertions(values: list[Any], where: str) -> tuple[AnyAssertion, ...]:
    """Assertions from JSON text or plain values; the first that is none is named."""
    if len(values) > ASSERTIONS:
        message = f"{where}: expected at most {ASSERTIONS} assertions, got {len(values)}"
        raise CaseProblem("case_malformed", message)
    return tuple(
        _parse_assertion(value, f"{where}: assertion {at}") for at, value in enumerate(values)
    )


def _parse_assertion(value: Any, where: str) -> AnyAssertion:
    try:
        found = (
            msgspec.json.decode(value, type=AnyAssertion)
            if isinstance(value, msgspec.Raw)
            else msgspec.convert(value, AnyAssertion)
        )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = _explain_kind(value) or str(error)
        raise CaseProblem("assertion_malformed", f"{where}: {reason}") from error
    _ensure_legal(found, where)
    wanted = _NEEDS_ONE.get(cast("type[Assertion]", type(found)), ())
    if wanted and all(getattr(found, name) is None for name in wanted):
        fields = " or ".join(found.__struct_encode_fields__[_place(found, name)] for name in wanted)
        raise CaseProblem("assertion_malformed", f"{where}: it needs {fields}")
    return found


def _explain_kind(value: Any) -> str | None:
    """What to say where it is the kind that nobody knows; None where that is not so."""
    try:
        found = msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
        kind = msgspec.convert(found, _Kind).kind
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if kind in ASSERTION_KINDS:
        return None
    return f"unknown assertion {kind[:80]!r}; choose from {', '.join(ASSERTION_KINDS)}"


def _ensure_legal(assertion: AnyAssertion, where: str) -> None:
    field, legal = _LEGAL_VALUES.get(cast("type[Assertion]", type(assertion)), ("thread_id", ()))
    value = getattr(assertion, field)
    if legal and value not in legal:
        message = f"{where}: {field} cannot be {value[:80]!r}; expected one of {', '.join(legal)}"
        raise CaseProblem("assertion_malformed", message)


def _place(assertion: Assertion, name: str) -> int:
    return assertion.__struct_fields__.index(name)


def read_cases(pack: Pack) -> list[ReplayCase]:
    """Every case of a pack, those in facts first; raises `CaseProblem` for a malformed one."""
    found: dict[str, ReplayCase] = {}
    for fact in pack.facts():
        case = _read_case(fact)
        if case is not None:
            found.pop(case.name, None)
            found[case.name] = case
    return [*found.values(), *(_decode_case(line) for line in pack.rows(CASES))]


def _read_case(fact: Fact) -> ReplayCase | None:
    if fact.event_class != "evidence.changed" or fact.payload.get("kind") != "replay":
        return None
    rows = fact.payload.get("assertions")
    if rows is None:
        return None
    where = f"fact {fact.id}"
    if not isinstance(rows, list):
        raise CaseProblem("case_malformed", f"{where}: expected a list of assertions")
    name = next(iter(evidence_ids(fact)), fact.id)
    assertions = parse_assertions(cast("list[Any]", rows), where)
    return ReplayCase(name=name, assertions=assertions, fact_id=fact.id)


def _decode_case(line: bytes) -> ReplayCase:
    try:
        return msgspec.json.decode(line, type=ReplayCase)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CaseProblem("case_malformed", f"{CASES}: {error}") from error
