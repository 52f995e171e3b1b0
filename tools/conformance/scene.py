"""Scenes of scenarios: facts that are told, and expectations at places of the state document."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from factwire.conformance.scenario import SCENARIO_VERSION, Expectation, Scenario
from factwire.facts import write_fact

from .script import Script

After = int | UnsetType
"""How many facts have arrived; without it, all have."""


def equals(at: str, value: Any, after: After = UNSET) -> Expectation:
    return Expectation(at=at, equals=value, after=after)


def count(at: str, number: int, after: After = UNSET) -> Expectation:
    return Expectation(at=at, count=number, after=after)


def keys(at: str, *names: str, after: After = UNSET) -> Expectation:
    return Expectation(at=at, keys=sorted(names), after=after)


def lacks(at: str, text: str, after: After = UNSET) -> Expectation:
    return Expectation(at=at, lacks=text, after=after)


def absent(at: str, after: After = UNSET) -> Expectation:
    return Expectation(at=at, absent=True, after=after)


def text(message: int, part: int, words: str, after: After = UNSET) -> Expectation:
    """The words of one part of one message, counted from zero."""
    return equals(f"/messages/{message}/parts/{part}/text", words, after)


class SceneScript(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario as it is told."""

    scenario: Scenario

    @property
    def name(self) -> str:
        return self.scenario.id

    def text(self) -> bytes:
        """The scenario as the file that is kept of it."""
        return msgspec.json.format(msgspec.json.encode(self.scenario), indent=1) + b"\n"


Scene = Callable[[Script], list[Expectation]]


def scenario(
    title: str,
    source: str,
    requirement: str,
    issues: tuple[str, ...] = (),
    *,
    complete: bool = False,
) -> Callable[[Scene], SceneScript]:
    """Make a scenario of a scene, named as the scene is."""

    def make(scene: Scene) -> SceneScript:
        name = getattr(scene, "__name__", "").replace("_", "-")
        script = Script(name)
        expectations = scene(script)
        return SceneScript(
            scenario=Scenario(
                id=name,
                schema_version=SCENARIO_VERSION,
                title=title,
                source=source,
                requirement=requirement,
                read_model=script.initial,
                repair=script.repair,
                events=[write_fact(fact, "facts") for fact in script.facts],
                expectations=expectations,
                issues=list(issues),
                complete=complete,
            )
        )

    return make
