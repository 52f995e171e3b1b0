"""A case: one thing that is tried, what it found wrong, and the result that a report shows.

Cases know nothing of reports, and nothing of what is tried beyond what they are handed. A case that
finds nothing has passed; every finding names the requirement that is broken and, where there is
one, the fact that shows it. What does not apply says why. Findings are bounded, redacted and cut to
what a person reads, so that a report can be handed on.

Why something cannot be tried at all, each with a stable code.

ConformanceError
├── UnknownModule    the module of `module:factory` is not there, or fails to load
├── UnknownFactory   the module has nothing of that name
├── BrokenFactory    the factory raised
├── NotAProvider     what the factory made lacks what a provider has
├── NotAReducer      what `module:function` names cannot be called
├── UnknownMinimum   a prompt is given for something that is no minimum
└── EmptyStream      there is not one fact to judge
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, Protocol, cast

import msgspec

from factwire.conformance.limits import FINDINGS_KEPT, SHOWN_CHARACTERS, SHOWN_ITEMS
from factwire.facts import Fact, redact_text, redact_value, write_fact
from factwire.facts.limits import NESTING_DEPTH
from factwire.projection import Projection, ProjectionState, ThreadReadModel, project

Level = Literal["facts", "projection", "runtime", "supervisor"]

LEVELS: Final[tuple[Level, ...]] = ("facts", "projection", "runtime", "supervisor")
"""In the order in which they are reached: each one presupposes those before it."""

Projector = Callable[..., ProjectionState]
"""A reducer of Python objects: facts and a read model or None, to a state. It may have the same
further parameters as a reducer.
"""


Wire = dict[str, Any]
"""A JSON object."""

Reducer = Callable[[Sequence[Wire], Wire | None], Wire]
"""What is judged by a projection case: facts in shape A, in the order in which they arrive, and a
read model or None, to a state document. One that has a third parameter is given a newer read model
in it, which comes after the facts. One that has a parameter `complete` is given True in it where
the facts are a whole file, in whatever order: it may put them in order before it reduces them.
"""


class FullReducer(Protocol):
    """A reducer that has every parameter."""

    def __call__(
        self,
        events: Sequence[Wire],
        model: Wire | None,
        repair: Wire | None = None,
        *,
        complete: bool = False,
    ) -> Wire: ...


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One way in which a requirement is broken; `fact` is the one that shows it, in shape A."""

    requirement: str
    message: str
    level: Level
    fact_id: str | None = None
    fact: dict[str, Any] | None = None
    path: str | None = None


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """`run` judges a reducer and yields what is wrong with it. `requirements` are those that the
    case judges; it reports no other as broken.
    """

    id: str
    title: str
    source: str
    requirements: tuple[str, ...]
    level: Level
    run: Callable[[Reducer], Iterable[Finding]]


def build_finding(
    requirement: str,
    message: str,
    *,
    level: Level,
    fact: Fact | None = None,
    path: str | None = None,
) -> Finding:
    """A finding about a requirement, shown by a fact."""
    return Finding(
        requirement=requirement,
        message=message,
        level=level,
        fact_id=None if fact is None else fact.id,
        fact=None if fact is None else write_fact(fact, "facts"),
        path=path,
    )


def factwire_projector(
    facts: Sequence[Fact],
    model: ThreadReadModel | None,
    repair: ThreadReadModel | None = None,
    *,
    complete: bool = False,
) -> ProjectionState:
    """Factwire's own projection: of facts as they arrive, or of a complete list of them."""
    if complete and model is None and repair is None:
        return project(facts)
    projection = Projection() if model is None else Projection.from_read_model(model)
    projection.apply_all(facts)
    if repair is not None:
        projection.repair(repair)
    return projection.state


Status = Literal["passed", "failed", "not-applicable"]

_DEEP: Final = "…"


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What came of one case. `findings_omitted` counts those that are not spelt out."""

    id: str
    title: str
    level: Level
    requirements: tuple[str, ...]
    status: Status
    findings: tuple[Finding, ...] = ()
    findings_omitted: int = 0
    reason: str | None = None
    source: str | None = None

    @property
    def broken(self) -> frozenset[str]:
        """The requirements that this case found broken."""
        return frozenset(finding.requirement for finding in self.findings)


def build_result(
    case_id: str,
    title: str,
    level: Level,
    requirements: tuple[str, ...],
    findings: Iterable[Finding],
    *,
    reason: str | None = None,
    source: str | None = None,
) -> Result:
    """A result from findings; `reason` says why there was nothing to try, where there was not."""
    found = list(findings)
    kept, omitted = _keep_first(found)
    status: Status = "failed" if found else "not-applicable" if reason else "passed"
    return Result(
        id=case_id,
        title=title,
        level=level,
        requirements=requirements,
        status=status,
        findings=tuple(redact_finding(finding) for finding in kept),
        findings_omitted=omitted,
        reason=None if found else reason,
        source=source,
    )


def _keep_first(findings: list[Finding]) -> tuple[list[Finding], int]:
    """The first findings of each requirement, and how many others there were."""
    counts: dict[str, int] = {}
    kept: list[Finding] = []
    for finding in findings:
        counts[finding.requirement] = counts.get(finding.requirement, 0) + 1
        if counts[finding.requirement] <= FINDINGS_KEPT:
            kept.append(finding)
    return kept, len(findings) - len(kept)


def redact_finding(finding: Finding) -> Finding:
    """The finding without secrets, and without more of a fact than a person reads."""
    fact = None if finding.fact is None else redact_value(finding.fact)[0]
    return msgspec.structs.replace(
        finding,
        message=_cut_text(redact_text(finding.message)[0]),
        fact_id=None if finding.fact_id is None else _cut_text(redact_text(finding.fact_id)[0]),
        path=None if finding.path is None else _cut_text(redact_text(finding.path)[0]),
        fact=cast("dict[str, Any] | None", _cut_value(fact, 0)),
    )


def _cut_value(value: object, depth: int) -> object:
    if isinstance(value, str):
        return _cut_text(value)
    if depth > NESTING_DEPTH:
        return _DEEP
    if isinstance(value, dict):
        fields = list(cast("dict[str, object]", value).items())
        cut = {
            _cut_text(str(key)): _cut_value(item, depth + 1) for key, item in fields[:SHOWN_ITEMS]
        }
        return cut | ({_DEEP: len(fields) - SHOWN_ITEMS} if len(fields) > SHOWN_ITEMS else {})
    if isinstance(value, list | tuple):
        items = list(cast("list[object]", value))
        cut_items = [_cut_value(item, depth + 1) for item in items[:SHOWN_ITEMS]]
        return cut_items + ([_DEEP] if len(items) > SHOWN_ITEMS else [])
    return value


def _cut_text(text: str) -> str:
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}… ({len(text):,} characters)"


class ConformanceError(Exception):
    """The root; `code` never changes, the words may."""

    code = "conformance_error"


class UnknownModule(ConformanceError):
    code = "unknown_module"


class UnknownFactory(ConformanceError):
    code = "unknown_factory"


class BrokenFactory(ConformanceError):
    code = "broken_factory"


class NotAProvider(ConformanceError):
    code = "not_a_provider"


class NotAReducer(ConformanceError):
    code = "not_a_reducer"


class UnknownMinimum(ConformanceError):
    code = "unknown_minimum"


class EmptyStream(ConformanceError):
    code = "empty_stream"
