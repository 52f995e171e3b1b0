"""Evaluating the assertions of a pack against what its facts come to.

Each assertion passes or fails, with the fact that shows it where there is one. Facts are projected
by the same rules as on every screen; nothing is read from text but the answer that is asserted.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

import msgspec

from factwire.evidence.assertions import (
    AnswerContains,
    AnswerEquals,
    AnyAssertion,
    ApprovalDecision,
    ArtifactExists,
    FactCount,
    FileChanged,
    ProjectionEquals,
    ReplayCase,
    ToolCalled,
    ToolStatus,
    TurnOutcome,
)
from factwire.evidence.manifest import Wire
from factwire.evidence.shown import Shown, shown_by
from factwire.facts import Fact
from factwire.facts.classification import KNOWN_CLASSES
from factwire.projection import Document, PatchFailed, conversation
from factwire.projection.parts import Message, TextPart
from factwire.projection.tools import Tool

Found = tuple[bool, str, str | None]
"""Whether it holds, what was found, and the fact that shows it."""

_EXCERPT: Final = 120
_OF_TURN: Final = (TurnOutcome, AnswerEquals, AnswerContains)


class AssertionResult(Wire, frozen=True):
    """One assertion, and how it went."""

    case: str
    number: int
    assertion: AnyAssertion
    passed: bool
    found: str
    fact_id: str | None = None


def check(
    facts: Iterable[Fact], cases: Iterable[ReplayCase], *, kept: bool
) -> list[AssertionResult]:
    """Every assertion of every case, in order; `kept` is whether holes were made on purpose."""
    given = list(cases)
    wanted = {each.thread_id for case in given for each in case.assertions}
    shown = shown_by(facts, wanted, kept=kept)
    return [
        _result(case.name, number, assertion, shown)
        for case in given
        for number, assertion in enumerate(case.assertions)
    ]


def _result(case: str, number: int, assertion: AnyAssertion, shown: Shown) -> AssertionResult:
    evaluate = cast("Callable[[AnyAssertion, Shown], Found]", _EVALUATORS[type(assertion)])
    nothing = _missing(assertion, shown)
    passed, found, fact_id = (
        evaluate(assertion, shown) if nothing is None else (False, nothing, None)
    )
    return AssertionResult(
        case=case,
        number=number,
        assertion=assertion,
        passed=passed,
        found=found,
        fact_id=fact_id,
    )


def _missing(assertion: AnyAssertion, shown: Shown) -> str | None:
    """What the assertion is about and no fact is of: nothing holds for it, nor fails to."""
    if assertion.thread_id is not None and not shown.has_thread(assertion.thread_id):
        return f"there is no thread {assertion.thread_id}"
    turn = assertion.turn_id if isinstance(assertion, _OF_TURN) else None
    return None if turn is None or shown.has_turn(turn) else f"there is no turn {turn}"


def _turn_outcome(wanted: TurnOutcome, shown: Shown) -> Found:
    turn = wanted.turn_id or shown.last_turn(wanted.thread_id)
    ended = shown.turn(turn)
    if ended is None:
        return False, "there is no turn" if turn is None else f"turn {turn} has no end", None
    outcome, fact_id = ended
    return outcome == wanted.outcome, f"turn {turn} {outcome}", fact_id


def _answer_equals(wanted: AnswerEquals, shown: Shown) -> Found:
    turn = wanted.turn_id or shown.last_turn(wanted.thread_id)
    text = "".join(_said(shown, wanted.thread_id, turn))
    return text == wanted.text, f"the answer was {_short(text)!r}", shown.witness("answer", turn)


def _answer_contains(wanted: AnswerContains, shown: Shown) -> Found:
    for message in conversation(shown.state(wanted.thread_id)):
        right = wanted.turn_id in (None, message.turn_id)
        if message.role == "assistant" and right and wanted.text in _text(message):
            witness = shown.witness("answer", message.turn_id)
            return True, f"message {message.message_id} holds it", witness
    return False, "no answer holds it", None


def _tool_called(wanted: ToolCalled, shown: Shown) -> Found:
    named = _calls(shown, wanted.thread_id, wanted.tool_name)
    calls = [tool for tool in named if _has_args(tool, wanted.args)]
    noun = "call" if len(named) == 1 else "calls"
    found = f"{len(named)} {noun} of {wanted.tool_name}, {len(calls)} with these arguments"
    enough = len(calls) > 0 if wanted.times is None else len(calls) == wanted.times
    return enough, found, _tool_witness(shown, calls or named)


def _tool_status(wanted: ToolStatus, shown: Shown) -> Found:
    tools = shown.state(wanted.thread_id).tools
    if wanted.tool_call_id is not None:
        calls = [tools[wanted.tool_call_id]] if wanted.tool_call_id in tools else []
    else:
        calls = _calls(shown, wanted.thread_id, wanted.tool_name or "")
    other = [tool for tool in calls if tool.state != wanted.state]
    if not calls:
        return False, "there is no such call", None
    states = ", ".join(f"{tool.tool_call_id} {tool.state}" for tool in (other or calls)[:5])
    return not other, states, _tool_witness(shown, other or calls)


def _approval(wanted: ApprovalDecision, shown: Shown) -> Found:
    actions = shown.state(wanted.thread_id).actions
    if wanted.action_id is None:
        known = list(actions.values())
    else:
        known = [actions[wanted.action_id]] if wanted.action_id in actions else []
    for action in known:
        if action.decision == wanted.decision:
            witness = shown.witness("action", action.action_id)
            return True, f"{action.action_id} {action.decision}", witness
    if not known:
        return False, "no decision was asked for", None
    told = ", ".join(
        f"{action.action_id} {action.decision or action.status}" for action in known[:5]
    )
    return False, told, shown.witness("action", known[0].action_id)


def _file_changed(wanted: FileChanged, shown: Shown) -> Found:
    file = shown.state(wanted.thread_id).coding.files.get(wanted.path)
    if file is None or not file.changes:
        return False, f"{wanted.path} was not changed", None
    right = wanted.change in (None, file.change)
    return right, f"{wanted.path} {file.change or 'changed'}", shown.witness("file", wanted.path)


def _artifact_exists(wanted: ArtifactExists, shown: Shown) -> Found:
    for artifact in shown.state(wanted.thread_id).artifacts.values():
        same = (
            wanted.artifact_id in (None, artifact.artifact_id)
            and wanted.title in (None, artifact.title)
            and wanted.kind in (None, artifact.kind)
        )
        if same and artifact.status != "deleted":
            witness = shown.witness("artifact", artifact.artifact_id)
            return True, f"{artifact.artifact_id} is {artifact.status}", witness
    return False, "there is no such artifact", None


def _count(wanted: FactCount, shown: Shown) -> Found:
    count, fact_id = shown.count(wanted.event_class)
    low = wanted.equals if wanted.equals is not None else wanted.at_least
    high = wanted.equals if wanted.equals is not None else wanted.at_most
    right = (low is None or count >= low) and (high is None or count <= high)
    if not count and not _is_known(wanted.event_class):
        # A slip of the pen is never there, and would hold for ever as "none of these".
        return False, f"no fact is of {wanted.event_class}, and there is no such class", None
    return right, f"{count} {'fact' if count == 1 else 'facts'} of {wanted.event_class}", fact_id


def _is_known(event_class: str) -> bool:
    below = f"{event_class.removesuffix('.')}."
    return any(f"{name}.".startswith(below) for name in KNOWN_CLASSES)


def _pointer(wanted: ProjectionEquals, shown: Shown) -> Found:
    try:
        value = Document(shown.document(wanted.thread_id)).at(wanted.pointer)
    except (PatchFailed, ValueError) as error:
        return False, f"nothing is there: {error}", None
    found = _short(msgspec.json.encode(value).decode())
    return value == wanted.equals, f"{wanted.pointer} is {found}", None


_EVALUATORS: Final[dict[type, Callable[[Any, Shown], Found]]] = {
    TurnOutcome: _turn_outcome,
    AnswerEquals: _answer_equals,
    AnswerContains: _answer_contains,
    ToolCalled: _tool_called,
    ToolStatus: _tool_status,
    ApprovalDecision: _approval,
    FileChanged: _file_changed,
    ArtifactExists: _artifact_exists,
    FactCount: _count,
    ProjectionEquals: _pointer,
}


def _calls(shown: Shown, thread: str | None, name: str) -> list[Tool]:
    return [tool for tool in shown.state(thread).tools.values() if tool.tool_name == name]


def _has_args(tool: Tool, wanted: dict[str, Any] | None) -> bool:
    if wanted is None:
        return True
    args: object = tool.args
    if not isinstance(args, dict):
        return False
    given = cast("dict[str, Any]", args)
    return all(name in given and given[name] == value for name, value in wanted.items())


def _tool_witness(shown: Shown, calls: list[Tool]) -> str | None:
    return shown.witness("tool", calls[0].tool_call_id) if calls else None


def _said(shown: Shown, thread: str | None, turn: str | None) -> list[str]:
    messages = conversation(shown.state(thread))
    return [_text(each) for each in messages if each.role == "assistant" and each.turn_id == turn]


def _text(message: Message) -> str:
    return "".join(str(part.text) for part in message.parts if isinstance(part, TextPart))


def _short(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"
