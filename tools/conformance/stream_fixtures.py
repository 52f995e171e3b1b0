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
def stream_cut(script: Script) -> None:
    script.begin("Describe the release process.")
    script.stream("msg_1", "Tag the commit, ")
    script.lose(2)
    script.stream("msg_1", "and wait.")
    script.draft("turn.completed", "Turn completed")
    script.expect_ended()


@fixture(
    "Facts that arrive in the wrong order; the answer reads as it was written.",
    "completed",
    parts=2,
    timeline=5,
    nodes=2,
    diagnostics=["sequence_gap"],
)
def out_of_order(script: Script) -> None:
    script.begin("Spell the beginning of the alphabet.")
    pieces = ("a, ", "b, ", "c, ", "d.")
    a, b, c, d = (script.draft("model.delta", "Answer", {"delta": piece}) for piece in pieces)
    script.facts += [a, c, d, b]
    script.tell("model.completed", "Answer", {"text": "a, b, c, d."})
    script.end()
    script.expect_ended()


@fixture(
    "A snapshot that is older than what is known: newer text, the tool and the request stay.",
    "waiting",
    parts=3,  # question, answer so far, tool
    timeline=7,  # turn, run, model asked, text, tool, action, snapshot
    nodes=4,  # turn, run, tool, action
    pending=1,
    diagnostics=["snapshot_outdated"],
)
def snapshot_late(script: Script) -> None:
    script.begin("Publish it.")
    script.stream("msg_1", "I publish ")
    started = script.tell("tool.started", "Publish", {"toolName": "publish"}, **CALL)
    what = {"actionType": "tool_approval", "prompt": "Publish?"}
    action = script.tell("action.required", "Approval required", what, action_id="act_1", **CALL)
    script.stream("msg_1", "when you agree.")
    rows = [
        {"messageId": "ask_1", "role": "user", "text": "Publish it.", "turnId": "trn_1"},
        {"messageId": "msg_1", "role": "assistant", "text": "I publish ", "turnId": "trn_1"},
    ]
    late = script.tell("messages.snapshot", "Messages", {"toSequence": 5, "messages": rows})
    code = "snapshot_outdated"
    script.expect_running(
        "waiting",
        toolCalls=[call(started, "running")],
        pendingActions=[request(action)],
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
def unknown_classes(script: Script) -> None:
    script.begin("What is the weather?")
    weather = script.tell("weather.changed", "Rain", {"text": "It rains.", "status": "failed"})
    beamed = script.tell("tool.teleported", "Beamed", {"summary": "completed"}, **CALL)
    script.say("It rains.")
    script.end()
    code = "unknown_event_type"
    noted = [
        remark(fact, code, "info", diagnosticId=f"{code}:{fact.id}") for fact in (weather, beamed)
    ]
    script.expect_ended(diagnostics=noted)


@fixture(
    "A tool whose input held a secret: the value is hidden, and a note says so.",
    "completed",
    parts=3,
    timeline=7,  # the turn's four, tool, note, text
    nodes=3,
    diagnostics=["output.redacted"],
)
def secret_redacted(script: Script) -> None:
    script.begin("Call the service.")
    started = script.tell("tool.started", "Request", {"toolName": "http"}, **CALL)
    sent = {"url": "https://service.example/items", "apiKey": REDACTED}
    hidden = script.tell("tool.args", "Request", {"args": sent}, **CALL)
    note = {"eventId": hidden.id, "paths": ["$.payload.args.apiKey"]}
    noted = script.tell("output.redacted", "Redacted", note)
    ended = script.tell("tool.result", "Request", {"summary": "200, 12 items"}, **CALL)
    script.say("Twelve items.")
    script.end()
    script.expect_ended(
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
def payload_spilled(script: Script) -> None:
    script.begin("Show the whole log.")
    started = script.tell("tool.started", "Read", {"toolName": "read_file"}, **CALL)
    kept = {"output": "line 1\nline 2\n", "outputRef": BIG, "truncated": True}
    ended = script.tell("tool.result", "Read", kept, ref_ids=(BIG,), **CALL)
    note: dict[str, Any] = {"eventId": ended.id, "bytes": 5_242_880}
    noted = script.tell("output.spilled", "Spilled", note, ref_ids=(BIG,))
    script.say("It has 80,000 lines.")
    script.end()
    script.expect_ended(
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
def turn_queued(script: Script) -> None:
    script.begin("Explain the parser.")
    waits = {"prompt": "And the printer?", "reason": "turn_active"}
    queued = script.tell("queue.changed", "Queued", waits, queued_turn_id="trn_2")
    script.stream("msg_1", "The parser reads ")
    row = {
        "queuedTurnId": "trn_2",
        "prompt": "And the printer?",
        "queuedAt": queued.created_at,
    }
    script.expect_running(queuedTurns=[row])


FIXTURES: Final = (
    stream_cut,
    out_of_order,
    snapshot_late,
    unknown_classes,
    secret_redacted,
    payload_spilled,
    turn_queued,
)
