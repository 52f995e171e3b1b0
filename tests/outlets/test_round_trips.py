"""Through another protocol and back: what was said, done, asked and decided is still there."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factwire.facts import Fact, encode_fact, inspect_stream, is_valid, verify
from factwire.sources import Telling
from tests.outlets.gists import Gist, back, encoded
from tests.outlets.stories import ON_FILE, OUTLETS, on_file, story

Lanes = dict[str | None, list[list[Any]]]


def returned(facts: list[Fact], name: str) -> Lanes:
    """The gist of what comes back; it is valid, whatever it is."""
    told = back(encoded(facts, name), name)
    assert is_valid(inspect_stream([encode_fact(fact) for fact in told]))
    assert verify(told) == []
    return Gist(told).told()


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
    facts = list(on_file(story_name))
    gist = Gist(facts)
    came = returned(facts, name)
    if gist.is_open:
        assert still_open(came) == still_open(gist.told())
    else:
        assert came == gist.told()


Act = Callable[[Telling], object]
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


def said(message: str, text: str, speaker: str | None) -> Act:
    return lambda tell: tell.text(_of(message, speaker), text, subagent_id=speaker)


def ended(message: str, speaker: str | None, text: str | None) -> Act:
    def act(tell: Telling) -> None:
        if _of(message, speaker) in tell.messages:
            tell.text_end(_of(message, speaker), text)

    return act


def retracted(message: str) -> Act:
    return lambda tell: tell.retract(_of(message, None))


def thought(message: str, text: str) -> Act:
    return lambda tell: tell.reasoning(message, text)


def called(call: str, args: Any, speaker: str | None) -> Act:
    def act(tell: Telling) -> None:
        tell.tool(_of(call, speaker), f"tool {call}", args, subagent_id=speaker)

    return act


def gave(call: str, speaker: str | None, output: Any) -> Act:
    def act(tell: Telling) -> None:
        if _of(call, speaker) in tell.tools and not _is_held(tell):
            tell.tool_result(_of(call, speaker), output)

    return act


def failed(call: str, speaker: str | None, category: str) -> Act:
    def act(tell: Telling) -> None:
        if _of(call, speaker) in tell.tools:
            tell.tool_failed(_of(call, speaker), category, "it went wrong")

    return act


def asked(action: str, call: str | None) -> Act:
    def act(tell: Telling) -> None:
        about = call if call in tell.tools else None
        tell.ask(action, {"actionType": "tool_approval", "prompt": "Do it?"}, tool_call_id=about)

    return act


def answered(action: str, decision: str) -> Act:
    return lambda tell: tell.answered(action, decision)


def withdrawn(action: str) -> Act:
    return lambda tell: tell.withdrawn(action, "expired")


def joined(speaker: str) -> Act:
    return lambda tell: tell.subagent(speaker, title="Reader")


def left(speaker: str, event_class: str) -> Act:
    return lambda tell: tell.subagent_end(speaker, event_class, message="done")


def _of(name: str, speaker: str | None) -> str:
    return f"{name}-{speaker}" if speaker else name


def _is_held(tell: Telling) -> bool:
    """A call gives no result while its question is open."""
    return bool(tell.actions)


ACTS = st.one_of(
    st.builds(said, MESSAGES, WORDS, SPEAKERS),
    st.builds(said, MESSAGES, WORDS, SPEAKERS),
    st.builds(ended, MESSAGES, SPEAKERS, st.none() | WORDS),
    st.builds(retracted, MESSAGES),
    st.builds(thought, MESSAGES, WORDS),
    st.builds(called, CALLS, ARGS, SPEAKERS),
    st.builds(gave, CALLS, SPEAKERS, JSON),
    st.builds(failed, CALLS, SPEAKERS, st.sampled_from(["tool_error", "timeout"])),
    st.builds(asked, ACTIONS, st.none() | CALLS),
    st.builds(answered, ACTIONS, st.sampled_from(["approved", "denied", "answered"])),
    st.builds(withdrawn, ACTIONS),
    st.builds(joined, st.sampled_from(["sub-1", "sub-2"])),
    st.builds(
        left,
        st.sampled_from(["sub-1", "sub-2"]),
        st.sampled_from(["subagent.completed", "subagent.failed"]),
    ),
)
ENDS: dict[str, Act] = {
    "completed": lambda tell: tell.complete(),
    "failed": lambda tell: tell.fail("timeout", "too slow"),
    "canceled": lambda tell: tell.cancel("stop"),
    "cut": lambda tell: tell.cut(),
}


@pytest.mark.fuzz
@pytest.mark.requirement("outlets.round-trip")
@settings(max_examples=150, deadline=None)
@given(
    acts=st.lists(ACTS, max_size=25),
    end=st.sampled_from(sorted(ENDS)),
    name=st.sampled_from(OUTLETS),
)
def test_any_turn_comes_back_as_it_was(acts: list[Act], end: str, name: str):
    facts = story(*acts, ENDS[end])
    assert returned(facts, name) == Gist(facts).told()
