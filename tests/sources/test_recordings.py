"""Every recorded stream: valid, complete, the same each time, and whole wherever it is cut."""

import json
from pathlib import Path

import pytest

from factwire.facts import encode_fact, inspect_stream, is_valid, verify
from tests.sources.recordings import RECORDINGS, facts_of, name_of, screen_of

TERMINALS = ("turn.completed", "turn.failed", "turn.canceled")


@pytest.mark.requirement("sources.recordings.valid")
@pytest.mark.parametrize("path", RECORDINGS, ids=name_of)
def test_a_recording_converts_to_valid_facts_without_a_violation(path: Path):
    facts = facts_of(path)
    assert is_valid(inspect_stream([encode_fact(fact) for fact in facts]))
    assert verify(facts) == []
    opened = [fact.turn_id for fact in facts if fact.event_class == "turn.started"]
    ended = [fact.turn_id for fact in facts if fact.event_class in TERMINALS]
    assert opened == ended


@pytest.mark.requirement("sources.recordings.screen")
@pytest.mark.parametrize("path", RECORDINGS, ids=name_of)
def test_a_recording_shows_what_was_reviewed(path: Path):
    reviewed = json.loads(path.with_suffix(".screen.json").read_text())
    assert json.loads(json.dumps(screen_of(facts_of(path)))) == reviewed


@pytest.mark.requirement("sources.recordings.same-ids")
@pytest.mark.parametrize("path", RECORDINGS, ids=name_of)
def test_a_recording_told_twice_gives_the_same_facts(path: Path):
    assert facts_of(path) == facts_of(path)
    ids = [fact.id for fact in facts_of(path)]
    assert len(set(ids)) == len(ids)


@pytest.mark.requirement("sources.recordings.cut")
@pytest.mark.parametrize("path", RECORDINGS, ids=name_of)
def test_a_recording_that_is_cut_anywhere_is_still_valid_and_closed(path: Path):
    lines = path.read_bytes().splitlines(keepends=True)
    whole = facts_of(path)
    for end in range(len(lines)):
        facts = facts_of(path, lines[:end])
        assert is_valid(inspect_stream([encode_fact(fact) for fact in facts])), end
        assert verify(facts) == [], end
        opened = [fact.turn_id for fact in facts if fact.event_class == "turn.started"]
        ended = [fact.turn_id for fact in facts if fact.event_class in TERMINALS]
        assert opened == ended, end
        outcome = [fact.id for fact in facts]
        common = sum(
            1 for one, other in zip(outcome, (f.id for f in whole), strict=False) if one == other
        )
        assert common >= len(outcome) - 40, "ids depend on what comes later"


@pytest.mark.requirement("sources.recordings.cut")
@pytest.mark.parametrize("path", RECORDINGS, ids=name_of)
def test_a_line_that_cannot_be_read_is_a_warning_and_no_more(path: Path):
    lines = path.read_bytes().splitlines(keepends=True)
    is_sse = path.suffix == ".sse"
    place = next(at for at, line in enumerate(lines) if not (is_sse and line.strip())) + 1
    broken = [
        *lines[:place],
        *([b"data: {broken\n", b"\n"] if is_sse else [b"{broken\n"]),
        *lines[place:],
    ]
    facts = facts_of(path, broken)
    codes = [fact.payload.get("code") for fact in facts if fact.event_class == "runtime.warning"]
    assert "unreadable_source_item" in codes
    spoken = [
        [payloads for payloads in screen_of(each)["conversation"] if payloads[1]]
        for each in (facts, facts_of(path))
    ]
    assert spoken[0] == spoken[1]
