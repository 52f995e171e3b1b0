"""Facts as UI events and back: nothing that a screen shows is lost, and nothing comes twice.

Read again, the events of a fact are that fact, so every state is the same to the byte; no field is
excepted.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.conformance.fixture_checks import fixture, fixture_names
from factwire.facts import (
    KNOWN_CLASSES,
    UI_CLASSES,
    Fact,
    decode_fact,
    inspect_stream,
    read_fact,
    read_item,
    shape_issues,
    to_ui_events,
    write_fact,
)
from factwire.facts.vocabulary import STATUSES
from factwire.projection import encode_state, project
from tests.facts.samples import fact, full_fact
from tests.facts.strategies import facts as any_facts
from tests.projection.generated_streams import build_random_facts, build_stream, spoil_facts
from tests.sources.recordings import RECORDINGS, facts_of, name_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STREAMS = sorted([*EXAMPLES.glob("streams/*.ndjson"), *EXAMPLES.glob("*.ndjson")])


def lines_of(facts: Iterable[Fact]) -> list[bytes]:
    return [
        msgspec.json.encode(write_fact(event, "ui"))
        for fact in facts
        for event in to_ui_events(fact)
    ]


def facts_in(lines: Iterable[bytes]) -> list[Fact]:
    readings = [read_item(line) for line in lines]
    return [each.fact for each in readings if each.fact is not None and not each.is_repeat]


def assert_same_screen(facts: Sequence[Fact]) -> None:
    """The facts come back as they were, and so does the screen."""
    back = facts_in(lines_of(facts))
    assert back == [*facts]
    assert encode_state(project(back)) == encode_state(project(facts))


def assert_numbered_once(facts: Iterable[Fact]) -> None:
    for source in facts:
        first, *more = to_ui_events(source)
        assert (first.id, first.sequence) == (source.id, source.sequence)
        assert [event.sequence for event in more] == [None] * len(more)
        assert len({event.id for event in (first, *more)}) == 1 + len(more)


@pytest.mark.requirement("ui.round-trip")
@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_recorded_stream_shows_the_same_screen(path: Path):
    readings = [read_item(line) for line in path.read_bytes().splitlines()]
    facts = [reading.fact for reading in readings if reading.fact is not None]
    assert_same_screen(facts)
    assert_numbered_once(facts)


@pytest.mark.requirement("ui.round-trip")
@pytest.mark.parametrize("name", fixture_names())
def test_a_fixture_shows_the_same_screen(name: str):
    assert_same_screen([read_fact(event) for event in fixture(name).events])


@pytest.mark.requirement("ui.round-trip")
@pytest.mark.parametrize("path", RECORDINGS, ids=name_of)
def test_a_recording_of_an_agent_shows_the_same_screen(path: Path):
    assert_same_screen(facts_of(path))


@pytest.mark.requirement("ui.round-trip")
@given(st.integers(0, 2**16), st.booleans())
def test_any_stream_shows_the_same_screen(seed: int, hostile: bool):
    assert_same_screen(build_stream(seed, 2, hostile=hostile))


@pytest.mark.requirement("ui.round-trip")
@given(st.randoms(use_true_random=False), st.integers(0, 2**16))
def test_a_stream_that_went_wrong_shows_the_same_screen(source: Any, seed: int):
    assert_same_screen(spoil_facts(source, build_stream(seed, 1)))
    assert_same_screen(build_random_facts(seed, 40))


@pytest.mark.requirement("ui.round-trip")
@pytest.mark.parametrize("name", [*sorted(KNOWN_CLASSES), "never.heard", None])
def test_every_class_comes_back_with_every_status(name: str | None):
    for make in (full_fact, fact):
        for status in (*STATUSES, "odd"):
            source = msgspec.structs.replace(
                make(name or "x.y", payload={"n": 1}, custom=None), status=status, event_class=name
            )
            events = to_ui_events(source)
            for event in events:
                written = write_fact(event, "ui")
                assert event.event_class in UI_CLASSES
                assert shape_issues(written, "ui") == []
                assert (event.status, event.payload) == (status, source.payload)
                assert read_fact(json.loads(msgspec.json.encode(written))) == source
            assert_numbered_once([source])


@pytest.mark.requirement("ui.round-trip")
@given(
    any_facts(),
    st.sampled_from(["", "runtimeFact", "type", "eventId", "timestamp"]),
    st.none() | st.text(),
)
def test_any_fact_comes_back_from_each_of_its_events(source: Fact, name: str, value: str | None):
    """Even with a field of its own that means something else in a UI event."""
    source = msgspec.structs.replace(source, extra={**source.extra, name: value})
    assert {decode_fact(line) == source for line in lines_of([source])} == {True}


@pytest.mark.requirement("ui.round-trip")
def test_an_event_without_an_id_comes_back_with_the_id_that_was_derived_for_it():
    source = read_fact({"type": "tool.result", "toolCallId": "c", "artifactId": "a"}, "ui")
    lines = lines_of([source])
    assert [json.loads(line).get("id") for line in lines] == [None, f"{source.id}#artifact.changed"]
    assert facts_in(lines) == [source]


@pytest.mark.requirement("ui.round-trip")
@pytest.mark.parametrize(
    ("origin", "path"),
    [
        ({"sequence": "1"}, "sequence"),
        ({"sequence": 2**60}, "sequence"),
        ({"id": ""}, "id"),
        ({"status": None}, "status"),
        ({"payload": []}, "payload"),
        ({"refIds": [1]}, "refIds[0]"),
    ],
)
def test_what_an_event_carries_of_its_fact_is_checked(origin: dict[str, Any], path: str):
    event = {"type": "run.status", "id": "e", "runtimeFact": origin}
    reading = read_item(event)
    assert reading.fact is None
    assert {(issue.code, issue.path) for issue in reading.issues} == {
        ("schema_mismatch", f"$.runtimeFact.{path}")
    }


@pytest.mark.requirement("ui.round-trip")
def test_a_field_of_another_maker_with_the_same_name_is_kept():
    event = {"type": "run.status", "id": "e", "runtimeFact": "theirs"}
    assert write_fact(read_fact(event, "ui"), "ui") == event


@pytest.mark.requirement("ui.round-trip")
@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_ui_events_have_the_issues_of_their_facts(path: Path):
    facts = [item.fact for line in path.read_bytes().splitlines() if (item := read_item(line)).fact]
    of_facts = [(issue.code, issue.message) for issue in inspect_stream(facts)]
    of_events = [(issue.code, issue.message) for issue in inspect_stream(lines_of(facts))]
    assert of_events == of_facts
