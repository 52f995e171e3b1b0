"""`Comparison`: how two runs differ, turn by turn, as data.

A difference is something that facts state otherwise. Ids and times are none, and how long
something took is a figure beside the others that decides nothing.
"""

from typing import Any, Final, Literal, get_args

import msgspec

COMPARISON_VERSION: Final = "factwire-comparison/v1"

Aspect = Literal[
    "prompt",
    "outcome",
    "answers",
    "plans",
    "tools",
    "approvals",
    "files",
    "artifacts",
    "agents",
    "tasks",
    "evidence",
    "trials",
    "errors",
    "models",
    "cost",
]

ASPECTS: Final[tuple[Aspect, ...]] = get_args(Aspect)
"""What is compared of every turn, in the order in which it is told."""

TurnMatch = Literal["same", "differs", "only_a", "only_b"]
DifferenceKind = Literal["added", "removed", "changed", "moved"]


class ComparisonPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The root of what a comparison consists of; what is not there is absent."""


class TextLine(ComparisonPart, frozen=True):
    """One line of a text's diff; `left_out` lines that are the same come before it."""

    side: Literal["both", "a", "b"]
    text: str
    left_out: int = 0


class TextChange(ComparisonPart, frozen=True):
    """A text that reads otherwise: the lines that differ with some around them. `left_out` counts
    lines of the diff that are not listed.
    """

    removed_lines: int
    added_lines: int
    lines: list[TextLine]
    left_out: int = 0


class Change(ComparisonPart, frozen=True):
    """One field that differs: its two values, or the diff of its text where that is long. A side
    on which the field is not there has no value.
    """

    field: str
    a: Any = None
    b: Any = None
    text: TextChange | None = None


class Difference(ComparisonPart, frozen=True):
    """One thing that is not the same: only in B (`added`), only in A (`removed`), in both with
    other values (`changed`), or in both at another place among its like (`moved`). `at_a` and
    `at_b` are its places among the things of this aspect in the turn, from 1.
    """

    aspect: Aspect
    kind: DifferenceKind
    subject: str
    at_a: int | None = None
    at_b: int | None = None
    changes: list[Change] = msgspec.field(default_factory=list["Change"])


class Figures(ComparisonPart, frozen=True, omit_defaults=False):
    """What a turn or a run took. Time is between its first and its last fact."""

    duration_ms: float | None = None
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float = 0.0


class TurnSide(ComparisonPart, frozen=True):
    """A turn in one of the runs; `number` counts from 1, `by` names the subagent whose it is."""

    number: int
    turn_id: str
    prompt: str
    figures: Figures
    by: str | None = None


class TurnComparison(ComparisonPart, frozen=True):
    """A turn and its counterpart, as far as there is one."""

    status: TurnMatch
    a: TurnSide | None = None
    b: TurnSide | None = None
    differences: list[Difference] = msgspec.field(default_factory=list["Difference"])


class RunSide(ComparisonPart, frozen=True):
    """One of the two runs as a whole. `hydration` says whether its facts are all there."""

    facts: int
    turns: int
    hydration: str
    figures: Figures
    thread_id: str | None = None
    title: str | None = None


class Comparison(ComparisonPart, frozen=True):
    """Two runs, A and B. `outside` is what differs beside all turns."""

    schema_version: str
    same: bool
    a: RunSide
    b: RunSide
    aspects: list[Aspect]
    turns: list[TurnComparison]
    outside: list[Difference]


def narrow_comparison(
    comparison: Comparison, *, aspects: frozenset[Aspect] | None = None, turn: int | None = None
) -> Comparison:
    """The comparison of these aspects alone, or of the turn that has this number in A or B."""
    turns = [
        _narrow_turn(each, aspects)
        for each in comparison.turns
        if turn is None or turn in {side.number for side in (each.a, each.b) if side is not None}
    ]
    outside = [] if turn is not None else _keep_aspects(comparison.outside, aspects)
    return msgspec.structs.replace(
        comparison,
        same=not outside and all(each.status == "same" for each in turns),
        aspects=[each for each in comparison.aspects if aspects is None or each in aspects],
        turns=turns,
        outside=outside,
    )


def _narrow_turn(turn: TurnComparison, aspects: frozenset[Aspect] | None) -> TurnComparison:
    kept = _keep_aspects(turn.differences, aspects)
    status = "same" if turn.status == "differs" and not kept else turn.status
    return msgspec.structs.replace(turn, status=status, differences=kept)


def _keep_aspects(
    differences: list[Difference], aspects: frozenset[Aspect] | None
) -> list[Difference]:
    return [each for each in differences if aspects is None or each.aspect in aspects]
