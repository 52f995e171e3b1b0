"""`factwire convert --to`: facts as the stream that a client of another protocol reads."""

import json

import pytest

from factwire.facts import encode_fact
from factwire.outlets import OUTLETS, frame_item
from tests.cli.cli_commands import Factwire
from tests.outlets.gists import encode_facts
from tests.outlets.stories import facts_on_file
from tests.sources.recordings import FOLDER

RECORDING = "claude-code/approval"


@pytest.mark.requirement("cli.convert.outlets")
@pytest.mark.parametrize("name", OUTLETS)
def test_facts_and_streams_are_converted_for_clients(factwire: Factwire, name: str):
    facts = facts_on_file(RECORDING)
    items = encode_facts(facts, name)
    path = factwire.file("".join(f"{encode_fact(fact).decode()}\n" for fact in facts))
    lines = factwire("convert", path, "--to", name)
    assert (lines.code, lines.err) == (0, "")
    assert [json.loads(line) for line in lines.out.splitlines()] == items
    recording = str(FOLDER / f"{RECORDING}.jsonl")
    options = ("--from", "claude-code", "--thread", "approval", "--to", name, "--sse")
    events = factwire("convert", recording, *options)
    last = OUTLETS[name].last.decode()
    assert events.code == 0
    assert events.out == b"".join(frame_item(item, "events") for item in items).decode() + last


@pytest.mark.requirement("cli.convert.outlets")
def test_events_are_for_clients_only(factwire: Factwire):
    done = factwire("convert", factwire.file(""), "--to", "facts", "--sse")
    assert (done.code, done.out) == (2, "")
    assert f"--sse works with the outlets {', '.join(OUTLETS)}, not with facts" in done.err
