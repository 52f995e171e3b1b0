"""Outlets as a whole: by name, and in bounded memory."""

import pytest

from factwire.outlets import OUTLETS, UnknownOutlet, find_outlet
from factwire.outlets.protocol_writer import NAMES_REMEMBERED, WireNames
from factwire.sources import FactBuilder


@pytest.mark.requirement("outlets.names")
def test_outlets_are_found_by_name_and_others_are_refused_with_a_code():
    assert {name: (kind.source, kind.last) for name, kind in OUTLETS.items()} == {
        "ag-ui": ("ag-ui", b""),
        "ai-sdk": ("ai-sdk", b"data: [DONE]\n\n"),
        "ai-sdk-5": ("ai-sdk", b"data: [DONE]\n\n"),
        "ai-sdk-6": ("ai-sdk", b"data: [DONE]\n\n"),
    }
    with pytest.raises(UnknownOutlet, match="ai-sdk-6, got 'ai-sdk-4'") as caught:
        find_outlet("ai-sdk-4")
    assert caught.value.code == "unknown_outlet"


@pytest.mark.requirement("outlets.bounded")
@pytest.mark.parametrize("name", ["ag-ui", "ai-sdk"])
def test_a_long_turn_costs_what_is_open_and_each_fact_the_same(name: str):
    telling = FactBuilder("demo", thread_id="t")
    telling.begin_turn(turn_id="turn")
    outlet = find_outlet(name).make()
    most = 0
    for at in range(3_000):
        telling.add_text("m", "word ")
        telling.start_tool(f"c{at}", "look", {"at": at})
        telling.complete_tool(f"c{at}", "seen")
        telling.add_reasoning("m", "hm")
        most = max(most, *(len(outlet.take(fact)) for fact in telling.drain()))
    assert most <= 4
    telling.complete_turn()
    last = [len(outlet.take(fact)) for fact in telling.drain()]
    assert max(last) <= 4


@pytest.mark.requirement("outlets.bounded")
def test_names_are_used_once_and_the_oldest_are_forgotten():
    names = WireNames()
    assert [names.assign("m", "m") for _ in range(3)] == ["m", "m:2", "m:3"]
    assert names.assign("m:4") == "m:4"
    assert names.assign("m", "m") == "m:5"
    assert names.names_of("m") == ["m", "m:2", "m:3", "m:5"]
    for at in range(NAMES_REMEMBERED):
        names.assign(f"n{at}", "n")
    assert names.names_of("m") == []
    assert len(names.names_of("n")) == NAMES_REMEMBERED
