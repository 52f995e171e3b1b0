"""Repairs: facts that are missing, early, doubled or taken back, and how a screen says so."""

from typing import Any

import msgspec

from .recorder import Recorder, story


def _half(told: Recorder, name: str) -> None:
    told.ask(f"trn_{name}", "Describe the release process.")
    told.stream(f"msg_{name}", "Tag the commit, ")


@story(
    "A hole in the stream: what came after it waits, and the screen says what is missing.",
    {
        "status": "running",
        "hydration": "stale",
        "unfinished": ["text:trn_gap_open:msg_gap_open:msg_gap_open%3Atext", "turn:trn_gap_open"],
        "counts": {"messages": 2, "parts": 2, "timeline": 2, "nodes": 1},
        "gaps": ["4-5"],
        "held": 2,
        "conversation": [
            "user: Describe the release process.",
            "assistant (streaming): Tag the commit, ",
        ],
    },
    issues=("sequence_gap",),
)
def gap_open(told: Recorder) -> None:
    _half(told, "gap_open")
    for _ in range(2):
        told.draft("model.delta", "Answer", {"delta": "lost on the way "})
    told.stream("msg_gap_open", "then wait ", "for the build.")


@story(
    "A hole that the source reported and mends: nothing is final while it does.",
    {
        "status": "running",
        "hydration": "repairing",
        "unfinished": ["repair:thr_gap_repairing", "turn:trn_gap_repairing"],
        "counts": {"messages": 2, "parts": 2, "timeline": 4, "nodes": 1},
        "conversation": [
            "user: Describe the release process.",
            "assistant (streaming): Tag the commit, wait.",
        ],
        "diagnostics": ["warning stream_gap_reported"],
    },
)
def gap_repairing(told: Recorder) -> None:
    _half(told, "gap_repairing")
    gap = {"expected": 4, "got": 6, "reason": "the provider dropped two events"}
    told.tell("stream.gap.detected", "Gap", gap)
    told.tell("stream.repair.started", "Repairing")
    told.stream("msg_gap_repairing", "wait.")
    text = {"text": "Tag the commit, wait."}
    told.tell("model.completed", "Answer", text)


@story(
    "The same hole, mended: the snapshot's text counts, and nothing is stale any more.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 5, "nodes": 1},
        "conversation": [
            "user: Describe the release process.",
            "assistant: Tag the commit, push the tag, then wait for the build.",
        ],
        "diagnostics": ["warning stream_gap_reported"],
    },
)
def gap_repaired(told: Recorder) -> None:
    _half(told, "gap_repaired")
    lost = (told.sequence + 1, told.sequence + 2)
    for _ in lost:
        told.draft("model.delta", "Answer", {"delta": "lost on the way "})
    told.tell("stream.gap.detected", "Gap", {"expected": lost[0], "got": lost[1] + 1})
    told.tell("stream.repair.started", "Repairing")
    whole = "Tag the commit, push the tag, then wait for the build."
    rows = [
        _row("trn_gap_repaired", "user", "Describe the release process."),
        _row("trn_gap_repaired", "assistant", whole, "msg_gap_repaired"),
    ]
    told.tell(
        "snapshot.repaired",
        "Snapshot",
        {"toSequence": told.sequence, "fromSequence": 1, "messages": rows},
    )
    told.tell("stream.repair.completed", "Repaired")
    told.tell("model.completed", "Answer", {"text": whole})
    told.done()


def _row(turn: str, role: str, text: str, message: str | None = None) -> dict[str, Any]:
    known = message or f"{turn}:user"
    return {"messageId": known, "role": role, "turnId": turn, "text": text}


@story(
    "Facts that came in the wrong order and twice; the answer reads as it was written.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 2, "nodes": 1},
        "conversation": [
            "user: Spell the alphabet's start.",
            "assistant: a, b, c, d.",
        ],
    },
    issues=(
        *("duplicate_event_id", "duplicate_event_id"),
        *("sequence_gap", "sequence_gap", "sequence_gap"),
    ),
)
def out_of_order(told: Recorder) -> None:
    told.ask("trn_order", "Spell the alphabet's start.")
    a, b, c, d = (told.draft("model.delta", "Answer", {"delta": p}) for p in _ALPHABET)
    told.facts += [a, c, b, c, d]
    told.tell("model.completed", "Answer", {"text": "a, b, c, d."})
    told.done()
    told.facts.append(a)


_ALPHABET = ("a, ", "b, ", "c, ", "d.")


@story(
    "One id with two bodies: the first counts, and a remark says so.",
    {
        "status": "running",
        "hydration": "live",
        "unfinished": [
            "text:trn_port_number:msg_port_number:msg_port_number%3Atext",
            "turn:trn_port_number",
        ],
        "counts": {"messages": 2, "parts": 2, "timeline": 2, "nodes": 1},
        "conversation": ["user: Name the default port.", "assistant (streaming): 8080"],
        "diagnostics": ["warning conflicting_fact"],
    },
    issues=("duplicate_event_id", "sequence_gap"),
)
def conflicting_fact(told: Recorder) -> None:
    told.ask("trn_port_number", "Name the default port.")
    first = told.tell("model.delta", "Answer", {"delta": "8080"})
    told.facts.append(msgspec.structs.replace(first, payload={"delta": "9090"}))


@story(
    "A snapshot that came too late: the newer text stays, and nothing is finished by it.",
    {
        "status": "waiting",
        "hydration": "live",
        "unfinished": ["action:act_publish", "tool:call_publish", "turn:trn_publish"],
        "counts": {
            "messages": 2,
            "parts": 3,
            "timeline": 6,
            "nodes": 3,
            "edges": 2,
            "pending": 1,
        },
        "conversation": [
            "user: Publish the docs.",
            "assistant: Built; may I publish? | tool call_publish running",
        ],
        "tools": {"call_publish": "running"},
        "actions": {"act_publish": "pending"},
        "diagnostics": ["info snapshot_outdated"],
    },
)
def snapshot_late(told: Recorder) -> None:
    told.ask("trn_publish", "Publish the docs.")
    told.stream("msg_publish", "Built; ")
    then = told.sequence
    told.stream("msg_publish", "may I publish?")
    told.tell("model.completed", "Answer", {"text": "Built; may I publish?"})
    call = {"tool_call_id": "call_publish"}
    told.tell("tool.started", "Publish", {"toolName": "publish"}, **call)
    asked = {"actionType": "tool_approval", "prompt": "Publish?"}
    told.tell("action.required", "Publish?", asked, action_id="act_publish", **call)
    rows = [
        _row("trn_publish", "user", "Publish the docs."),
        _row("trn_publish", "assistant", "Built; ", "msg_publish"),
    ]
    told.tell("messages.snapshot", "Messages", {"toSequence": then, "messages": rows})
    told.tell("snapshot.updated", "Snapshot", {"toSequence": told.sequence})


@story(
    "Messages restored from a snapshot: one is worded anew, one was taken back.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 4, "parts": 3, "timeline": 6, "nodes": 1},
        "conversation": [
            "user: (yesterday) Where is the config?",
            "user: How long do logs stay?",
            "assistant: Logs stay for 30 days.",
            "assistant (retracted):",
        ],
    },
)
def messages_restored(told: Recorder) -> None:
    told.ask("trn_logs", "How long do logs stay?")
    told.answer("msg_logs", "Logs stay for 14 days.")
    told.tell("model.completed", "Answer", {"text": "Forever."}, message_id="msg_wrong")
    rows = [
        _row("trn_logs", "user", "How long do logs stay?"),
        _row("trn_logs", "assistant", "Logs stay for 30 days.", "msg_logs"),
        _row("trn_logs", "assistant", "Forever.", "msg_wrong"),
    ]
    told.tell("messages.snapshot", "Messages", {"messages": rows})
    taken_back = {"retractedMessageIds": ["msg_wrong"]}
    told.tell("history.reconstructed", "History", taken_back)
    told.done()
    older = [_row("trn_before", "user", "(yesterday) Where is the config?")]
    told.tell("history.window.loaded", "Older messages", {"messages": older})


@story(
    "A turn that was rolled back: what was said after the place is taken back.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 4, "parts": 2, "timeline": 5, "nodes": 2},
        "conversation": [
            "user: Draft the announcement.",
            "assistant: Version 2 is out.",
            "user (retracted):",
            "assistant (retracted):",
        ],
    },
)
def rolled_back(told: Recorder) -> None:
    told.ask("trn_announce", "Draft the announcement.")
    told.answer("msg_announce", "Version 2 ", "is out.")
    told.done()
    place = told.sequence
    told.ask("trn_funny", "Make it funnier.")
    told.answer("msg_funny", "Version 2 walks into a bar.")
    told.done()
    told.tell("history.rollback.started", "Rolling back", {"toSequence": place})
    told.tell("history.rollback.completed", "Rolled back", {"toSequence": place})


@story(
    "A question that the client showed under its own id until the runtime gave it one.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 2, "nodes": 1},
        "conversation": ["user: Is it Friday?", "assistant: No, Wednesday."],
    },
)
def optimistic_id(told: Recorder) -> None:
    told.turn_id = "trn_friday"
    shown = {"prompt": "Is it Friday?"}
    told.tell("turn.submitted", "Question asked", shown, message_id="local-1")
    known = {"optimisticId": "local-1", "messageId": "msg_friday_asked"}
    told.tell("turn.started", "Turn started", known)
    told.answer("msg_friday", "No, Wednesday.")
    told.done()


@story(
    "The application's own state: one patch applied, one that did not fit and changed nothing.",
    {
        "status": "running",
        "hydration": "stale",
        "unfinished": ["turn:trn_tickets"],
        "counts": {"messages": 1, "parts": 1, "timeline": 4, "nodes": 1},
        "conversation": ["user: Count the open tickets."],
        "diagnostics": ["warning state_delta_failed"],
        "shared": {"tickets": {"open": 12}},
    },
)
def shared_state(told: Recorder) -> None:
    told.ask("trn_tickets", "Count the open tickets.")
    start = [{"op": "add", "path": "/shared/tickets", "value": {"open": 11}}]
    told.tell("state.delta", "Tickets", {"patch": start})
    more = [
        {"op": "test", "path": "/shared/tickets/open", "value": 11},
        {"op": "replace", "path": "/shared/tickets/open", "value": 12},
    ]
    told.tell("state.delta", "One more", {"patch": more})
    wrong = [
        {"op": "replace", "path": "/shared/tickets/open", "value": 13},
        {"op": "remove", "path": "/shared/customers"},
    ]
    told.tell("state.delta", "Does not fit", {"patch": wrong})


@story(
    "A result that came after its turn had ended: the tool shows it, and a remark stays.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 3, "timeline": 3, "nodes": 2, "edges": 1},
        "conversation": [
            "user: Start the long scan.",
            "assistant: tool call_scan output-available | It runs on its own now.",
        ],
        "tools": {"call_scan": "output-available"},
        "diagnostics": ["warning tool_unclosed_at_turn_end"],
    },
    issues=("tool_unclosed_at_turn_end", "execution_after_turn_terminal"),
)
def result_late(told: Recorder) -> None:
    told.ask("trn_scan", "Start the long scan.")
    scan = {"tool_call_id": "call_scan"}
    told.tell("tool.started", "Scan", {"toolName": "scan"}, **scan)
    told.answer("msg_scan", "It runs on its own now.")
    told.tell("turn.completed", "Turn completed")
    told.wait(600)
    told.tell("tool.result", "Scan", {"summary": "no findings"}, **scan)


@story(
    "Facts of a thread that is none of this one's: left out, with one remark.",
    {
        "status": "running",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 2, "nodes": 1},
        "unfinished": ["text:trn_disk:msg_disk:msg_disk%3Atext", "turn:trn_disk"],
        "conversation": ["user: How full is the disk?", "assistant (streaming): 71 %, "],
        "diagnostics": ["warning foreign_thread"],
    },
)
def foreign_thread(told: Recorder) -> None:
    told.ask("trn_disk", "How full is the disk?")
    stranger = {"thread_id": "thr_somebody_else", "turn_id": "trn_stranger"}
    told.tell("turn.submitted", "Question asked", {"prompt": "Not for you."}, **stranger)
    told.tell("turn.started", "Turn started", **stranger)
    told.stream("msg_disk", "71 %, ")


@story(
    "So much came after a hole that it is shown without what is missing, and never as final.",
    {
        "status": "completed",
        "hydration": "degraded",
        "counts": {"messages": 2, "parts": 2, "timeline": 2, "nodes": 1},
        "gaps": ["3-3"],
        "conversation": [
            "user: Count to a thousand.",
            "assistant (stale): " + " ".join(str(n) for n in range(2, 1026)) + " ",
        ],
        "diagnostics": ["error window_overflow"],
    },
    issues=("sequence_gap",),
)
def stretch_lost(told: Recorder) -> None:
    told.ask("trn_count", "Count to a thousand.")
    told.draft("model.delta", "Answer", {"delta": "1 "})
    told.stream("msg_count", *(f"{n} " for n in range(2, 1026)))
    told.done()


STORIES = (
    gap_open,
    gap_repairing,
    gap_repaired,
    out_of_order,
    conflicting_fact,
    snapshot_late,
    messages_restored,
    rolled_back,
    optimistic_id,
    shared_state,
    result_late,
    foreign_thread,
    stretch_lost,
)
