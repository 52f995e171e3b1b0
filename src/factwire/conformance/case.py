"""A case: one thing that is tried, the requirements that it exercises, and what it found wrong.

Cases know nothing of reports, and nothing of what is tried beyond what they are handed. A case that
finds nothing has passed; every finding names the requirement that is broken and, where there is
one, the fact that shows it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

import msgspec

from factwire.facts import Fact, write_fact
from factwire.projection import Projection, ProjectionState, ThreadReadModel

Level = Literal["facts", "projection", "runtime"]

LEVELS: Final[tuple[Level, ...]] = ("facts", "projection", "runtime")
"""In the order in which they are reached: each one presupposes those before it."""

Projector = Callable[[Sequence[Fact], ThreadReadModel | None], ProjectionState]
"""What is tried by a projection case: facts, maybe on top of a read model, make a state. One that
has a third parameter is given a newer read model in it, which comes after the facts.
"""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One way in which a requirement is broken; `fact` is the one that shows it, in shape A."""

    requirement: str
    message: str
    level: Level
    fact_id: str | None = None
    fact: dict[str, Any] | None = None
    path: str | None = None


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """`run` is handed a projector, and yields what is wrong. `requirements` are those that it
    exercises; it may find no other broken.
    """

    id: str
    title: str
    source: str
    requirements: tuple[str, ...]
    level: Level
    run: Callable[[Projector], Iterable[Finding]]


def broken(
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
    facts: Sequence[Fact], model: ThreadReadModel | None, repair: ThreadReadModel | None = None
) -> ProjectionState:
    """Factwire's own projection."""
    projection = Projection() if model is None else Projection.from_read_model(model)
    projection.apply_all(facts)
    if repair is not None:
        projection.repair(repair)
    return projection.state
