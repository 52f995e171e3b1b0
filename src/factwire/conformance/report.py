"""The report of a conformance run, as data: what was tried, what came of it, what was not tried.

Every requirement that its subject is held to is in it, those that were not tried with the reason,
so that a green report cannot hide how little was looked at. What Factwire promises of itself is
only in its own report: nobody else can keep or break that.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from factwire import __version__
from factwire.conformance.case import LEVELS, Level, Result, Status
from factwire.conformance.requirements import KNOWN_GAPS, REQUIREMENTS
from factwire.facts.schemas.schema_files import document_text

REPORT_VERSION: Final = "factwire-conformance/v1"

Kind = Literal["provider", "facts", "factwire"]
Standing = Literal["passed", "failed", "not-applicable", "not-tried"]

_OWN: Final = "a promise of Factwire's own, which its test suite proves"
_SUITE: Final = ("stream.", "screen.", "provider.")
"""How the names of requirements begin that anybody's agent or stream is held to."""

_NOT_TRIED: Final = {
    "screen.expected": "needs a fixture, which says what it expects",
    "provider": "needs an agent: --provider module:factory",
    "screen": "needs facts that were read",
    "stream": "needs facts",
}
"""Requirement, or its first word → why a run may not have tried it."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What was tried."""

    kind: Kind
    name: str


class Counts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many cases ended how."""

    passed: int
    failed: int
    not_applicable: int


class Standings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where one requirement stands after the run."""

    id: str
    sentence: str
    source: str
    status: Standing
    reason: str | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A conformance run. `level` is the highest that was reached, None if not even facts were."""

    schema_version: str
    factwire: str
    subject: Subject
    conformant: bool
    level: Level | None
    counts: Counts
    results: tuple[Result, ...]
    requirements: tuple[Standings, ...]

    @property
    def failed(self) -> frozenset[str]:
        """The requirements that were found broken."""
        return frozenset(name for each in self.results for name in each.broken)

    @property
    def judged(self) -> int:
        """How many requirements were found kept or broken."""
        return sum(row.status in ("passed", "failed") for row in self.requirements)


def build_report(subject: Subject, results: Iterable[Result], upto: Level = "runtime") -> Report:
    """The report of results, up to a level."""
    wanted = LEVELS[: LEVELS.index(upto) + 1]
    kept = tuple(each for each in results if each.level in wanted)
    counts = _counts(kept)
    return Report(
        schema_version=REPORT_VERSION,
        factwire=__version__,
        subject=subject,
        conformant=counts.failed == 0 and counts.passed > 0,
        level=highest_level(kept),
        counts=counts,
        results=kept,
        requirements=build_standings(kept, upto, own=subject.kind == "factwire"),
    )


def highest_level(results: Iterable[Result]) -> Level | None:
    """The highest level without a failure up to it, and with something that passed at it."""
    statuses: dict[Level, set[Status]] = {}
    for each in results:
        statuses.setdefault(each.level, set()).add(each.status)
    level: Level | None = None
    for each in LEVELS:
        found = statuses.get(each, set())
        if "failed" in found or "passed" not in found:
            break
        level = each
    return level


def build_standings(
    results: Iterable[Result], upto: Level = "runtime", *, own: bool = True
) -> tuple[Standings, ...]:
    """Every requirement of the suite, with `own` all of Factwire's, and whatever was tried."""
    found = _outcomes_by_requirement(results)
    held_to = [name for name in REQUIREMENTS if own or name.startswith(_SUITE)]
    names = [*held_to, *(name for name in found if name not in held_to)]
    return tuple(_build_standing(name, found.get(name, []), upto) for name in names)


def encode_report(report: Report) -> bytes:
    return msgspec.json.encode(report)


def report_schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(Report),
    }


def report_files() -> dict[str, str]:
    """The schema as a file for readers in other languages."""
    return {"conformance-report.schema.json": document_text(report_schema())}


def _counts(results: tuple[Result, ...]) -> Counts:
    statuses = [each.status for each in results]
    return Counts(
        passed=statuses.count("passed"),
        failed=statuses.count("failed"),
        not_applicable=statuses.count("not-applicable"),
    )


def _outcomes_by_requirement(
    results: Iterable[Result],
) -> Mapping[str, list[tuple[Status, str | None]]]:
    """Requirement → what each case that exercised it says of it."""
    found: dict[str, list[tuple[Status, str | None]]] = {}
    for each in results:
        for name in dict.fromkeys((*each.requirements, *each.broken)):
            status: Status = each.status
            if status == "failed" and name not in each.broken:
                status = "passed"
            found.setdefault(name, []).append((status, each.reason))
    return found


def _build_standing(name: str, outcomes: list[tuple[Status, str | None]], upto: Level) -> Standings:
    known = REQUIREMENTS.get(name)
    statuses = {status for status, _ in outcomes}
    status: Standing = "not-tried"
    reason: str | None = _reason_not_tried(name, upto)
    for candidate in ("failed", "passed", "not-applicable"):
        if candidate in statuses:
            status = candidate
            reason = next((why for s, why in outcomes if s == candidate), None)
            break
    return Standings(
        id=name,
        sentence=known.sentence if known else "",
        source=known.source if known else "",
        status=status,
        reason=reason,
    )


def _reason_not_tried(name: str, upto: Level) -> str:
    first, _, _ = name.partition(".")
    at = {"stream": "facts", "screen": "projection", "provider": "runtime"}.get(first)
    if at is not None and LEVELS.index(at) > LEVELS.index(upto):  # pyright: ignore[reportArgumentType]
        return f"beyond the level that was asked for, {upto}"
    return KNOWN_GAPS.get(name) or _NOT_TRIED.get(name) or _NOT_TRIED.get(first) or _OWN
