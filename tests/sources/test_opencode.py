"""OpenCode's events: what recordings do not show."""

from typing import Any

import pytest

from factwire.facts import Fact
from tests.sources import streams
from tests.sources.odd_fields import spoil_fields
from tests.sources.recordings import FOLDER, facts_of, screen_of

Event = dict[str, Any]


def facts_from(*events: Event) -> list[Fact]:
    return streams.facts_from("opencode", *events)


def event(kind: str, session: str = "s", **properties: Any) -> Event:
    return {"id": "e", "type": kind, "properties": {"sessionID": session, **properties}}


def message(name: str, role: str, session: str = "s", **info: Any) -> Event:
    told_of = {"id": name, "role": role, "sessionID": session, **info}
    return event("message.updated", session, info=told_of)


def part(kind: str, of: str, name: str = "p", session: str = "s", **fields: Any) -> Event:
    whole = {"id": name, "type": kind, "messageID": of, "sessionID": session, **fields}
    return event("message.part.updated", session, part=whole)


def tool(status: str, name: str = "bash", session: str = "s", **state: Any) -> Event:
    held = {"status": status, "input": {"command": "ls"}, **state}
    return part("tool", "a", "pt", session, callID="c", tool=name, state=held)


def only(facts: list[Fact], event_class: str) -> list[Fact]:
    return [fact for fact in facts if fact.event_class == event_class]


ASKED = [message("u", "user"), part("text", "u", "pu", text="do it")]
ANSWER = message("a", "assistant", modelID="m", providerID="p")
SAID = part("text", "a", "pa", text="done", time={"start": 1, "end": 2})
IDLE = event("session.idle")
CHILD = event("session.created", "k", info={"id": "k", "parentID": "s", "title": "look"})


@pytest.mark.requirement("sources.opencode.sessions")
def test_of_a_second_session_only_one_remark_is_made():
    other = [
        message("u2", "user", "z"),
        part("text", "u2", "p2", "z", text="other"),
        event("session.idle", "z"),
    ]
    facts = facts_from(*ASKED, *other, ANSWER, SAID, IDLE)
    screen = screen_of(facts)
    words = [text for _, text in screen["conversation"] if text]
    assert (words, screen["status"]) == (["do it", "done"], "completed")
    assert screen["warnings"] == ["other_session"]


@pytest.mark.requirement("sources.opencode.sessions")
def test_a_session_below_the_thread_is_a_subagent_that_speaks_and_asks_for_itself():
    facts = facts_from(
        *ASKED,
        ANSWER,
        CHILD,
        message("ku", "user", "k"),
        part("text", "ku", "kp", "k", text="look around"),
        message("a", "assistant", "k"),
        tool("running", session="k"),
        event("permission.asked", "k", id="per", permission="bash", tool={"callID": "c"}),
        event("permission.replied", "k", requestID="per", reply="once"),
        tool("completed", session="k", output="two files"),
        part("text", "a", "ka", "k", text="two files", time={"end": 2}),
        event("session.idle", "k"),
        SAID | {"properties": SAID["properties"] | {"part": _of("b", "done")}},
        IDLE,
    )
    screen = screen_of(facts)
    assert screen["conversation"] == [["user", "do it"], ["assistant", "done"]]
    assert screen["subagents"] == ["k"]
    (question,) = only(facts, "action.required")
    assert (question.subagent_id, question.task_id, question.tool_call_id) == ("k", "k:task", "c")
    (ended,) = only(facts, "subagent.completed")
    assert ended.payload["output"] == "two files"


def _of(message_id: str, text: str) -> Event:
    named = {"id": f"p{message_id}", "messageID": message_id, "sessionID": "s"}
    return {**named, "type": "text", "text": text, "time": {"end": 3}}


@pytest.mark.requirement("sources.opencode.sessions")
def test_a_subagent_that_ends_with_an_error_has_failed_and_the_turn_has_not():
    error = {"name": "ContextOverflowError", "data": {"message": "too much"}}
    facts = facts_from(
        *ASKED,
        CHILD,
        message("ku", "user", "k"),
        event("session.error", "k", error=error),
        event("session.idle", "k"),
        ANSWER,
        SAID,
        IDLE,
    )
    (failed,) = only(facts, "subagent.failed")
    assert failed.payload["failureCategory"] == "context_overflow"
    assert screen_of(facts)["status"] == "completed"


@pytest.mark.requirement("sources.opencode.ends")
@pytest.mark.parametrize(
    ("error", "ended", "category"),
    [
        ({"name": "MessageAbortedError", "data": {"message": "x"}}, "turn.canceled", None),
        ({"name": "APIError", "data": {"statusCode": 429}}, "turn.failed", "rate_limited"),
        ({"name": "ProviderAuthError", "data": {}}, "turn.failed", "unauthorized"),
        ({"name": "APIError", "data": {"statusCode": 503}}, "turn.failed", "provider_unavailable"),
        ({"name": "APIError", "data": {"statusCode": 400}}, "turn.failed", "invalid_request"),
        ({"name": "Unheard"}, "turn.failed", "provider_error"),
    ],
)
def test_an_error_ends_the_turn_when_the_session_is_idle(
    error: Event, ended: str, category: str | None
):
    facts = facts_from(*ASKED, ANSWER, event("session.error", error=error), SAID, IDLE, IDLE)
    (end,) = only(facts, ended)
    assert end.payload.get("failureCategory") == category
    assert only(facts, "model.completed")[0].sequence < end.sequence  # type: ignore[operator]


@pytest.mark.requirement("sources.opencode.ends")
def test_what_is_repeated_after_the_end_changes_nothing():
    whole = [*ASKED, ANSWER, SAID, tool("completed", output="x"), IDLE]
    late = [message("u", "user", summary={"diffs": []}), ANSWER, SAID, IDLE]
    assert facts_from(*whole, *late) == facts_from(*whole)


@pytest.mark.requirement("sources.opencode.ends")
def test_a_stream_without_an_idle_session_was_cut_off():
    (failed,) = only(facts_from(*ASKED, ANSWER, SAID), "turn.failed")
    assert failed.payload["failureCategory"] == "stream_interrupted"


@pytest.mark.requirement("sources.opencode.turns")
def test_a_message_during_a_turn_steers_it():
    steer = [message("u2", "user"), part("text", "u2", "p2", text="faster")]
    facts = facts_from(*ASKED, ANSWER, *steer, SAID, IDLE)
    (queued,) = only(facts, "queue.changed")
    assert (queued.payload["text"], queued.payload["control"]) == ("faster", "steer")
    assert len(only(facts, "turn.started")) == 1


@pytest.mark.requirement("sources.opencode.turns")
def test_what_comes_before_the_words_of_a_message_is_attached_to_its_turn():
    attached = part("file", "u", "pf", filename="a.png", mime="image/png", url="data:")
    facts = facts_from(ASKED[0], attached, ASKED[1], ANSWER, SAID, IDLE)
    (context,) = only(facts, "context.attached")
    assert context.payload == {"kind": "file", "title": "a.png", "mediaType": "image/png"}
    assert (context.turn_id, only(facts, "turn.submitted")[0].payload) == ("u", {"prompt": "do it"})


@pytest.mark.requirement("sources.opencode.turns")
def test_the_summary_of_a_compaction_is_no_answer():
    facts = facts_of(FOLDER / "opencode" / "compaction.sse")
    (compacted,) = only(facts, "context.compaction.completed")
    assert compacted.payload["summary"].startswith("The answer is forty-two")
    answers = [fact.turn_id for fact in only(facts, "model.completed")]
    assert compacted.turn_id not in answers


@pytest.mark.requirement("sources.opencode.tools")
@pytest.mark.parametrize(
    ("ended", "category"),
    [
        (tool("completed", output="no", metadata={"exit": 2}), "nonzero_exit"),
        (tool("completed", "invalid", input={"error": "no such tool"}), "invalid_input"),
        (tool("error", error="broke"), "tool_error"),
    ],
)
def test_a_tool_fails_by_its_state_its_exit_code_or_as_a_call_that_cannot_be(
    ended: Event, category: str
):
    facts = facts_from(
        *ASKED, ANSWER, tool("pending", input={}), tool("running"), ended, ended, IDLE
    )
    (failed,) = only(facts, "tool.failed")
    assert failed.payload["failureCategory"] == category


@pytest.mark.requirement("sources.opencode.tools")
def test_output_that_grows_is_told_once():
    grown = [tool("running", metadata={"output": text}) for text in ("a", "ab", "ab", "abc", "z")]
    facts = facts_from(*ASKED, ANSWER, *grown, tool("completed", output="z"), IDLE)
    deltas = [fact.payload["delta"] for fact in only(facts, "tool.output.delta")]
    assert deltas == ["a", "b", "c", "z"]


@pytest.mark.requirement("sources.opencode.tools")
def test_an_output_that_is_pruned_later_is_no_new_call():
    pruned = tool("completed", output="", time={"start": 1, "end": 2, "compacted": 3})
    facts = facts_from(*ASKED, ANSWER, pruned, SAID, IDLE)
    assert only(facts, "tool.started") == []


@pytest.mark.requirement("sources.opencode.tools")
def test_a_reply_that_is_not_known_decides_nothing():
    question = event("permission.v2.asked", id="q", action="edit", resources=["a.py"])
    facts = facts_from(
        *ASKED, ANSWER, question, event("permission.replied", requestID="q", reply="?"), IDLE
    )
    assert only(facts, "action.resolved") == []
    assert len(only(facts, "action.cancelled")) == 1
    assert screen_of(facts)["warnings"] == ["unknown_source_item"]


@pytest.mark.requirement("sources.opencode.retractions")
def test_a_message_that_is_removed_is_taken_back_and_so_is_a_part():
    two = part("text", "a", "pb", text=" and more", time={"end": 2})
    gone = event("message.part.removed", messageID="a", partID="pb")
    without_part = facts_from(*ASKED, ANSWER, SAID, two, gone, IDLE)
    assert screen_of(without_part)["conversation"][1] == ["assistant", "done"]
    removed = event("message.removed", messageID="a")
    without_message = facts_from(*ASKED, ANSWER, SAID, removed, IDLE)
    assert ["assistant", "done"] not in screen_of(without_message)["conversation"]


@pytest.mark.requirement("sources.opencode.signals")
def test_retries_todos_and_diffs_are_told_as_what_they_are():
    limited = part("retry", "a", "pr", attempt=1, error={"data": {"statusCode": 429}})
    todos = [{"content": "read", "status": "completed"}, {"content": "old", "status": "cancelled"}]
    diff = [{"file": "a.py", "patch": "+x", "additions": 1, "deletions": 0}]
    facts = facts_from(
        *ASKED,
        ANSWER,
        limited,
        event("todo.updated", todos=todos),
        event("session.diff", diff=diff),
        SAID,
        IDLE,
    )
    assert len(only(facts, "rate_limit.hit")) == 1
    assert only(facts, "plan.final")[0].payload["text"] == "[x] read\n[ ] old"
    assert only(facts, "artifact.diff.ready")[0].payload["files"] == ["a.py"]


@pytest.mark.requirement("sources.opencode.signals")
def test_events_of_the_server_say_nothing_and_unheard_ones_are_warnings():
    quiet: list[Event] = [
        {"type": "plugin.added"},
        {"type": "pty.created", "properties": {}},
        {"type": "lsp.x"},
    ]
    assert facts_from(*quiet) == []
    assert screen_of(facts_from({"type": "brand.new"}))["warnings"] == ["unknown_source_item"]


def next_event(kind: str, **properties: Any) -> Event:
    payloads: Event = {"timestamp": 1_794_755_304_224, "assistantMessageID": "a", **properties}
    return event(f"session.next.{kind}", **payloads)


NEXT = [
    next_event("prompted", messageID="u", assistantMessageID=None, prompt={"text": "do it"}),
    next_event("step.started", model={"id": "m", "providerID": "p"}),
    next_event("reasoning.delta", reasoningID="r", delta="hm"),
    next_event("reasoning.ended", reasoningID="r", text="hm"),
    next_event("text.delta", textID="t1", delta="do"),
    next_event("text.ended", textID="t1", text="done"),
    next_event("tool.input.started", callID="c", name="bash"),
    next_event("tool.input.delta", callID="c", delta="{"),
    next_event("tool.called", callID="c", tool="bash", input={"command": "ls"}),
    next_event("tool.progress", callID="c", structured={}, content=[{"text": "a"}]),
    next_event("tool.success", callID="c", structured={}, content=[{"type": "text", "text": "a"}]),
    next_event("tool.called", callID="d", tool="edit", input={}),
    next_event("tool.failed", callID="d", error={"type": "unknown", "message": "broke"}),
    next_event("retried", attempt=1, error={"message": "again", "statusCode": 429}),
    next_event("compaction.started", messageID="k", reason="auto"),
    next_event("compaction.ended", messageID="k", text="short", reason="auto"),
    next_event("shell.started", messageID="a", callID="e", command="ls"),
    next_event("shell.ended", callID="e", output="x"),
    next_event("step.ended", finish="stop", cost=0.5, tokens={"input": 3, "output": 2}),
    IDLE,
]


@pytest.mark.requirement("sources.opencode.next")
def test_events_of_session_next_come_to_the_same_screen_as_parts():
    screen = screen_of(facts_from(*NEXT))
    assert screen["conversation"] == [["user", "do it"], ["assistant", "done"]]
    assert [row["state"] for row in screen["tools"]] == [
        "output-available",
        "output-error",
        "output-available",
    ]
    assert screen["status"] == "completed"
    (end,) = only(facts_from(*NEXT), "turn.completed")
    assert end.payload["totalCostUsd"] == 0.5


@pytest.mark.requirement("sources.opencode.next")
def test_a_server_that_sends_both_is_told_once():
    both = [*ASKED, ANSWER, *NEXT[1:6], SAID, IDLE]
    assert screen_of(facts_from(*both)) == screen_of(facts_from(*ASKED, ANSWER, SAID, IDLE))


@pytest.mark.fuzz
@pytest.mark.requirement("sources.recordings.hostile")
def test_no_field_of_a_newer_event_can_break_the_facts():
    for events in spoil_fields(NEXT):
        facts_from(*events)
