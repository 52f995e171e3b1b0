"""AI SDK chunks: what a client is told of facts, and what each version of it understands."""

from typing import Any

import pytest

from factwire.facts import Fact
from factwire.outlets import AiSdkOutlet
from tests.outlets.gists import encode_facts
from tests.outlets.stories import ON_FILE, build_turn, facts_on_file
from tests.outlets.test_outcomes import NAMES, facts_named
from tests.outlets.test_round_trips import ENDS

ASK = {"actionType": "tool_approval", "prompt": "Deploy?"}
START: list[dict[str, Any]] = [
    {
        "type": "start",
        "messageId": "turn",
        "messageMetadata": {"threadId": "thread", "turnId": "turn"},
    },
    {"type": "start-step"},
]
FINISH: list[dict[str, Any]] = [{"type": "finish-step"}, {"type": "finish", "finishReason": "stop"}]

NAMED = {"toolCallId", "toolName", "dynamic"}
IN_5: dict[str, set[str]] = {
    "abort": set(),
    "error": {"errorText"},
    "finish": {"messageMetadata"},
    "finish-step": set(),
    "message-metadata": {"messageMetadata"},
    "reasoning-delta": {"id", "delta"},
    "reasoning-end": {"id"},
    "reasoning-start": {"id"},
    "source-url": {"sourceId", "url", "title"},
    "start": {"messageId", "messageMetadata"},
    "start-step": set(),
    "text-delta": {"id", "delta"},
    "text-end": {"id"},
    "text-start": {"id"},
    "tool-input-available": {*NAMED, "input"},
    "tool-input-delta": {"toolCallId", "inputTextDelta"},
    "tool-input-start": NAMED,
    "tool-output-available": {"toolCallId", "output", "dynamic", "preliminary"},
    "tool-output-error": {"toolCallId", "errorText", "dynamic"},
}
IN_6: dict[str, set[str]] = {
    **IN_5,
    "abort": {"reason"},
    "finish": {"messageMetadata", "finishReason"},
    "tool-approval-request": {"approvalId", "toolCallId"},
    "tool-input-available": {*NAMED, "input", "title"},
    "tool-input-start": {*NAMED, "title"},
    "tool-output-denied": {"toolCallId"},
}
DATA = {"id", "data", "transient"}


@pytest.mark.requirement("outlets.ai-sdk.versions")
@pytest.mark.parametrize(("outlet", "known"), [("ai-sdk-5", IN_5), ("ai-sdk-6", IN_6)])
def test_an_older_client_gets_no_chunk_and_no_field_that_it_refuses(
    outlet: str, known: dict[str, set[str]]
):
    for name in ON_FILE:
        for chunk in encode_facts(facts_on_file(name), outlet):
            kind = chunk["type"]
            allowed = DATA if kind.startswith("data-") else known[kind]
            assert chunk.keys() - {"type"} <= allowed, (name, chunk)


@pytest.mark.requirement("outlets.ai-sdk.turns")
def test_a_turn_is_a_message_and_a_request_to_a_model_is_a_step():
    facts = build_turn(
        lambda tell: tell.add_fact("model.requested", {"model": "m"}),
        lambda tell: tell.add_text("m", "Hel"),
        lambda tell: tell.end_text("m", "Hello"),
        lambda tell: tell.start_tool("c", "look", title="Look"),
        lambda tell: tell.add_tool_args("c", '{"at":'),
        lambda tell: tell.add_tool_args("c", "1}"),
        lambda tell: tell.start_tool("c", "look", {"at": 1}),
        lambda tell: tell.report_tool_progress("c", output="so far"),
        lambda tell: tell.complete_tool("c", None),
        lambda tell: tell.add_fact("model.requested", {"model": "m"}),
        lambda tell: tell.add_text("n", "Done"),
        lambda tell: tell.usage.update({"inputTokens": 3}),
        lambda tell: tell.complete_turn(stopReason="max_tokens"),
    )
    call = {"toolCallId": "c", "toolName": "look", "title": "Look", "dynamic": True}
    assert encode_facts(facts, "ai-sdk") == [
        *START,
        {"type": "text-start", "id": "m"},
        {"type": "text-delta", "id": "m", "delta": "Hel"},
        {"type": "text-delta", "id": "m", "delta": "lo"},
        {"type": "text-end", "id": "m"},
        {"type": "tool-input-start", **call},
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '{"at":'},
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "1}"},
        {"type": "tool-input-available", **call, "input": {"at": 1}},
        {
            "type": "tool-output-available",
            "toolCallId": "c",
            "dynamic": True,
            "output": "so far",
            "preliminary": True,
        },
        {"type": "tool-output-available", "toolCallId": "c", "dynamic": True, "output": None},
        {"type": "finish-step"},
        {"type": "start-step"},
        {"type": "text-start", "id": "n"},
        {"type": "text-delta", "id": "n", "delta": "Done"},
        {"type": "text-end", "id": "n"},
        {"type": "finish-step"},
        {
            "type": "finish",
            "finishReason": "length",
            "messageMetadata": {"usage": {"inputTokens": 3}},
        },
    ]


@pytest.mark.requirement("outlets.ai-sdk.approvals")
@pytest.mark.parametrize(
    ("outlet", "kinds"),
    [
        ("ai-sdk", ["tool-approval-request", "tool-approval-response", "tool-output-denied"]),
        ("ai-sdk-6", ["tool-approval-request", "data-factwire-action", "tool-output-denied"]),
        (
            "ai-sdk-5",
            [
                "data-factwire-action",
                "data-factwire-action",
                "data-factwire-call",
                "tool-output-error",
            ],
        ),
    ],
)
def test_an_approval_is_told_as_far_as_a_version_can(outlet: str, kinds: list[str]):
    facts = build_turn(
        lambda tell: tell.start_tool("c", "deploy", {"to": "prod"}),
        lambda tell: tell.require_action("a", ASK, tool_call_id="c"),
        lambda tell: tell.resolve_action("a", "denied", reason="not today"),
        lambda tell: tell.fail_tool("c", "permission_denied", "it was denied"),
        lambda tell: tell.complete_turn(),
    )
    chunks = encode_facts(facts, outlet)[4:-2]
    assert [chunk["type"] for chunk in chunks] == kinds


@pytest.mark.requirement("outlets.ai-sdk.approvals")
def test_a_question_that_is_about_no_call_is_a_part_that_changes():
    facts = build_turn(
        lambda tell: tell.require_action("a", {"actionType": "clarification", "prompt": "Which?"}),
        lambda tell: tell.resolve_action("a", "answered", response="This one"),
        lambda tell: tell.complete_turn(),
    )
    chunks = [
        chunk for chunk in encode_facts(facts, "ai-sdk") if chunk["type"] == "data-factwire-action"
    ]
    assert [(chunk["id"], chunk["data"]["status"]) for chunk in chunks] == [
        ("a", "required"),
        ("a", "resolved"),
    ]
    assert chunks[1]["data"]["response"] == "This one"


@pytest.mark.requirement("outlets.ai-sdk.ends")
@pytest.mark.parametrize(
    ("end", "last"),
    [
        ("completed", {"type": "finish", "finishReason": "stop"}),
        ("canceled", {"type": "abort", "reason": "stop"}),
        ("failed", {"type": "error", "errorText": "too slow"}),
        ("", {"type": "error", "errorText": "the stream ended before the turn did"}),
    ],
)
def test_a_message_ends_as_its_turn_did_or_was_cut_off(end: str, last: dict[str, Any]):
    facts = build_turn(lambda tell: tell.add_text("m", "a"), *([ENDS[end]] if end else []))
    assert encode_facts(facts, "ai-sdk")[-1] == last


@pytest.mark.requirement("outlets.hidden-reasoning")
def test_a_client_sees_that_somebody_thinks_and_only_the_summary_of_it():
    facts = build_turn(
        lambda tell: tell.add_reasoning("r", "secret thought"),
        lambda tell: tell.add_reasoning_summary("r", "Looking around."),
        lambda tell: tell.add_text("m", "a"),
        lambda tell: tell.complete_turn(),
    )
    assert encode_facts(facts, "ai-sdk")[2:5] == [
        {"type": "reasoning-start", "id": "r:thought"},
        {"type": "reasoning-delta", "id": "r:thought", "delta": "Looking around."},
        {"type": "reasoning-end", "id": "r:thought"},
    ]


@pytest.mark.requirement("outlets.ai-sdk.retraction")
@pytest.mark.parametrize(
    ("outlet", "kind"), [("ai-sdk", "reset-step"), ("ai-sdk-6", "data-factwire-retraction")]
)
def test_a_text_that_is_taken_back_or_retold_counts_no_more(outlet: str, kind: str):
    retold = build_turn(
        lambda tell: tell.add_text("m", "wrong"),
        lambda tell: tell.end_text("m", "right"),
        lambda tell: tell.complete_turn(),
    )
    types = [chunk["type"] for chunk in encode_facts(retold, outlet)[2:-2]]
    again = ["text-start", "text-delta", "text-end"]
    assert types == [*again, kind, *again]
    mixed = build_turn(
        lambda tell: tell.end_text("m", "wrong"),
        lambda tell: tell.start_tool("c", "look"),
        lambda tell: tell.retract_messages("m"),
        lambda tell: tell.complete_turn(),
    )
    gone = [chunk for chunk in encode_facts(mixed, outlet) if chunk["type"].endswith("retraction")]
    assert [chunk["data"] for chunk in gone] == [{"messageIds": ["m"]}]


@pytest.mark.requirement("outlets.ai-sdk.subagents")
def test_a_subagent_never_speaks_in_the_answer():
    facts = build_turn(
        lambda tell: tell.start_subagent("s", title="Reader"),
        lambda tell: tell.add_text("m", "mine", subagent_id="s"),
        lambda tell: tell.start_tool("c", "look", {"at": 1}, subagent_id="s"),
        lambda tell: tell.complete_tool("c", "seen"),
        lambda tell: tell.end_subagent("s", "subagent.completed"),
        lambda tell: tell.complete_turn(),
    )
    chunks = encode_facts(facts, "ai-sdk")
    assert not any(chunk["type"].startswith("text-") for chunk in chunks)
    whole = next(chunk for chunk in chunks if chunk["type"] == "data-factwire-subagent-text")
    assert whole["data"] == {"subagentId": "s", "messageId": "m", "text": "mine"}
    marks = [chunk["data"] for chunk in chunks if chunk["type"] == "data-factwire-call"]
    assert marks == [{"toolCallId": "c", "subagentId": "s"}]


@pytest.mark.requirement("outlets.notes")
def test_sources_files_and_steering_have_chunks_of_their_own():
    facts = build_turn(
        lambda tell: tell.add_fact(
            "evidence.changed", {"url": "https://example.org", "title": "Here"}, evidence_id="e"
        ),
        lambda tell: tell.add_fact(
            "artifact.changed",
            {"mediaType": "image/png", "contentRef": "ref:1"},
            artifact_id="x",
        ),
        lambda tell: tell.add_fact(
            "queue.changed", {"steerId": "st", "text": "Faster", "status": "delivered"}
        ),
        lambda tell: tell.complete_turn(),
    )
    outlet = AiSdkOutlet(address=lambda ref: f"https://example.org/{ref}")
    chunks = [chunk for fact in facts for chunk in outlet.take(fact)][2:-2]
    assert [chunk for chunk in chunks if not chunk["type"].startswith("data-")] == [
        {"type": "source-url", "sourceId": "e", "url": "https://example.org", "title": "Here"},
        {"type": "file", "url": "https://example.org/ref:1", "mediaType": "image/png"},
        {"type": "steering-message", "id": "st", "parts": [{"type": "text", "text": "Faster"}]},
    ]
    assert [chunk["id"] for chunk in chunks if chunk["type"] == "data-factwire-artifact"] == ["x"]


@pytest.mark.requirement("outlets.beside-turns")
@pytest.mark.parametrize("outlet", ["ag-ui", "ai-sdk"])
def test_what_is_joined_late_or_stands_beside_turns_has_a_beginning_and_an_end(outlet: str):
    facts: list[Fact] = [
        *build_turn(lambda tell: tell.add_text("m", "a"), lambda tell: tell.complete_turn())[4:],
        *build_turn(
            lambda tell: tell.complete_turn(),
            lambda tell: tell.add_fact("artifact.changed", {"title": "Late"}, artifact_id="x"),
        )[-1:],
    ]
    kinds = [item["type"] for item in encode_facts(facts, outlet)]
    begin, end = {"ag-ui": ("RUN_STARTED", "RUN_FINISHED"), "ai-sdk": ("start", "finish")}[outlet]
    assert (kinds.count(begin), kinds.count(end)) == (2, 2)


_OPENS = {"text-start": "id", "reasoning-start": "id", "tool-input-start": "toolCallId"}
_CLOSES = {
    "text-end": "id",
    "reasoning-end": "id",
    "tool-input-available": "toolCallId",
    "tool-output-available": "toolCallId",
    "tool-output-error": "toolCallId",
    "tool-output-denied": "toolCallId",
}


@pytest.mark.requirement("outlets.ai-sdk.ends")
@pytest.mark.parametrize("name", NAMES)
def test_a_message_that_is_finished_has_no_part_that_still_streams(name: str):
    streaming: set[str] = set()
    for chunk in encode_facts(list(facts_named(name)), "ai-sdk"):
        kind = chunk["type"]
        if kind in _OPENS:
            streaming.add(chunk[_OPENS[kind]])
        elif kind in _CLOSES:
            streaming.discard(chunk[_CLOSES[kind]])
        elif kind in ("start", "reset-step"):
            streaming.clear()
        assert kind != "finish" or not streaming
