"""Turns made up for a test, told as a source tells them; and streams of those that are on file."""

from collections.abc import Callable
from functools import cache

from factwire.conformance.fixture_checks import fixture, fixture_names
from factwire.facts import Fact
from factwire.sources import FactBuilder
from tests.outlets.gists import facts_in_order
from tests.sources.recordings import RECORDINGS, facts_of, name_of

ON_FILE = (
    *(name_of(path) for path in RECORDINGS),
    *(f"fixture/{name}" for name in fixture_names()),
)


@cache
def facts_on_file(name: str) -> tuple[Fact, ...]:
    """The facts of a recording or of a fixture."""
    folder, _, rest = name.partition("/")
    if folder == "fixture":
        return tuple(facts_in_order(fixture(rest)))
    return tuple(facts_of(next(path for path in RECORDINGS if name_of(path) == name)))


def build_turn(*acts: Callable[[FactBuilder], object]) -> list[Fact]:
    """The facts of one turn."""
    telling = FactBuilder("demo", thread_id="thread", at="2026-06-10T08:00:00.000Z")
    telling.begin_turn("Do it.", turn_id="turn")
    for act in acts:
        act(telling)
    return telling.drain()
