"""A text whose pieces and whose end carry different ids is one part, and two texts are two."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import Fact
from factwire.projection import Projection, ProjectionState
from tests.projection.fact_maker import (
    THREAD,
    FactMaker,
    as_json,
    codes,
    project_facts,
    texts,
    watch_facts,
)

TURN = {"turnId": "turn"}
STREAMS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "model": ("model.delta", "model.completed", {}),
    "text": ("text.delta", "text.final", {}),
    "reasoning": ("reasoning.delta", "reasoning.completed", {"kind": "summary"}),
    "plan": ("plan.delta", "plan.final", {}),
}
PLACES = ("nowhere", "top level", "payload", "snake case")


def carry(message: str, part: str, names: tuple[str, str] = ("m", "p")) -> dict[str, Any]:
    """Fields that carry a message id and a part id, each in its place or not at all."""
    fields: dict[str, Any] = {"payload": {}}
    for place, wire, snake, name in (
        (message, "messageId", "message_id", names[0]),
        (part, "partId", "part_id", names[1]),
    ):
        if place == "top level":
            fields[wire] = name
        elif place != "nowhere":
            fields["payload"][wire if place == "payload" else snake] = name
    return fields


def shown(state: ProjectionState, kind: str) -> list[tuple[str, str]]:
    """Text and state of every part of a kind, in order."""
    if kind == "plan":
        return [(str(plan.text), plan.state) for plan in state.plans.values()]
    field, wanted = ("summary", "reasoning") if kind == "reasoning" else ("text", "text")
    return [
        (part[field], part["state"])
        for message in as_json(state.messages)
        for part in message["parts"]
        if part["type"] == wanted
    ]


def stream(
    kind: str, pieces: dict[str, Any], end: dict[str, Any], speaker: dict[str, Any]
) -> list[Fact]:
    make, (delta, final, extra) = FactMaker(), STREAMS[kind]
    whole = "summary" if kind == "reasoning" else "text"
    return [
        make("turn.started", **TURN),
        make(delta, **TURN, **speaker, **with_payload(pieces, {"delta": "So ", **extra})),
        make(delta, **TURN, **speaker, **with_payload(pieces, {"delta": "far", **extra})),
        make(final, **TURN, **speaker, **with_payload(end, {whole: "So far, so good."})),
    ]


def with_payload(fields: dict[str, Any], payload: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "payload": {**fields["payload"], **payload}}


IDS = list(product(PLACES, PLACES))


def _names_as_much(end: tuple[str, str], pieces: tuple[str, str]) -> bool:
    """Whether an end carries every id that the pieces do. One that carries less, with no part open,
    is the next text of its message.
    """
    return all("nowhere" not in (e, p) or p == "nowhere" for e, p in zip(end, pieces, strict=True))


@pytest.mark.requirement("projection.part-ids")
@pytest.mark.parametrize("kind", STREAMS)
@given(
    pieces=st.sampled_from(IDS),
    end=st.sampled_from(IDS),
    speaker=st.sampled_from([{}, {"subagentId": "sub"}]),
    cut=st.integers(0, 4),
)
def test_a_final_replaces_what_was_streamed_whichever_side_carries_ids(
    kind: str, pieces: tuple[str, str], end: tuple[str, str], speaker: dict[str, Any], cut: int
):
    facts = stream(kind, carry(*pieces), carry(*end), speaker)
    state = watch_facts(facts).state
    assert shown(state, kind) == [("So far, so good.", "final")]
    assert len(state.messages) == (0 if kind == "plan" else 1)
    assert len(state.timeline) == 2
    assert codes(state) == []
    first = Projection(THREAD)
    first.apply_all(facts[:cut])
    second = Projection.restore(first.checkpoint())
    second.apply_all(facts[cut:])
    assert second.snapshot() == watch_facts(facts).projection.snapshot()


@pytest.mark.requirement("projection.part-ids")
@pytest.mark.parametrize("kind", STREAMS)
@given(ids=st.sampled_from([(p, e) for p in IDS for e in IDS if _names_as_much(e, p)]))
def test_the_same_final_again_adds_no_part(kind: str, ids: tuple[tuple[str, str], tuple[str, str]]):
    pieces, end = ids
    facts = stream(kind, carry(*pieces), carry(*end), {})
    make = FactMaker(first=5)
    final, whole = STREAMS[kind][1], "summary" if kind == "reasoning" else "text"
    again = make(final, **TURN, **with_payload(carry(*end), {whole: "So far, so good."}))
    assert shown(project_facts(*facts, again), kind) == [("So far, so good.", "final")]


@pytest.mark.requirement("projection.part-ids")
@given(
    order=st.permutations(["p", "q"]),
    named=st.sampled_from(PLACES[1:]),
    messages=st.sampled_from([("m", "m"), ("m", "n")]),
    end_names_message=st.booleans(),
)
def test_parts_that_are_streamed_beside_each_other_end_by_their_names(
    order: list[str], named: str, messages: tuple[str, str], *, end_names_message: bool
):
    make = FactMaker()
    of: dict[str, str] = dict(zip(["p", "q"], messages, strict=True))
    facts = [make("turn.started", **TURN)]
    for piece in ("1", "2"):
        for part in ("p", "q"):
            ids = carry("top level", named, (of[part], part))
            facts.append(make("model.delta", **TURN, **with_payload(ids, {"delta": piece})))
    for part in order:
        message = "top level" if end_names_message else "nowhere"
        ids = carry(message, named, (of[part], part))
        facts.append(make("model.completed", **TURN, **with_payload(ids, {"text": part})))
    state = watch_facts(facts).state
    assert shown(state, "model") == [("p", "final"), ("q", "final")]
    assert codes(state) == []


@pytest.mark.requirement("projection.part-ids")
@pytest.mark.parametrize("kind", STREAMS)
def test_a_final_that_could_mean_two_open_parts_is_kept_apart_with_a_remark(kind: str):
    make, (delta, final, extra) = FactMaker(), STREAMS[kind]
    whole = "summary" if kind == "reasoning" else "text"
    state = project_facts(
        make("turn.started", **TURN),
        make(delta, **TURN, messageId="m", partId="p", payload={"delta": "one", **extra}),
        make(delta, **TURN, messageId="m", partId="q", payload={"delta": "two", **extra}),
        make(final, **TURN, messageId="m", **{whole: "three"}),
    )
    expected = [("one", "streaming"), ("two", "streaming"), ("three", "final")]
    assert (shown(state, kind), codes(state)) == (expected, ["part_ambiguous"])


@pytest.mark.requirement("projection.part-ids")
def test_a_piece_under_a_new_name_begins_a_part_of_its_own():
    make = FactMaker()
    state = project_facts(
        make("turn.started", **TURN),
        make("model.delta", **TURN, messageId="m", delta="one"),
        make("model.delta", **TURN, messageId="m", partId="p", delta="two"),
        make("model.completed", **TURN, messageId="m", text="One."),
        make("model.completed", **TURN, messageId="m", partId="p", text="Two."),
    )
    assert (texts(state), codes(state)) == ([("assistant", ["One.", "Two."])], [])


@pytest.mark.requirement("projection.part-ids")
def test_a_final_of_another_speaker_or_turn_means_nobody_elses_part():
    make = FactMaker()
    state = project_facts(
        make("turn.started", **TURN),
        make("model.delta", **TURN, messageId="m", partId="p", delta="one"),
        make("model.completed", **TURN, subagentId="sub", text="Of the subagent."),
        make("model.completed", turnId="other", text="Of the other turn."),
        make("model.completed", **TURN, text="One."),
    )
    assert [parts for _, parts in texts(state)] == [
        ["One."],
        ["Of the subagent."],
        ["Of the other turn."],
    ]


@pytest.mark.requirement("projection.part-ids")
def test_a_name_that_the_final_gave_is_good_for_what_follows():
    make = FactMaker()
    state = project_facts(
        make("turn.started", **TURN),
        make("model.delta", **TURN, delta="one"),
        make("model.completed", **TURN, messageId="m", partId="p", text="One."),
        make("model.completed", **TURN, messageId="m", partId="p", text="One, corrected."),
        make("model.completed", **TURN, messageId="m", partId="q", text="Two."),
    )
    assert texts(state) == [("assistant", ["One, corrected.", "Two."])]
    (message,) = as_json(state.messages)
    assert (message["messageId"], message["aliases"]) == ("turn:answer", ["m"])
    assert [part["messageId"] for part in message["parts"]] == ["turn:answer", "turn:answer"]


@pytest.mark.requirement("projection.texts-without-ids")
@pytest.mark.parametrize(
    ("name", "field", "kind"),
    [
        ("model.completed", "text", "text"),
        ("text.final", "text", "text"),
        ("reasoning.completed", "summary", "reasoning"),
    ],
)
@given(words=st.lists(st.sampled_from(["ha", "ho", ""]), min_size=1, max_size=4))
def test_whole_texts_without_ids_are_as_many_as_they_are(
    name: str, field: str, kind: str, words: list[str]
):
    make = FactMaker()
    facts = [make("turn.started", **TURN)]
    facts += [make(name, **TURN, payload={field: word}) for word in words]
    facts.append(make("turn.completed", **TURN))
    assert shown(project_facts(*facts), kind) == [(word, "final") for word in words]


@pytest.mark.requirement("projection.texts-without-ids")
def test_a_whole_text_without_ids_behind_one_with_a_name_is_its_own():
    make = FactMaker()
    state = project_facts(
        make("model.completed", **TURN, messageId="m", text="named"),
        make("model.completed", **TURN, text="one"),
        make("model.completed", **TURN, text="two"),
        make("model.completed", **TURN, messageId="m", text="named, again"),
    )
    answers = [("assistant", ["named, again"]), ("assistant", ["one", "two"])]
    assert texts(state) == answers


@pytest.mark.requirement("projection.part-ids")
@given(
    texts=st.lists(st.text("ab \n", min_size=1, max_size=4), min_size=2, max_size=4),
    joint=st.sampled_from(["", "\n", "\n\n"]),
    rest=st.sampled_from(["", ".", " more"]),
    named=st.booleans(),
    tool=st.booleans(),
)
def test_a_final_that_repeats_all_parts_of_a_message_shows_none_of_them_twice(
    texts: list[str], joint: str, rest: str, *, named: bool, tool: bool
):
    make = FactMaker()
    facts = [make("turn.started", **TURN)]
    message = {"messageId": "m"} if named else {}
    for place, text in enumerate(texts):
        facts.append(make("model.delta", **TURN, **message, partId=f"p{place}", delta=text))
        if tool:
            facts.append(make("tool.started", **TURN, toolCallId=f"c{place}"))
    facts.append(make("model.completed", **TURN, **message, text=joint.join(texts) + rest))
    state = watch_facts(facts).state
    pieces = [text for text, _ in shown(state, "model")]
    # Where the texts contain what joins them, either reading has them all once.
    assert len(pieces) == len(texts)
    assert any(each.join(pieces) == joint.join(texts) + rest for each in ("", "\n", "\n\n"))
    assert {end for _, end in shown(state, "model")} == {"final"}
    assert codes(state) == []


@pytest.mark.requirement("projection.part-ids")
@pytest.mark.parametrize(
    ("streamed", "finals", "expected"),
    [
        (("ha", "ho"), ("ho.",), [("ha", "streaming"), ("ho.", "final")]),
        (("ha", "ho"), ("ha!",), [("ha!", "final"), ("ho", "streaming")]),
        (("ha", "ho"), ("ho.", "ha."), [("ha.", "final"), ("ho.", "final")]),
        (("h", "ho"), ("ho.",), [("h", "streaming"), ("ho.", "final")]),
        (("ha", "ha"), ("ha.",), [("ha", "streaming"), ("ha.", "final")]),
    ],
)
def test_a_final_without_a_part_id_ends_the_part_that_its_text_goes_on_from(
    streamed: tuple[str, ...], finals: tuple[str, ...], expected: list[tuple[str, str]]
):
    make = FactMaker()
    facts = [make("turn.started", **TURN)]
    for place, text in enumerate(streamed):
        facts.append(make("model.delta", **TURN, messageId="m", partId=f"p{place}", delta=text))
    facts += [make("model.completed", **TURN, messageId="m", text=text) for text in finals]
    state = watch_facts(facts).state
    assert (shown(state, "model"), codes(state)) == (expected, [])
