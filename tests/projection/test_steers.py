"""What people say to a turn: its prompt in all its texts, and steers beside it."""

from typing import Any

import pytest

from tests.projection.fact_maker import FactMaker, project_facts, texts

TURN = {"turnId": "turn"}


def text_input(*wordings: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": wording} for wording in wordings]


def stated(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a fact with its `status` in the payload, where a queue states it."""
    rest = {name: value for name, value in fields.items() if name != "status"}
    return {**rest, "payload": {"status": fields.get("status")}}


DELIVERIES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "steer": [
        ("queue.changed", {"control": "steer", "status": "delivered", "text": "Faster."}),
    ],
    "steer under the prompt's message": [
        (
            "queue.changed",
            {"control": "steer", "status": "delivered", "text": "Faster.", "messageId": "p"},
        ),
    ],
    "steer by mode, text in its input": [
        (
            "queue.changed",
            {"mode": "steer", "status": "delivered", "input": text_input("Faster.")},
        ),
    ],
    "pending steer, delivered without its text": [
        (
            "queue.changed",
            {"control": "steer", "steerId": "s", "status": "pending"} | {"text": "Faster."},
        ),
        ("queue.changed", {"control": "steer", "steerId": "s", "status": "delivered"}),
    ],
    "steer that is delivered by its change": [
        ("queue.changed", {"control": "steer", "change": "delivered", "text": "Faster."}),
    ],
    "turn that waited, delivered as a steer": [
        ("queue.changed", {"queuedTurnId": "next", "prompt": "Faster."}),
        (
            "queue.changed",
            {"queuedTurnId": "next", "control": "steer", "status": "delivered", "text": "Faster."},
        ),
    ],
    "another submission of the turn": [("turn.submitted", {"prompt": "Faster."})],
    "another submission under the prompt's message": [
        ("turn.submitted", {"control": "steer", "prompt": "Faster.", "messageId": "p"}),
    ],
}


@pytest.mark.requirement("projection.steers")
@pytest.mark.parametrize("prompt_id", [None, "p"])
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_delivered_steer_stands_beside_the_prompt(delivery: str, prompt_id: str | None):
    make = FactMaker()
    state = project_facts(
        make("turn.submitted", **TURN, prompt="Go.", messageId=prompt_id),
        make("turn.started", **TURN, prompt="Go.", messageId=prompt_id),
        *(make(name, **TURN, **stated(fields)) for name, fields in DELIVERIES[delivery]),
    )
    assert texts(state) == [("user", ["Go."]), ("user", ["Faster."])]
    assert state.queue.turns == []


@pytest.mark.requirement("projection.steers")
def test_two_steers_are_two_messages_and_a_repeated_delivery_is_none():
    make = FactMaker()
    steer = stated({**TURN, "control": "steer", "status": "delivered"})
    state = project_facts(
        make("turn.submitted", **TURN, prompt="Go."),
        make("queue.changed", **steer, steerId="a", text="Faster."),
        make("queue.changed", **steer, steerId="b", text="Faster."),
        make("queue.changed", **steer, steerId="b", text="Faster."),
    )
    assert texts(state) == [("user", ["Go."]), ("user", ["Faster."]), ("user", ["Faster."])]


@pytest.mark.requirement("projection.steers")
def test_what_a_subagent_is_told_leaves_every_prompt_as_it_was():
    make = FactMaker()
    sub = {**TURN, "subagentId": "sub", "taskId": "task"}
    state = project_facts(
        make("turn.submitted", **TURN, prompt="Go."),
        make("turn.submitted", **sub, prompt="Do your part."),
        make("subagent.input", **sub, message="Faster.", text="Faster.", control="steer"),
    )
    assert texts(state) == [("user", ["Go."]), ("user", ["Do your part."])]


INPUTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "prompt": ({"prompt": "a"}, ["a"]),
    "one text": ({"input": text_input("a")}, ["a"]),
    "a plain text": ({"input": "a"}, ["a"]),
    "an object with a text": ({"input": {"text": "a"}}, ["a"]),
    "an object with parts": ({"input": {"parts": text_input("a", "b")}}, ["a", "b"]),
    "an object with both": ({"input": {"text": "a", "parts": text_input("b")}}, ["a", "b"]),
    "an object that repeats": ({"input": {"text": "a", "parts": text_input("a")}}, ["a"]),
    "two texts": ({"input": text_input("a", "b")}, ["a", "b"]),
    "the same text twice": ({"input": text_input("a", "a")}, ["a", "a"]),
    "prompt and its input": ({"prompt": "a", "input": text_input("a")}, ["a"]),
    "prompt and a second text": ({"prompt": "a", "input": text_input("a", "b")}, ["a", "b"]),
    "prompt and another text": ({"prompt": "a", "input": text_input("b")}, ["a", "b"]),
    "prompt of joined texts": ({"prompt": "a\nb", "input": text_input("a", "b")}, ["a\nb"]),
    "plain strings": ({"input": ["a", "b"]}, ["a", "b"]),
    "content": ({"input": [{"type": "text", "content": "a"}, {"text": "b"}]}, ["a", "b"]),
    "texts around a ref": (
        {"input": [{"text": "a"}, {"ref": "asset:1"}, {"text": "b"}]},
        ["a", "b"],
    ),
}


@pytest.mark.requirement("projection.steers")
@pytest.mark.parametrize("name", ["turn.submitted", "turn.started"])
@pytest.mark.parametrize("case", INPUTS)
def test_every_text_of_an_input_is_kept(case: str, name: str):
    payload, expected = INPUTS[case]
    assert texts(project_facts(FactMaker()(name, **TURN, **payload))) == [("user", expected)]


@pytest.mark.requirement("projection.steers")
@pytest.mark.parametrize("case", INPUTS)
def test_a_start_that_repeats_what_was_submitted_adds_nothing(case: str):
    make, (payload, expected) = FactMaker(), INPUTS[case]
    state = project_facts(
        make("turn.submitted", **TURN, **payload), make("turn.started", **TURN, **payload)
    )
    assert texts(state) == [("user", expected)]


@pytest.mark.requirement("projection.steers")
def test_a_start_in_more_detail_completes_the_prompt():
    make = FactMaker()
    state = project_facts(
        make("turn.submitted", **TURN, prompt="a"),
        make("turn.started", **TURN, input=text_input("a", "b")),
    )
    assert texts(state) == [("user", ["a", "b"])]
