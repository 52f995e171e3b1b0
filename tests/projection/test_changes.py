"""What a projection sends: operations that bring any copy of a state along."""

from typing import Any

import msgspec
import pytest

from factwire.facts.json_patch import JsonDocument
from factwire.projection import Changes, Operation, Projection, advance, fold_changes
from tests.projection.fact_maker import THREAD, FactMaker, as_text, watch_facts

PART = {"turnId": "turn", "messageId": "m", "partId": "p"}


@pytest.mark.requirement("projection.changes.small")
def test_a_delta_is_sent_as_one_append():
    tell = FactMaker()
    seen = watch_facts(
        [tell("turn.started", turnId="turn"), tell("model.delta", **PART, delta="a")]
    )
    changes = seen.apply(tell("model.delta", **PART, delta="b"))
    assert changes.ops == [Operation("append", "/messages/0/parts/0/text", "b")]
    assert (changes.event_id, changes.sequence, changes.cursor) == ("thread-3", 3, 3)
    assert changes.event_count == 3


@pytest.mark.requirement("projection.changes.small")
def test_a_final_text_that_only_grew_is_sent_as_its_growth():
    tell = FactMaker()
    seen = watch_facts(
        [tell("turn.started", turnId="turn"), tell("model.delta", **PART, delta="Hello")]
    )
    ops = seen.apply(tell("model.completed", **PART, text="Hello world")).ops
    assert ops[0] == Operation("append", "/messages/0/parts/0/text", " world")


@pytest.mark.requirement("projection.changes.small")
def test_where_only_a_count_changed_nothing_else_is_sent():
    tell = FactMaker()
    fact = tell("turn.started", turnId="turn")
    seen = watch_facts([fact])
    assert seen.apply(fact).operations() == [
        Operation("replace", "/hydration/repeated", 1),
        Operation("replace", "/hydration/received", 2),
    ]


@pytest.mark.requirement("projection.changes.folded")
def test_folding_keeps_the_last_count_of_facts_that_came():
    tell = FactMaker()
    facts = [tell("turn.started", turnId="turn"), tell("run.status")]
    projection = Projection(THREAD)
    copy = JsonDocument(msgspec.json.decode(projection.snapshot()))
    sent = [projection.apply(fact) for fact in (*facts, facts[0], facts[1])]
    advance(copy, fold_changes(sent))
    assert copy.root == msgspec.json.decode(projection.snapshot())
    assert (copy.root["hydration"]["received"], copy.root["hydration"]["eventCount"]) == (4, 2)


@pytest.mark.requirement("projection.changes.folded")
def test_folding_joins_text_and_keeps_the_last_head():
    tell = FactMaker()
    seen = watch_facts([tell("model.delta", **PART, delta="a")])
    sent = [seen.projection.apply(tell("model.delta", **PART, delta=text)) for text in "bcd"]
    assert fold_changes(sent) == [
        Operation("append", "/messages/0/parts/0/text", "bcd"),
        Operation("replace", "/runtime/latestEventId", "thread-4"),
        Operation("replace", "/runtime/latestSequence", 4),
        Operation("replace", "/hydration/cursor", 4),
        Operation("replace", "/hydration/eventCount", 4),
        Operation("replace", "/hydration/received", 4),
    ]


@pytest.mark.requirement("projection.changes.folded")
def test_folding_nothing_gives_nothing():
    assert fold_changes([]) == []
    assert fold_changes([Changes([])]) == []


@pytest.mark.requirement("projection.changes.folded")
def test_folding_keeps_a_cursor_that_moved_without_a_fact_being_taken():
    tell = FactMaker()
    first = tell("turn.started", turnId="turn", id="same")
    twin = tell("turn.started", turnId="turn", id="same")
    projection = Projection(THREAD)
    copy = JsonDocument(msgspec.json.decode(projection.snapshot()))
    advance(copy, fold_changes([projection.apply(first), projection.apply(twin)]))
    assert as_text(copy.root) == as_text(msgspec.json.decode(projection.snapshot()))


@pytest.mark.requirement("projection.changes.own")
def test_what_was_sent_does_not_change_with_the_state():
    tell = FactMaker()
    projection = Projection(THREAD)
    sent = projection.apply(tell("model.delta", **PART, delta="a"))
    before = msgspec.json.encode(sent)
    projection.apply(tell("model.delta", **PART, delta="b"))
    projection.apply(tell("state.delta", patch=[{"op": "add", "path": "/shared/a", "value": []}]))
    assert msgspec.json.encode(sent) == before


@pytest.mark.requirement("projection.changes.own")
def test_what_a_fact_carries_is_not_changed_by_later_facts():
    tell = FactMaker()
    shared: dict[str, Any] = {"list": []}
    add: dict[str, Any] = {"op": "add", "path": "/shared/list/-", "value": {"deep": []}}
    more = {"op": "add", "path": "/shared/list/0/deep/-", "value": 1}
    facts = [tell("state.snapshot", shared=shared), tell("state.delta", patch=[add])]
    seen = watch_facts([*facts, tell("state.delta", patch=[more])])
    assert seen.state.shared == {"list": [{"deep": [1]}]}
    assert (shared, add["value"]) == ({"list": []}, {"deep": []})


@pytest.mark.requirement("projection.changes.wire")
def test_changes_survive_the_wire():
    tell = FactMaker()
    projection = Projection(THREAD)
    copy = JsonDocument(msgspec.json.decode(projection.snapshot()))
    for fact in (
        tell("tool.started", turnId="t", toolCallId="c~/é"),
        tell("tool.result", turnId="t", toolCallId="c~/é", output={"n": 1.0}),
        tell("tool.started", turnId="t", toolCallId="c~/é"),
    ):
        sent = msgspec.json.encode(projection.apply(fact).operations())
        copy.patch(msgspec.json.decode(sent))
    assert as_text(copy.root) == as_text(msgspec.json.decode(projection.snapshot()))
