"""Judging screens: what the facts of threads come to, one result a requirement."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from factwire.conformance.case import Finding, Projector, broken, factwire_projector
from factwire.conformance.results import Result, result
from factwire.conformance.screens.families import Family, families
from factwire.conformance.screens.first_screen import repairs, restores, sent
from factwire.conformance.screens.guesses import guesses
from factwire.conformance.screens.refs import lost_refs, refs_of
from factwire.conformance.screens.replaying import replays
from factwire.facts import Fact
from factwire.projection import ProjectionState, project

NO_REFS: Final = "no fact states a ref"


class ScreenCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement of screens."""

    requirement: str
    title: str
    check: Callable[[Family, Projector], Iterator[Finding]]


def _replay(family: Family, projector: Projector) -> Iterator[Finding]:
    thread, facts = family
    return replays(facts, projector, thread)


def _first_screen(family: Family, _: Projector) -> Iterator[Finding]:
    thread, facts = family
    return restores(facts, thread)


def _repair(family: Family, _: Projector) -> Iterator[Finding]:
    thread, facts = family
    return repairs(facts, sent(project(facts, thread)), thread)


def _on_state(
    check: Callable[[Sequence[Fact], ProjectionState], Iterator[Finding]],
    family: Family,
    projector: Projector,
) -> Iterator[Finding]:
    return check(family[1], projector(family[1], None))


SCREEN_CHECKS: Final = (
    ScreenCheck(requirement="screen.replay", title="Replay repeats nothing", check=_replay),
    ScreenCheck(
        requirement="screen.first-screen",
        title="A read model restores the first screen",
        check=_first_screen,
    ),
    ScreenCheck(requirement="screen.repair", title="A cut stream is repaired", check=_repair),
    ScreenCheck(
        requirement="screen.refs", title="No ref is lost", check=partial(_on_state, lost_refs)
    ),
    ScreenCheck(
        requirement="screen.nothing-guessed",
        title="Nothing is guessed",
        check=partial(_on_state, guesses),
    ),
)


def screened(facts: Sequence[Fact], projector: Projector = factwire_projector) -> list[Result]:
    """A result for each requirement of screens, over all threads among the facts."""
    found = families(facts)
    return [_screened(check, found, projector) for check in SCREEN_CHECKS]


def _screened(check: ScreenCheck, found: list[Family], projector: Projector) -> Result:
    reason = None if found else "there are no facts"
    if check.requirement == "screen.refs" and not any(
        True for _, facts in found for fact in facts for _ in refs_of(fact)
    ):
        reason = NO_REFS
    findings = [finding for family in found for finding in _found(check, family, projector)]
    needs = (check.requirement,)
    return result(check.requirement, check.title, "projection", needs, findings, reason=reason)


def _found(check: ScreenCheck, family: Family, projector: Projector) -> list[Finding]:
    try:
        return list(check.check(family, projector))
    except Exception as error:  # noqa: BLE001 - a projection that raises shows nothing at all
        message = f"the projection raised {type(error).__name__}: {error}"
        last = family[1][-1]
        return [broken(check.requirement, message, level="projection", fact=last)]
