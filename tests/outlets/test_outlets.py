"""Outlets as a whole: by name, and in bounded memory."""

import pytest

from factwire.outlets import OUTLETS, UnknownOutlet, outlet_of
from factwire.outlets.limits import NAMES_REMEMBERED
from factwire.outlets.names import Names
from factwire.sources import Telling


@pytest.mark.requirement("outlets.names")
def test_outlets_are_found_by_name_and_others_are_refused_with_a_code():
    assert list(OUTLETS) == ["ag-ui", "ai-sdk", "ai-sdk-5", "ai-sdk-6"]
    with pytest.raises(UnknownOutlet, match="ai-sdk-6, got 'ai-sdk-4'") as caught:
        outlet_of("ai-sdk-4")
    assert caught.value.code == "unknown_outlet"


@pytest.mark.requirement("outlets.bounded")
@pytest.mark.parametrize("name", ["ag-ui", "ai-sdk"])
def test_a_long_turn_costs_what_is_open_and_each_fact_the_same(name: str):
    telling = Telling("demo", thread_id="t")
    telling.begin(turn_id="turn")
    outlet = outlet_of(name).make()
    most = 0
    for at in range(3_000):
        telling.text("m", "word ")
        telling.tool(f"c{at}", "look", {"at": at})
        telling.tool_result(f"c{at}", "seen")
        telling.reasoning("m", "hm")
        most = max(most, *(len(outlet.take(fact)) for fact in telling.drain()))
    assert most <= 4
    telling.complete()
    last = [len(outlet.take(fact)) for fact in telling.drain()]
    assert max(last) <= 4


@pytest.mark.requirement("outlets.bounded")
def test_names_are_used_once_and_the_oldest_are_forgotten():
    names = Names()
    assert [names.fresh("m", "m") for _ in range(3)] == ["m", "m:2", "m:3"]
    assert names.fresh("m:4") == "m:4"
    assert names.fresh("m", "m") == "m:5"
    assert names.of("m") == ["m", "m:2", "m:3", "m:5"]
    for at in range(NAMES_REMEMBERED):
        names.fresh(f"n{at}", "n")
    assert names.of("m") == []
    assert len(names.of("n")) == NAMES_REMEMBERED
