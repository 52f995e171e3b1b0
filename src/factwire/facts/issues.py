"""What can be wrong with facts, and the errors that say so.

FactError
├── UnreadableInput   the bytes are not JSON of the expected form (line, reason)
├── InvalidFacts      one or more issues; carries them all
└── LifecycleError    the verifier, failing closed, met its first violation
"""

from typing import Final, Literal

import msgspec

IssueCode = Literal[
    "schema_mismatch",
    "missing_scope_id",
    "sequence_gap",
    "sequence_violation",
    "secret_leak_risk",
    "large_payload_inline",
    "unknown_event_type",
    "outcome_mismatch",
]

ISSUE_CODES: Final[dict[IssueCode, str]] = {
    "schema_mismatch": (
        "a required field or timestamp is missing or wrong, or the class is a legacy terminal"
    ),
    "missing_scope_id": "the class needs an id or field that the fact does not have",
    "sequence_gap": "a sequence does not follow the previous one of its thread",
    "sequence_violation": "the lifecycle does not allow the fact at this point",
    "secret_leak_risk": "a key names a secret or a value is one",
    "large_payload_inline": "a payload or a preview is too large for a fact",
    "unknown_event_type": "the class is not in the vocabulary; kept as it is",
    "outcome_mismatch": "the status or the payload contradicts the class",
}

INFORMATION: Final[frozenset[str]] = frozenset({"unknown_event_type"})
"""Codes that tell something without making a fact invalid."""


class Issue(msgspec.Struct, frozen=True, order=True):
    """One finding: a stable code, a path such as `$.events[2].toolCallId`, a sentence."""

    code: IssueCode
    path: str
    message: str


def path_step(key: str) -> str:
    """A key as a step of a path: `.key`, or `["odd key"]` where a plain one would mislead."""
    if key.isascii() and key.isidentifier():
        return f".{key}"
    return f"[{msgspec.json.encode(key).decode()}]"


def is_valid(issues: list[Issue]) -> bool:
    """Whether facts with these issues are valid: information alone does not make them invalid."""
    return all(issue.code in INFORMATION for issue in issues)


class FactError(Exception):
    """The root of every error that `factwire.facts` raises; `code` is stable."""

    code: str = "fact_error"


class UnreadableInput(FactError):
    """Input that is not JSON of the expected form; `line` counts from 1 where there are lines."""

    code = "unreadable_input"

    def __init__(self, reason: str, *, line: int | None = None) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason if line is None else f"line {line}: {reason}")


class InvalidFacts(FactError):
    """Facts that break rules; `issues` holds every one of them."""

    code = "invalid_facts"

    def __init__(self, issues: list[Issue]) -> None:
        self.issues = issues
        first = issues[0]
        more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
        super().__init__(f"{first.code} at {first.path}: {first.message}{more}")


def type_mismatches(value: object, expected: object, path: str) -> list[Issue]:
    """What keeps `value`, which stands at `path`, from being of the `expected` type."""
    try:
        msgspec.convert(value, expected)
    except msgspec.ValidationError as error:
        reason, _, inner = str(error).partition(" - at `$")
        return [Issue("schema_mismatch", path + inner.rstrip("`"), reason.replace(" | null", ""))]
    return []
