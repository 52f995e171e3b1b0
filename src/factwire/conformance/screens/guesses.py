"""Guesses: a screen that says more than the facts do.

Every end on the screen, of a call, a request, a task, a subagent or the turn, is stated by a fact;
and where facts are missing, the screen does not look as if it had them all.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from factwire.conformance.case import Finding, broken
from factwire.facts import Fact, id_of
from factwire.facts.vocabulary import ACTION_CLOSERS, TURN_TERMINALS
from factwire.projection import ProjectionState

REQUIREMENT: Final = "screen.nothing-guessed"


class _Ending(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of thing on the screen: which id names it, how it reads when ended, what ends it."""

    noun: str
    id_name: str
    shown: Callable[[ProjectionState], dict[str, str]]
    ended: frozenset[str]
    classes: frozenset[str]


_ENDINGS: Final = (
    _Ending(
        noun="call",
        id_name="toolCallId",
        shown=lambda state: {key: tool.state for key, tool in state.tools.items()},
        ended=frozenset({"output-available", "output-error"}),
        classes=frozenset({"tool.result", "tool.failed"}),
    ),
    _Ending(
        noun="request",
        id_name="actionId",
        shown=lambda state: {key: action.status for key, action in state.actions.items()},
        ended=frozenset({"resolved", "cancelled", "expired"}),
        classes=frozenset(ACTION_CLOSERS),
    ),
    _Ending(
        noun="task",
        id_name="taskId",
        shown=lambda state: {key: task.status for key, task in state.tasks.items()},
        ended=frozenset({"completed"}),
        classes=frozenset({"task.completed", "subagent.completed", "worker.completed"}),
    ),
    _Ending(
        noun="turn",
        id_name="turnId",
        shown=lambda state: {
            state.runtime.latest_turn_id or "": state.runtime.latest_turn_status or ""
        },
        ended=frozenset({"completed", "failed", "canceled"}),
        classes=frozenset({*TURN_TERMINALS, "run.finished", "run.failed"}),
    ),
)


def guesses(facts: Sequence[Fact], state: ProjectionState) -> Iterator[Finding]:
    """What a state that no read model had a part in says without a fact."""
    for ending in _ENDINGS:
        stated = {id_of(f, ending.id_name) for f in facts if f.event_class in ending.classes}
        for name, status in ending.shown(state).items():
            if status in ending.ended and name not in stated:
                message = f"{ending.noun} {name} reads {status}, and no fact says so"
                yield broken(REQUIREMENT, message, level="projection", fact=_about(facts, name))
    yield from _hidden_gap(facts, state)


def _about(facts: Sequence[Fact], name: str) -> Fact | None:
    ids = ("toolCallId", "actionId", "taskId", "turnId")
    return next((f for f in reversed(facts) if name in {id_of(f, key) for key in ids}), None)


def _hidden_gap(facts: Sequence[Fact], state: ProjectionState) -> Iterator[Finding]:
    """A hole in the sequences of the thread that the screen does not own up to."""
    own = [fact for fact in facts if fact.thread_id in (None, state.thread_id)]
    known = sorted({fact.sequence for fact in own if fact.sequence is not None})
    whole = not known or len(known) == known[-1] - known[0] + 1
    says_so = state.hydration.status != "live" or any(_mends(fact) for fact in own)
    if not whole and not says_so:
        message = "sequences are missing, and the screen reads as if it had them all"
        yield broken(REQUIREMENT, message, level="projection", fact=own[-1])


def _mends(fact: Fact) -> bool:
    return (fact.event_class or "").startswith(
        ("snapshot.", "stream.repair.", "messages.", "history.")
    )
