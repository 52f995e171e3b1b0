"""The report of a conformance run, as data: what was judged, with which result, and what was not.

Every requirement that its subject is held to is in it. One that was not judged has a reason, and
the coverage of each level adds up: judged and not judged, by reason, are all of its requirements.
So a green report cannot hide how little was looked at. What Factwire promises of itself is only in
its own report: nobody else can keep or break that.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from factwire import __version__
from factwire.conformance.case import LEVELS, Level, Result, Status
from factwire.conformance.requirements import (
    KNOWN_GAPS,
    NOT_JUDGEABLE,
    REQUIREMENTS,
    level_of,
)
from factwire.facts.schemas.json_schema import struct_schema
from factwire.facts.schemas.schema_files import document_text

REPORT_VERSION: Final = "factwire-conformance/v1"

Kind = Literal["provider", "facts", "factwire", "reducer"]
Standing = Literal["passed", "failed", "not-applicable", "not-tried"]

_OWN: Final = "needs the test suite of the repository, which proves it"
_HELD_TO: Final[dict[Kind, tuple[str, ...]]] = {
    "provider": ("stream.", "screen.", "provider.", "supervisor."),
    "facts": ("stream.", "screen.", "provider."),
    "reducer": ("screen.",),
    "factwire": ("",),
}
"""Kind of subject → how the names of the requirements begin that it is held to."""

_LEVELLED: Final = frozenset({"stream", "screen", "provider", "supervisor"})
_JUDGED: Final = frozenset({"passed", "failed"})

_NEEDS_REDUCER: Final = "needs a reducer: --reducer module:function"
_REDUCER_ONLY: Final = (
    *("screen.early-snapshots", "screen.late-facts", "screen.counts", "screen.recovery"),
    *("screen.child-turns", "screen.one-part", "screen.cancelled-work", "screen.lenient"),
    *("screen.empty-repairs", "screen.restarts", "screen.lost-text", "screen.restored-doubts"),
)
_NEEDS_MAPPING: Final = "needs a mapping to UI events; the report about Factwire judges its own"
_NOT_TRIED: Final = {
    **dict.fromkeys(_REDUCER_ONLY, _NEEDS_REDUCER),
    "screen.ui-round-trip": _NEEDS_MAPPING,
    "screen.ui-repeats": _NEEDS_MAPPING,
    "screen.expected": "needs a fixture, which says what it expects",
    "provider": "needs an agent: --provider module:factory",
    "supervisor": "needs an agent: --provider module:factory",
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


class Unjudged(msgspec.Struct, frozen=True, kw_only=True):
    """How many requirements were not judged for one reason."""

    reason: str
    count: int


class Coverage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many requirements of a level there are, and how many were judged: `total` is `judged`
    and the counts of `not_judged` together.
    """

    level: Level
    total: int
    judged: int
    not_judged: tuple[Unjudged, ...]


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
    coverage: tuple[Coverage, ...]

    @property
    def failed(self) -> frozenset[str]:
        """The requirements that were found broken."""
        return frozenset(name for each in self.results for name in each.broken)

    @property
    def judged(self) -> int:
        """How many requirements were found kept or broken."""
        return sum(row.status in _JUDGED for row in self.requirements)


def build_report(subject: Subject, results: Iterable[Result], upto: Level = "runtime") -> Report:
    """The report of results, up to a level."""
    wanted = LEVELS[: LEVELS.index(upto) + 1]
    kept = tuple(each for each in results if each.level in wanted)
    counts = _counts(kept)
    standings = build_standings(kept, upto, kind=subject.kind)
    return Report(
        schema_version=REPORT_VERSION,
        factwire=__version__,
        subject=subject,
        conformant=counts.failed == 0 and counts.passed > 0,
        level=highest_level(kept),
        counts=counts,
        results=kept,
        requirements=standings,
        coverage=build_coverage(standings),
    )


def build_coverage(standings: Iterable[Standings]) -> tuple[Coverage, ...]:
    """The coverage of each level that has requirements; the most frequent reasons first."""
    rows: dict[Level, list[Standings]] = {}
    for row in standings:
        rows.setdefault(level_of(row.id), []).append(row)
    return tuple(_coverage_of(level, rows[level]) for level in LEVELS if level in rows)


def _coverage_of(level: Level, rows: list[Standings]) -> Coverage:
    reasons = Counter(row.reason or "" for row in rows if row.status not in _JUDGED)
    return Coverage(
        level=level,
        total=len(rows),
        judged=sum(row.status in _JUDGED for row in rows),
        not_judged=tuple(Unjudged(reason=why, count=n) for why, n in reasons.most_common()),
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
    results: Iterable[Result], upto: Level = "runtime", *, kind: Kind = "factwire"
) -> tuple[Standings, ...]:
    """Every requirement that a kind of subject is held to, and whatever was judged. Factwire itself
    is held to all of its own.
    """
    found = _outcomes_by_requirement(results)
    held_to = [name for name in REQUIREMENTS if name.startswith(_HELD_TO[kind])]
    names = [*held_to, *(name for name in found if name not in held_to)]
    return tuple(_build_standing(name, found.get(name, []), upto) for name in names)


def encode_report(report: Report) -> bytes:
    return msgspec.json.encode(report)


def report_schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **struct_schema(Report, {}),
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
            for other in _SAME_CHECK.get((each.id.partition(".")[0], name), ()):
                found.setdefault(other, []).append((status, each.reason))
    return found


_SAME_CHECK: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("fixture", "stream.schema"): ("seed.fixtures.valid",),
    ("fixture", "screen.expected"): ("seed.fixtures.expected",),
    ("fixture", "screen.first-screen"): ("seed.fixtures.first-screen",),
    ("fixture", "screen.replay"): ("seed.fixtures.replay",),
    ("fixture", "screen.refs"): ("seed.fixtures.refs",),
    ("fixture", "screen.nothing-guessed"): ("seed.prose.reworded",),
    ("delivery", "screen.order"): ("projection.law.order",),
    ("delivery", "screen.child-turns"): ("seed.runtime.entities",),
}
"""First word of a case and a requirement that it judges → requirements that say the same."""


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
    if first in _LEVELLED and LEVELS.index(level_of(name)) > LEVELS.index(upto):
        return f"beyond the level that was asked for, {upto}"
    tables = (KNOWN_GAPS.get(name), _NOT_TRIED.get(name), _NOT_TRIED.get(first))
    return next(filter(None, tables), None) or NOT_JUDGEABLE.get(first, _OWN)
