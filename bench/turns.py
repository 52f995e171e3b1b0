"""One turn of an agent, for Factwire and for its peers alike.

`bench/peers/turn.mjs` has the same rule, so that all reduce the same turn, each in its own form:

- piece i of the text is `word{i} `;
- a turn with t tool calls has t + 1 steps; step s says pieces ⌊s·d/(t+1)⌋ up to ⌊(s+1)·d/(t+1)⌋ of
  d as one message, and each step but the last then makes one call;
- call s is `call_{s}` of the tool `search`, its arguments are {"query":"word{s}","limit":10} and
  its result is the text `{s} matches for word{s}`.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from factwire.facts import Fact

TOOL = "search"


class Size(NamedTuple):
    """How many text deltas a turn has, and how many tool calls among them."""

    deltas: int
    tools: int


SMALL = Size(1_000, 100)
LARGE = Size(10_000, 1_000)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    args: dict[str, Any]
    result: str


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What the model says in one go, and the call that it then makes."""

    message_id: str
    pieces: list[str]
    call: Call | None


class Outcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What any reducer must have at the end; the digest is over the text and all calls."""

    text_length: int
    tool_calls: int
    digest: str


def steps(deltas: int, tools: int) -> list[Step]:
    """The turn in nobody's form."""
    count = tools + 1
    return [
        Step(
            message_id=f"message_{s}",
            pieces=[f"word{i} " for i in range(s * deltas // count, (s + 1) * deltas // count)],
            call=_call(s) if s < tools else None,
        )
        for s in range(count)
    ]


def outcome(deltas: int, tools: int) -> Outcome:
    """What the turn amounts to."""
    script = steps(deltas, tools)
    text = "".join(piece for step in script for piece in step.pieces)
    calls = [step.call for step in script if step.call]
    lines = [f"\n{call.id} {_json(call.args)} {call.result}" for call in calls]
    digest = sha256((text + "".join(lines)).encode()).hexdigest()
    return Outcome(text_length=len(text), tool_calls=len(calls), digest=digest)


def turn(deltas: int, tools: int) -> list[Fact]:
    """The turn as facts: valid, in order, without gaps, all of one thread."""
    return [_fact(number, piece) for number, piece in enumerate(_turn(deltas, tools), start=1)]


class _Piece(NamedTuple):
    event_class: str
    status: str
    payload: dict[str, Any]
    message_id: str | None = None
    tool_call_id: str | None = None


_KINDS = {"turn": "state", "run": "state", "model": "model", "tool": "tool"}


def _turn(deltas: int, tools: int) -> Iterator[_Piece]:
    yield _Piece("turn.submitted", "pending", {"prompt": "Look at every file."})
    yield _Piece("turn.started", "running", {})
    yield _Piece("run.status", "running", {"status": "running", "phase": "producing"})
    for step in steps(deltas, tools):
        yield from _message(step)
        if step.call:
            yield from _tool(step.call)
    yield _Piece("turn.completed", "completed", {})


def _message(step: Step) -> Iterator[_Piece]:
    message, text = step.message_id, "".join(step.pieces)
    yield _Piece("model.requested", "running", {"model": "example-large"}, message)
    for delta in step.pieces:
        yield _Piece("model.delta", "running", {"delta": delta}, message)
    yield _Piece("model.completed", "completed", {"text": text}, message)


def _tool(call: Call) -> Iterator[_Piece]:
    yield _Piece("tool.started", "running", {"toolName": TOOL}, tool_call_id=call.id)
    yield _Piece("tool.args.delta", "running", {"delta": _json(call.args)}, tool_call_id=call.id)
    yield _Piece("tool.args", "running", {"args": call.args}, tool_call_id=call.id)
    yield _Piece("tool.result", "completed", {"output": call.result}, tool_call_id=call.id)


def _fact(sequence: int, piece: _Piece) -> Fact:
    return Fact(
        id=f"fact_{sequence}",
        kind=_KINDS[piece.event_class.partition(".")[0]],
        status=piece.status,
        title=piece.event_class,
        created_at="2026-06-10T00:00:00.000Z",
        schema_version="factwire-fact/v1",
        runtime_id="edge-01",
        sequence=sequence,
        event_class=piece.event_class,
        session_id="session_1",
        thread_id="thread_1",
        run_id="run_1",
        turn_id="turn_1",
        message_id=piece.message_id,
        tool_call_id=piece.tool_call_id,
        payload=piece.payload,
    )


def _call(s: int) -> Call:
    args = {"query": f"word{s}", "limit": 10}
    return Call(id=f"call_{s}", args=args, result=f"{s} matches for word{s}")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
