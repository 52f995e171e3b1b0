"""Streams: cut, out of order, with late snapshots, unknown classes, hidden and moved payloads."""

from typing import Any, Final

from factwire.facts import REDACTED

from .script import Script, call, fixture, remark, request

CALL: Final = {"tool_call_id": "call_1"}
BIG: Final = "output:sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"


@fixture(
    "A stream that is cut in the middle of an answer; the read model has the end.",
    "running",
    parts=2,
    timeline=4,  # turn, run, model asked, text; what came after the hole waits
    nodes=2,
    diagnostics=["sequence_gap"],
)
def stream_cut(told: Script) -> None:
    told.begin("Describe the release process.")
    told.stream("msg_1", "Tag the commit, ")
    told.lose(2)
    told.stream("msg_1", "and wait.")
    told.draft("turn.completed", "Turn completed")
    told.ended()


@fixture(
    "Facts that arrive in the wrong order; the answer reads as it was written.",
    "completed",
    parts=2,
    timeline=5,
    nodes=2,
    diagnostics=["sequence_gap"],
)
def out_of_order(told: Script) -> None:
    told.begin("Spell the beginning of the alphabet.")
    pieces = ("a, ", "b, ", "c, ", "d.")
    a, b, c, d = (told.draft("model.delta", "Answer", {"delta": piece}) for piece in pieces)
    told.facts += [a, c, d, b]
    told.tell("model.completed", "Answer", {"text": "a, b, c, d."})
    told.end()
    told.ended()


@fixture(
    "A snapshot that is older than what is known: newer text, the tool and the request stay.",
    "waiting",
    parts=3,  # question, answer so far, tool
    timeline=7,  # turn, run, model asked, text, tool, action, snapshot
    nodes=4,  # turn, run, tool, action
    pending=1,
    diagnostics=["snapshot_outdated"],
)
def snapshot_late(told: Script) -> None:
    told.begin("Publish it.")
    told.stream("msg_1", "I publish ")
    started = told.tell("tool.started", "Publish", {"toolName": "publish"}, **CALL)
    what = {"actionType": "tool_approval", "prompt": "Publish?"}
    asked = told.tell("action.required", "Approval required", what, action_id="act_1", **CALL)
    told.stream("msg_1", "when you agree.")
    rows = [
        {"messageId": "ask_1", "role": "user", "text": "Publish it.", "turnId": "trn_1"},
        {"messageId": "msg_1", "role": "assistant", "text": "I publish ", "turnId": "trn_1"},
    ]
    late = told.tell("messages.snapshot", "Messages", {"toSequence": 5, "messages": rows})
    code = "snapshot_outdated"
    told.running(
        "waiting",
        toolCalls=[call(started, "running")],
        pendingActions=[request(asked)],
        diagnostics=[remark(late, code, "info", diagnosticId=f"{code}:{late.id}")],
    )


@fixture(
    "Classes that nobody knows: kept in the timeline, remarked on, and nothing made of them.",
    "completed",
    parts=2,
    timeline=7,  # the turn's four, two unknown facts, text
    nodes=2,
    diagnostics=["unknown_event_type"],
)
def unknown_classes(told: Script) -> None:
    told.begin("What is the weather?")
    weather = told.tell("weather.changed", "Rain", {"text": "It rains.", "status": "failed"})
    beamed = told.tell("tool.teleported", "Beamed", {"summary": "completed"}, **CALL)
    told.say("It rains.")
    told.end()
    code = "unknown_event_type"
    noted = [
        remark(fact, code, "info", diagnosticId=f"{code}:{fact.id}") for fact in (weather, beamed)
    ]
    told.ended(diagnostics=noted)


@fixture(
    "A tool whose input held a secret: the value is hidden, and a note says so.",
    "completed",
    parts=3,
    timeline=7,  # the turn's four, tool, note, text
    nodes=3,
    diagnostics=["output.redacted"],
)
def secret_redacted(told: Script) -> None:
    told.begin("Call the service.")
    started = told.tell("tool.started", "Request", {"toolName": "http"}, **CALL)
    sent = {"url": "https://service.example/items", "apiKey": REDACTED}
    hidden = told.tell("tool.args", "Request", {"args": sent}, **CALL)
    note = {"eventId": hidden.id, "paths": ["$.payload.args.apiKey"]}
    noted = told.tell("output.redacted", "Redacted", note)
    ended = told.tell("tool.result", "Request", {"summary": "200, 12 items"}, **CALL)
    told.say("Twelve items.")
    told.end()
    told.ended(
        toolCalls=[call(started, "output-available", ended)],
        diagnostics=[remark(noted, "output.redacted", "info")],
    )


@fixture(
    "A result too big for a fact: a preview stays, the whole is behind a ref, a note says so.",
    "completed",
    parts=3,
    timeline=7,  # the turn's four, tool, note, text
    nodes=3,
    diagnostics=["output.spilled"],
)
def payload_spilled(told: Script) -> None:
    told.begin("Show the whole log.")
    started = told.tell("tool.started", "Read", {"toolName": "read_file"}, **CALL)
    kept = {"output": "line 1\nline 2\n", "outputRef": BIG, "truncated": True}
    ended = told.tell("tool.result", "Read", kept, ref_ids=(BIG,), **CALL)
    note: dict[str, Any] = {"eventId": ended.id, "bytes": 5_242_880}
    noted = told.tell("output.spilled", "Spilled", note, ref_ids=(BIG,))
    told.say("It has 80,000 lines.")
    told.end()
    told.ended(
        toolCalls=[call(started, "output-available", ended, outputRef=BIG)],
        diagnostics=[remark(noted, "output.spilled", "info", refs=[BIG])],
    )


@fixture(
    "A second question while the first is answered: it waits, and is no message yet.",
    "running",
    parts=2,  # the first question, and its answer so far
    timeline=5,  # turn, run, model asked, queue, text
    nodes=2,
    diagnostics=[],
)
def turn_queued(told: Script) -> None:
    told.begin("Explain the parser.")
    waits = {"prompt": "And the printer?", "reason": "turn_active"}
    queued = told.tell("queue.changed", "Queued", waits, queued_turn_id="trn_2")
    told.stream("msg_1", "The parser reads ")
    row = {
        "queuedTurnId": "trn_2",
        "prompt": "And the printer?",
        "queuedAt": queued.created_at,
    }
    told.running(queuedTurns=[row])


FIXTURES: Final = (
    stream_cut,
    out_of_order,
    snapshot_late,
    unknown_classes,
    secret_redacted,
    payload_spilled,
    turn_queued,
)
