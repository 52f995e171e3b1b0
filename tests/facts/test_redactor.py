"""Redaction of facts in stream order."""

from typing import Any

import msgspec
import pytest

from factwire.facts import Fact, Redactor, redact_fact

SECRET = "sk-" + "ant-api03-" + "Ab3" * 12


def fact(event_class: str, payload: dict[str, Any], number: int = 1, **fields: Any) -> Fact:
    return Fact(
        id=f"evt_{number}",
        kind="model",
        status="running",
        title=fields.pop("title", event_class),
        created_at="2026-06-10T00:00:00Z",
        schema_version="v",
        runtime_id="r",
        sequence=number,
        event_class=event_class,
        turn_id=fields.pop("turn_id", "trn_1"),
        payload=payload,
        **fields,
    )


def pieces(*texts: str) -> list[Fact]:
    return [
        fact("model.delta", {"messageId": "msg_1", "delta": text}, number)
        for number, text in enumerate(texts, start=1)
    ]


def join_deltas(facts: list[Fact]) -> str:
    return "".join(item.payload.get("delta", "") for item in facts)


def test_a_fact_without_secrets_comes_back_as_it_is():
    clean = fact("tool.result", {"output": "ok", "totalTokens": 12}, tool_call_id="c")
    assert redact_fact(clean).fact is clean
    assert redact_fact(clean).note is None


@pytest.mark.requirement("redaction.nested")
def test_every_place_of_a_fact_is_searched():
    dirty = fact(
        "tool.result",
        {"output": {"lines": ["fine", f"key {SECRET}"]}, "password": "hunter2"},
        title=f"used {SECRET}",
        detail=f"with {SECRET}",
        ref_ids=(SECRET, "output:1"),
        extra={"headers": {"authorization": "Basic Zm9v"}},
    )
    redacted = redact_fact(dirty)
    assert SECRET.encode() not in msgspec.json.encode(redacted.fact)
    assert b"hunter2" not in msgspec.json.encode(redacted.fact)
    assert [finding.path for finding in redacted.findings] == [
        "$.payload.output.lines[1]",
        "$.payload.password",
        "$.title",
        "$.detail",
        "$.headers.authorization",
        "$.refIds[0]",
    ]
    assert redacted.fact.ref_ids == ("[redacted]", "output:1")


def test_a_note_says_what_was_hidden_and_not_what_it_was():
    redacted = redact_fact(fact("tool.args", {"args": {"apiKey": SECRET}}, tool_call_id="c"))
    note = redacted.note
    assert note is not None
    assert (note.event_class, note.sequence, note.tool_call_id) == ("output.redacted", None, "c")
    assert note.payload == {
        "eventId": "evt_1",
        "redacted": [{"path": "$.payload.args.apiKey", "rule": "key:api-key"}],
    }


@pytest.mark.requirement("redaction.split-deltas")
def test_a_secret_that_is_split_over_deltas_is_hidden_wherever_it_is_cut():
    for cut in range(1, len(SECRET)):
        redactor = Redactor()
        stream = pieces("Use ", SECRET[:cut], SECRET[cut:], " and go on.")
        stream.append(fact("model.completed", {"messageId": "msg_1"}, 5))
        answer = join_deltas([redactor.feed(item).fact for item in stream])
        assert answer == "Use [redacted] and go on.", cut


@pytest.mark.requirement("redaction.split-deltas")
def test_what_was_held_back_comes_with_the_fact_that_ends_the_text():
    redactor = Redactor()
    begun = [redactor.feed(item).fact for item in pieces("Look at sk-")]
    assert join_deltas(begun) == "Look at "
    end = redactor.feed(fact("model.completed", {"messageId": "msg_1"}, 2)).fact
    assert end.payload == {"messageId": "msg_1", "delta": "sk-"}


def test_a_final_text_makes_what_was_held_back_superfluous():
    redactor = Redactor()
    redactor.feed(pieces("Look at sk-")[0])
    whole = {"messageId": "msg_1", "text": "Look at sk-"}
    assert redactor.feed(fact("model.completed", whole, 2)).fact.payload == whole


def test_texts_of_two_messages_do_not_meet():
    redactor = Redactor()
    redactor.feed(pieces("the key is sk-")[0])
    other = redactor.feed(fact("model.delta", {"messageId": "msg_2", "delta": "plain"}, 2))
    assert other.fact.payload["delta"] == "plain"
    end = redactor.feed(fact("model.completed", {"messageId": "msg_2"}, 3))
    assert end.fact.payload == {"messageId": "msg_2"}


def test_a_turn_that_ends_in_the_middle_of_a_text_withholds_what_may_be_half_a_secret():
    redactor = Redactor()
    redactor.feed(pieces(f"the key is {SECRET[:12]}")[0])
    ended = redactor.feed(fact("turn.failed", {"failureCategory": "stream_interrupted"}, 2))
    assert [finding.rule for finding in ended.findings] == ["withheld:unfinished"]
    assert ended.note is not None
    after = redactor.feed(fact("model.delta", {"messageId": "msg_1", "delta": "new"}, 3))
    assert after.fact.payload["delta"] == "new"


def test_output_of_two_streams_of_one_tool_is_kept_apart():
    redactor = Redactor()
    for stream in ("stdout", "stderr"):
        payload = {"delta": SECRET[:20], "stream": stream}
        held = redactor.feed(fact("tool.output.delta", payload, tool_call_id="c")).fact
        assert held.payload["delta"] != SECRET[:20]


def test_known_clean_texts_do_not_hide_a_secret_under_a_key_that_names_one():
    redactor = Redactor()
    redactor.feed(fact("tool.args", {"city": "paris"}, tool_call_id="c"))
    found = redactor.feed(fact("tool.args", {"password": "paris"}, 2, tool_call_id="c"))
    assert found.fact.payload == {"password": "[redacted]"}


@pytest.mark.requirement("redaction.counters-untouched")
def test_counters_by_kind_and_cache_are_no_secrets():
    usage = {"tokens": {"input": 5, "output": 3, "cache": {"read": 1, "write": 0}}}
    assert redact_fact(fact("cost.recorded", usage)).findings == ()
