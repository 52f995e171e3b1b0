"""Checking the assertions of a pack against what its facts come to.

Each assertion passes or fails, with the fact that shows it where there is one. Facts are projected
by the same rules as on every screen; nothing is read from text but the answer that is asserted.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

import msgspec

from factwire.evidence.pack_format import PackStruct
from factwire.evidence.replay_cases import (
    AnswerContains,
    AnswerEquals,
    AnyAssertion,
    ApprovalDecided,
    ArtifactExists,
    FactCount,
    FileChanged,
    ProjectionEquals,
    ReplayCase,
    ToolCalled,
    ToolStatus,
    TurnOutcome,
)
from factwire.facts import Fact, id_of
from factwire.facts.classes.class_tables import KNOWN_CLASSES, TURN_OUTCOMES
from factwire.facts.json_patch import InvalidPatch, JsonDocument
from factwire.journal.filter import find_thread_id
from factwire.projection import Projection, ProjectionState, conversation, order_facts
from factwire.projection.artifacts import artifact_ids
from factwire.projection.messages import Message, TextPart
from factwire.projection.payload_fields import outcome_of
from factwire.projection.tools import Tool


class PackView:
    """The whole of a pack's facts, in memory; a check is for cases, not for years."""

    def __init__(self, projections: dict[str | None, Projection]) -> None:
        self._projections = projections
        self._witnesses: dict[tuple[str, str], str] = {}
        self._turns: dict[str, tuple[str, str]] = {}
        self._last_turn: dict[str | None, str] = {}
        self._counts: Counter[str] = Counter()
        self._latest: dict[str, str] = {}
        self._documents: dict[str | None, Any] = {}
        self._known: set[tuple[str, str]] = set()

    def state(self, thread: str | None) -> ProjectionState:
        return self._projections[thread].state

    def document(self, thread: str | None) -> Any:
        """The state as plain JSON."""
        if thread not in self._documents:
            self._documents[thread] = msgspec.json.decode(self._projections[thread].snapshot())
        return self._documents[thread]

    def has_thread(self, thread: str) -> bool:
        """Whether a fact is of this thread."""
        return ("thread", thread) in self._known

    def has_turn(self, turn: str) -> bool:
        """Whether a fact is of this turn."""
        return ("turn", turn) in self._known

    def turn(self, turn_id: str | None) -> tuple[str, str] | None:
        """How a turn ended, and the fact that says so."""
        return None if turn_id is None else self._turns.get(turn_id)

    def last_turn(self, thread: str | None) -> str | None:
        state = self._projections[thread].state
        return self._last_turn.get(state.thread_id)

    def witness(self, kind: str, name: str | None) -> str | None:
        return None if name is None else self._witnesses.get((kind, name))

    def count(self, event_class: str) -> tuple[int, str | None]:
        """How many facts are of a class or below it, and the last of them."""
        below = f"{event_class.removesuffix('.')}."
        names = [name for name in self._counts if f"{name}.".startswith(below)]
        latest = [self._latest[name] for name in names]
        return sum(self._counts[name] for name in names), latest[-1] if latest else None

    def note(self, fact: Fact) -> None:
        """Remember which fact shows what."""
        name = fact.event_class or "none"
        self._counts[name] += 1
        self._latest.pop(name, None)
        self._latest[name] = fact.id
        turn, thread = id_of(fact, "turnId"), find_thread_id(fact)
        if thread is not None:
            self._known.add(("thread", thread))
        if turn is not None:
            self._known.add(("turn", turn))
            self._last_turn[thread] = turn
            if name in TURN_OUTCOMES:
                self._turns[turn] = outcome_of(fact), fact.id
            if name.startswith(("model.", "text.")):
                self._witnesses["answer", turn] = fact.id
        for kind, key in _find_subjects(fact, name):
            self._witnesses[kind, key] = fact.id


def build_pack_view(
    facts: Iterable[Fact], threads: Iterable[str | None], *, kept: bool
) -> PackView:
    """Project some threads, with those of their subagents; None stands for the first thread."""
    projections = {thread: Projection(thread) for thread in {*threads, None}}
    view = PackView(projections)
    takes = [each.replay if kept else each.apply_ordered for each in projections.values()]
    for fact in facts if kept else order_facts(facts):
        view.note(fact)
        for take in takes:
            take(fact)
    for projection in projections.values():
        projection.close()
    return view


def _find_subjects(fact: Fact, name: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    tool, action, path = (
        id_of(fact, "toolCallId"),
        id_of(fact, "actionId"),
        fact.payload.get("path"),
    )
    if tool is not None and name.startswith("tool."):
        found.append(("tool", tool))
    if action is not None and name.startswith("action."):
        found.append(("action", action))
    if isinstance(path, str) and name == "file.changed":
        found.append(("file", path))
    if name.startswith("artifact.") or name == "file.changed":
        found += [("artifact", each) for each in artifact_ids(fact)]
    return found


Verdict = tuple[bool, str, str | None]
"""Whether it holds, what was found, and the fact that shows it."""

_EXCERPT: Final = 120
_OF_TURN: Final = (TurnOutcome, AnswerEquals, AnswerContains)


class AssertionResult(PackStruct, frozen=True):
    """One assertion, and how it went."""

    case: str
    number: int
    assertion: AnyAssertion
    passed: bool
    found: str
    fact_id: str | None = None


def check_cases(
    facts: Iterable[Fact], cases: Iterable[ReplayCase], *, kept: bool
) -> list[AssertionResult]:
    """Every assertion of every case, in order; `kept` is whether holes were made on purpose."""
    case_list = list(cases)
    wanted = {each.thread_id for case in case_list for each in case.assertions}
    view = build_pack_view(facts, wanted, kept=kept)
    return [
        _check_assertion(case.name, number, assertion, view)
        for case in case_list
        for number, assertion in enumerate(case.assertions)
    ]


def _check_assertion(
    case: str, number: int, assertion: AnyAssertion, view: PackView
) -> AssertionResult:
    evaluate = cast("Callable[[AnyAssertion, PackView], Verdict]", _EVALUATORS[type(assertion)])
    nothing = _find_missing(assertion, view)
    passed, found, fact_id = (
        evaluate(assertion, view) if nothing is None else (False, nothing, None)
    )
    return AssertionResult(
        case=case,
        number=number,
        assertion=assertion,
        passed=passed,
        found=found,
        fact_id=fact_id,
    )


def _find_missing(assertion: AnyAssertion, view: PackView) -> str | None:
    """What the assertion is about and no fact is of: nothing holds for it, nor fails to."""
    if assertion.thread_id is not None and not view.has_thread(assertion.thread_id):
        return f"there is no thread {assertion.thread_id}"
    turn = assertion.turn_id if isinstance(assertion, _OF_TURN) else None
    return None if turn is None or view.has_turn(turn) else f"there is no turn {turn}"


def _check_turn_outcome(wanted: TurnOutcome, view: PackView) -> Verdict:
    turn = wanted.turn_id or view.last_turn(wanted.thread_id)
    ended = view.turn(turn)
    if ended is None:
        return False, "there is no turn" if turn is None else f"turn {turn} has no end", None
    outcome, fact_id = ended
    return outcome == wanted.outcome, f"turn {turn} {outcome}", fact_id


def _check_answer_equals(wanted: AnswerEquals, view: PackView) -> Verdict:
    turn = wanted.turn_id or view.last_turn(wanted.thread_id)
    text = "".join(_read_answers(view, wanted.thread_id, turn))
    return text == wanted.text, f"the answer was {_shorten(text)!r}", view.witness("answer", turn)


def _check_answer_contains(wanted: AnswerContains, view: PackView) -> Verdict:
    for message in conversation(view.state(wanted.thread_id)):
        right = wanted.turn_id in (None, message.turn_id)
        if message.role == "assistant" and right and wanted.text in _join_text(message):
            witness = view.witness("answer", message.turn_id)
            return True, f"message {message.message_id} contains it", witness
    return False, "no answer contains it", None


def _check_tool_called(wanted: ToolCalled, view: PackView) -> Verdict:
    named = _find_calls(view, wanted.thread_id, wanted.tool_name)
    calls = [tool for tool in named if _has_args(tool, wanted.args)]
    noun = "call" if len(named) == 1 else "calls"
    found = f"{len(named)} {noun} of {wanted.tool_name}, {len(calls)} with these arguments"
    enough = len(calls) > 0 if wanted.times is None else len(calls) == wanted.times
    return enough, found, _find_tool_witness(view, calls or named)


def _check_tool_status(wanted: ToolStatus, view: PackView) -> Verdict:
    tools = view.state(wanted.thread_id).tools
    if wanted.tool_call_id is not None:
        calls = [tools[wanted.tool_call_id]] if wanted.tool_call_id in tools else []
    else:
        calls = _find_calls(view, wanted.thread_id, wanted.tool_name or "")
    other = [tool for tool in calls if tool.state != wanted.state]
    if not calls:
        return False, "there is no such call", None
    states = ", ".join(f"{tool.tool_call_id} {tool.state}" for tool in (other or calls)[:5])
    return not other, states, _find_tool_witness(view, other or calls)


def _check_approval(wanted: ApprovalDecided, view: PackView) -> Verdict:
    actions = view.state(wanted.thread_id).actions
    if wanted.action_id is None:
        existing = list(actions.values())
    else:
        existing = [actions[wanted.action_id]] if wanted.action_id in actions else []
    for action in existing:
        if action.decision == wanted.decision:
            witness = view.witness("action", action.action_id)
            return True, f"{action.action_id} {action.decision}", witness
    if not existing:
        return False, "no decision was requested", None
    decisions = ", ".join(
        f"{action.action_id} {action.decision or action.status}" for action in existing[:5]
    )
    return False, decisions, view.witness("action", existing[0].action_id)


def _check_file_changed(wanted: FileChanged, view: PackView) -> Verdict:
    file = view.state(wanted.thread_id).coding.files.get(wanted.path)
    if file is None or not file.changes:
        return False, f"{wanted.path} was not changed", None
    right = wanted.change in (None, file.change)
    return right, f"{wanted.path} {file.change or 'changed'}", view.witness("file", wanted.path)


def _check_artifact_exists(wanted: ArtifactExists, view: PackView) -> Verdict:
    for artifact in view.state(wanted.thread_id).artifacts.values():
        same = (
            wanted.artifact_id in (None, artifact.artifact_id)
            and wanted.title in (None, artifact.title)
            and wanted.kind in (None, artifact.kind)
        )
        if same and artifact.status != "deleted":
            witness = view.witness("artifact", artifact.artifact_id)
            return True, f"{artifact.artifact_id} is {artifact.status}", witness
    return False, "there is no such artifact", None


def _check_count(wanted: FactCount, view: PackView) -> Verdict:
    count, fact_id = view.count(wanted.event_class)
    low = wanted.equals if wanted.equals is not None else wanted.at_least
    high = wanted.equals if wanted.equals is not None else wanted.at_most
    right = (low is None or count >= low) and (high is None or count <= high)
    if not count and not _is_known_class(wanted.event_class):
        # A slip of the pen is never there, and would hold for ever as "none of these".
        return False, f"no fact has the class {wanted.event_class}, and no such class exists", None
    return right, f"{count} {'fact' if count == 1 else 'facts'} of {wanted.event_class}", fact_id


def _is_known_class(event_class: str) -> bool:
    below = f"{event_class.removesuffix('.')}."
    return any(f"{name}.".startswith(below) for name in KNOWN_CLASSES)


def _check_pointer(wanted: ProjectionEquals, view: PackView) -> Verdict:
    try:
        value = JsonDocument(view.document(wanted.thread_id)).at(wanted.pointer)
    except (InvalidPatch, ValueError) as error:
        return False, f"nothing found: {error}", None
    found = _shorten(msgspec.json.encode(value).decode())
    return value == wanted.equals, f"{wanted.pointer} is {found}", None


_EVALUATORS: Final[dict[type, Callable[[Any, PackView], Verdict]]] = {
    TurnOutcome: _check_turn_outcome,
    AnswerEquals: _check_answer_equals,
    AnswerContains: _check_answer_contains,
    ToolCalled: _check_tool_called,
    ToolStatus: _check_tool_status,
    ApprovalDecided: _check_approval,
    FileChanged: _check_file_changed,
    ArtifactExists: _check_artifact_exists,
    FactCount: _check_count,
    ProjectionEquals: _check_pointer,
}


def _find_calls(view: PackView, thread: str | None, name: str) -> list[Tool]:
    return [tool for tool in view.state(thread).tools.values() if tool.tool_name == name]


def _has_args(tool: Tool, wanted: dict[str, Any] | None) -> bool:
    if wanted is None:
        return True
    args: object = tool.args
    if not isinstance(args, dict):
        return False
    call_args = cast("dict[str, Any]", args)
    return all(name in call_args and call_args[name] == value for name, value in wanted.items())


def _find_tool_witness(view: PackView, calls: list[Tool]) -> str | None:
    return view.witness("tool", calls[0].tool_call_id) if calls else None


def _read_answers(view: PackView, thread: str | None, turn: str | None) -> list[str]:
    messages = conversation(view.state(thread))
    return [
        _join_text(each) for each in messages if each.role == "assistant" and each.turn_id == turn
    ]


def _join_text(message: Message) -> str:
    return "".join(str(part.text) for part in message.parts if isinstance(part, TextPart))


def _shorten(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"
