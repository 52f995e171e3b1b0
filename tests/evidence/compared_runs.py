"""Runs to compare: told as data, minted anew, and mirrored comparisons."""

import re
from collections.abc import Iterable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import msgspec

from factwire.evidence.run_comparison import Comparison, Difference, TextChange, TurnComparison
from factwire.facts import CORRELATION_IDS, Fact, decode_fact, read_fact

Wire = dict[str, Any]

STREAMS = Path(__file__).resolve().parents[2] / "examples" / "streams"
NAMES = sorted(path.stem for path in STREAMS.glob("*.ndjson"))


def stream(name: str) -> list[Fact]:
    lines = (STREAMS / f"{name}.ndjson").read_bytes().splitlines()
    return [decode_fact(line) for line in lines]


class Call(msgspec.Struct):
    """A call of a tool; `asked` is the decision on an approval before it, by whom."""

    name: str
    args: dict[str, Any]
    output: str = "fine"
    failed: bool = False
    decision: tuple[str, str] | None = None


class TurnSpec(msgspec.Struct):
    """A turn."""

    prompt: str
    answer: str
    calls: list[Call] = msgspec.field(default_factory=list[Call])
    model: str = "large-2"
    tokens: int = 100
    files: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    artifacts: list[str] = msgspec.field(default_factory=list[str])
    helpers: list[str] = msgspec.field(default_factory=list[str])
    warnings: list[str] = msgspec.field(default_factory=list[str])
    outcome: str = "completed"


def facts_of(turns: Iterable[TurnSpec], mint: str = "a", seconds: int = 1) -> list[Fact]:
    """The facts of a run; `mint` is in every id, `seconds` lie between two facts."""
    writer = _Writer(mint, seconds)
    for number, turn in enumerate(turns):
        writer.turn(f"trn_{mint}{number}", turn)
    return writer.facts


class _Writer:
    def __init__(self, mint: str, seconds: int) -> None:
        self.facts: list[Fact] = []
        self._mint = mint
        self._seconds = seconds
        self._turn = ""

    def put(self, event_class: str, payload: Wire | None = None, **ids: str) -> None:
        number = len(self.facts) + 1
        at = datetime(2026, 6, 10, 9, tzinfo=UTC) + timedelta(seconds=number * self._seconds)
        wire = {
            "id": f"evt_{self._mint}{number}",
            "kind": "state",
            "status": "running",
            "title": event_class,
            "createdAt": at.isoformat().replace("+00:00", "Z"),
            "schemaVersion": "factwire-fact/v1",
            "runtimeId": "r",
            "sequence": number,
            "eventClass": event_class,
            "threadId": f"thr_{self._mint}0",
            "turnId": self._turn,
            "payload": payload or {},
            **ids,
        }
        self.facts.append(read_fact(wire))

    def turn(self, turn_id: str, facts: TurnSpec) -> None:
        self._turn = turn_id
        self.put("turn.submitted", {"prompt": facts.prompt})
        self.put("turn.started")
        self.put("model.requested", {"model": facts.model})
        for number, call in enumerate(facts.calls):
            self.call(f"call_{turn_id}_{number}", call)
        for number, path in enumerate(facts.files):
            changed: Wire = {"path": path, "change": "modified", "addedLines": facts.files[path]}
            self.put("file.changed", changed, artifactId=f"art_{turn_id}_f{number}")
        for number, title in enumerate(facts.artifacts):
            self.put("artifact.created", {"title": title}, artifactId=f"art_{turn_id}_{number}")
        for number, name in enumerate(facts.helpers):
            ids = {"subagentId": f"sub_{turn_id}_{number}", "taskId": f"task_{turn_id}_{number}"}
            self.put("subagent.spawned", {"name": name}, **ids)
            self.put("subagent.completed", {"name": name}, **ids)
        for text in facts.warnings:
            self.put("runtime.warning", {"code": "careful", "message": text})
        for piece in facts.answer.split(" "):
            self.put("model.delta", {"delta": f"{piece} "}, messageId=f"msg_{turn_id}")
        self.put("model.completed", {"text": facts.answer}, messageId=f"msg_{turn_id}")
        self.put(
            "cost.recorded", {"inputTokens": facts.tokens, "totalCostUsd": facts.tokens / 1_000}
        )
        self.put(f"turn.{facts.outcome}")

    def call(self, call_id: str, call: Call) -> None:
        self.put("tool.started", {"toolName": call.name}, toolCallId=call_id)
        self.put("tool.args", {"args": call.args}, toolCallId=call_id)
        if call.decision is not None:
            decision, by = call.decision
            ids = {"actionId": f"act_{call_id}", "toolCallId": call_id}
            self.put("action.required", {"actionType": "tool_approval", "prompt": "May I?"}, **ids)
            self.put("action.resolved", {"decision": decision, "decidedBy": by}, **ids)
        if call.failed:
            self.put("tool.failed", {"failureCategory": "broken"}, toolCallId=call_id)
        else:
            self.put("tool.result", {"output": call.output}, toolCallId=call_id)


_KEPT = {"agentId", "runtimeId"}
_COUNTED = {"sequence", "fromSequence", "toSequence", "expected", "got"} | {
    *("eventCursor", "historyCursor", "latestSequence", "cursor", "lastSequence", "seq"),
    *("coversSequence", "throughSequence", "atSequence"),
}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


def mint_again(facts: list[Fact], shift: int = 7_000) -> list[Fact]:
    """The same run at another time: other ids, other moments, other sequences."""
    wires = [cast("Wire", msgspec.to_builtins(fact)) for fact in facts]
    ids: dict[str, str] = {}
    for wire in wires:
        for name in ("id", *CORRELATION_IDS):
            for holder in (wire, wire.get("payload", {})):
                value = holder.get(name)
                if isinstance(value, str) and name not in _KEPT:
                    ids.setdefault(value, f"{value[:3]}_01K0ABCDEFGHJKMNPQRSTV{len(ids):04}")
    return [read_fact(_mint_value(wire, ids, shift)) for wire in deepcopy(wires)]


def _mint_value(value: Any, ids: dict[str, str], shift: int, name: str = "") -> Any:
    if isinstance(value, dict):
        table = cast("Wire", value)
        return {
            ids.get(key, key): _mint_value(each, ids, shift, key) for key, each in table.items()
        }
    if isinstance(value, list | tuple):
        return [_mint_value(each, ids, shift, name) for each in cast("list[Any]", value)]
    if isinstance(value, int) and not isinstance(value, bool) and name in _COUNTED:
        return value + shift
    if isinstance(value, str) and name not in _KEPT:
        turn, is_prompt, _ = value.partition(":user")
        if is_prompt and turn in ids:
            return f"{ids[turn]}:user"
        return ids[value] if value in ids else _TIME.sub(_shift_moment, value)
    return value


def _shift_moment(found: re.Match[str]) -> str:
    at = datetime.fromisoformat(found[0]) + timedelta(days=400)
    return at.isoformat().replace("+00:00", "Z")


def mirror_comparison(comparison: Comparison) -> Comparison:
    """What comparing B with A must give."""
    return msgspec.structs.replace(
        comparison,
        a=comparison.b,
        b=comparison.a,
        turns=[_mirror_turn(turn) for turn in comparison.turns],
        outside=[_mirror_difference(each) for each in comparison.outside],
    )


def sort_comparison(comparison: Comparison) -> Comparison:
    """Without an order among what stands between the same two turns, or among one aspect."""

    def place(turn: TurnComparison) -> tuple[int, int]:
        return (turn.a.number if turn.a else 0, turn.b.number if turn.b else 0)

    turns = [
        msgspec.structs.replace(turn, differences=sorted(turn.differences, key=repr))
        for turn in sorted(comparison.turns, key=place)
    ]
    outside = sorted(comparison.outside, key=repr)
    return msgspec.structs.replace(comparison, turns=turns, outside=outside)


_STATUS = {"same": "same", "differs": "differs", "only_a": "only_b", "only_b": "only_a"}
_KIND = {"added": "removed", "removed": "added", "changed": "changed", "moved": "moved"}
_SIDE = {"a": "b", "b": "a", "both": "both"}


def _mirror_turn(turn: TurnComparison) -> TurnComparison:
    return TurnComparison(
        status=cast("Any", _STATUS[turn.status]),
        a=turn.b,
        b=turn.a,
        differences=[_mirror_difference(each) for each in turn.differences],
    )


def _mirror_difference(each: Difference) -> Difference:
    changes = [
        msgspec.structs.replace(change, a=change.b, b=change.a, text=_mirror_text(change.text))
        for change in each.changes
    ]
    kind = cast("Any", _KIND[each.kind])
    return msgspec.structs.replace(each, kind=kind, at_a=each.at_b, at_b=each.at_a, changes=changes)


def _mirror_text(change: TextChange | None) -> TextChange | None:
    """Lines of A stand before those of B, so that each run of them is turned round."""
    if change is None:
        return None
    lines = [
        msgspec.structs.replace(line, side=cast("Any", _SIDE[line.side])) for line in change.lines
    ]
    ordered: list[Any] = []
    waiting: list[Any] = []
    for line in [*lines, None]:
        if line is not None and line.side != "both":
            waiting.append(line)
            continue
        first = waiting[0].left_out if waiting else 0
        plain = [msgspec.structs.replace(each, left_out=0) for each in waiting]
        plain = sorted(plain, key=lambda each: each.side)
        if plain:
            plain[0] = msgspec.structs.replace(plain[0], left_out=first)
        ordered += plain
        waiting = []
        if line is not None:
            ordered.append(line)
    return TextChange(
        removed_lines=change.added_lines,
        added_lines=change.removed_lines,
        lines=ordered,
        left_out=change.left_out,
    )
