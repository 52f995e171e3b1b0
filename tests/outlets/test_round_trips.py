"""Through another protocol and back: what was said, done, asked and decided is still there."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factwire.facts import Fact, encode_fact, inspect_stream, is_valid, verify
from factwire.outlets import OUTLETS
from factwire.sources import FactBuilder
from tests.outlets.gists import Gist, convert_back, encode_facts
from tests.outlets.stories import ON_FILE, build_turn, facts_on_file

Lanes = dict[str | None, list[list[Any]]]


def send_and_return(facts: list[Fact], name: str) -> Lanes:
    """The gist of what comes back; it is valid, whatever it is."""
    items = convert_back(encode_facts(facts, name), name)
    assert is_valid(inspect_stream([encode_fact(fact) for fact in items]))
    assert verify(items) == []
    return Gist(items).lines()


def still_open(lanes: Lanes) -> Lanes:
    """Without what the end of the stream has closed."""
    kept: Lanes = {}
    for who, lane in lanes.items():
        rows = [row for row in lane if row[0] not in ("end", "closed", "failed", "done")]
        kept[who] = [
            [*row[:4], None] if row[0] == "tool" and row[4] and row[4][0] == "interrupted" else row
            for row in rows
        ]
    return {who: rows for who, rows in kept.items() if rows}


@pytest.mark.requirement("outlets.round-trip")
@pytest.mark.parametrize("name", OUTLETS)
@pytest.mark.parametrize("story_name", ON_FILE)
def test_a_stream_on_file_comes_back_as_it_was(story_name: str, name: str):
    facts = list(facts_on_file(story_name))
    gist = Gist(facts)
    came = send_and_return(facts, name)
    if gist.is_open:
        assert still_open(came) == still_open(gist.lines())
    else:
        assert came == gist.lines()


Act = Callable[[FactBuilder], object]
WORDS = st.text("ab é\n\u202e😀", min_size=1, max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
ARGS = st.none() | st.dictionaries(WORDS, JSON, max_size=2)
SPEAKERS = st.sampled_from([None, None, "sub-1", "sub-2"])
MESSAGES = st.sampled_from(["m1", "m2", "m3"])
CALLS = st.sampled_from(["c1", "c2", "c3"])
ACTIONS = st.sampled_from(["a1", "a2"])


def say(message: str, text: str, speaker: str | None) -> Act:
    return lambda tell: tell.add_text(_of(message, speaker), text, subagent_id=speaker)


def end_text(message: str, speaker: str | None, text: str | None) -> Act:
    def act(tell: FactBuilder) -> None:
        if _of(message, speaker) in tell.messages:
            tell.end_text(_of(message, speaker), text)

    return act


def retract(message: str) -> Act:
    return lambda tell: tell.retract_messages(_of(message, None))


def think(message: str, text: str) -> Act:
    return lambda tell: tell.add_reasoning(message, text)


def call_tool(call: str, args: Any, speaker: str | None) -> Act:
    def act(tell: FactBuilder) -> None:
        tell.start_tool(_of(call, speaker), f"tool {call}", args, subagent_id=speaker)

    return act


def give_result(call: str, speaker: str | None, output: Any) -> Act:
    def act(tell: FactBuilder) -> None:
        if _of(call, speaker) in tell.tools and not _is_held(tell):
            tell.complete_tool(_of(call, speaker), output)

    return act


def fail_call(call: str, speaker: str | None, category: str) -> Act:
    def act(tell: FactBuilder) -> None:
        if _of(call, speaker) in tell.tools:
            tell.fail_tool(_of(call, speaker), category, "it went wrong")

    return act


def ask(action: str, call: str | None) -> Act:
    def act(tell: FactBuilder) -> None:
        about = call if call in tell.tools else None
        tell.require_action(
            action, {"actionType": "tool_approval", "prompt": "Do it?"}, tool_call_id=about
        )

    return act


def answer(action: str, decision: str) -> Act:
    return lambda tell: tell.resolve_action(action, decision)


def withdraw(action: str) -> Act:
    return lambda tell: tell.cancel_action(action, "expired")


def join_subagent(speaker: str) -> Act:
    return lambda tell: tell.start_subagent(speaker, title="Reader")


def leave_subagent(speaker: str, event_class: str) -> Act:
    return lambda tell: tell.end_subagent(speaker, event_class, message="done")


def _of(name: str, speaker: str | None) -> str:
    return f"{name}-{speaker}" if speaker else name


def _is_held(tell: FactBuilder) -> bool:
    """A call gives no result while its question is open."""
    return bool(tell.actions)


ACTS = st.one_of(
    st.builds(say, MESSAGES, WORDS, SPEAKERS),
    st.builds(say, MESSAGES, WORDS, SPEAKERS),
    st.builds(end_text, MESSAGES, SPEAKERS, st.none() | WORDS),
    st.builds(retract, MESSAGES),
    st.builds(think, MESSAGES, WORDS),
    st.builds(call_tool, CALLS, ARGS, SPEAKERS),
    st.builds(give_result, CALLS, SPEAKERS, JSON),
    st.builds(fail_call, CALLS, SPEAKERS, st.sampled_from(["tool_error", "timeout"])),
    st.builds(ask, ACTIONS, st.none() | CALLS),
    st.builds(answer, ACTIONS, st.sampled_from(["approved", "denied", "answered"])),
    st.builds(withdraw, ACTIONS),
    st.builds(join_subagent, st.sampled_from(["sub-1", "sub-2"])),
    st.builds(
        leave_subagent,
        st.sampled_from(["sub-1", "sub-2"]),
        st.sampled_from(["subagent.completed", "subagent.failed"]),
    ),
)
ENDS: dict[str, Act] = {
    "completed": lambda tell: tell.complete_turn(),
    "failed": lambda tell: tell.fail_turn("timeout", "too slow"),
    "canceled": lambda tell: tell.cancel_turn("stop"),
    "cut": lambda tell: tell.close_stream(),
}


@pytest.mark.fuzz
@pytest.mark.requirement("outlets.round-trip")
@settings(max_examples=150, deadline=None)
@given(
    acts=st.lists(ACTS, max_size=25),
    end=st.sampled_from(sorted(ENDS)),
    name=st.sampled_from(sorted(OUTLETS)),
)
def test_any_turn_comes_back_as_it_was(acts: list[Act], end: str, name: str):
    facts = build_turn(*acts, ENDS[end])
    assert send_and_return(facts, name) == Gist(facts).lines()
