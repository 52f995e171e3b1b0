"""What the outlets write, read by the vendors' own clients."""

import json
import subprocess
from itertools import pairwise
from typing import Any

import pytest

from tests.outlets.gists import encode_facts
from tests.outlets.stories import ON_FILE, facts_on_file
from tools import agents

pytestmark = pytest.mark.agents


def read_by(script: str, streams: list[list[dict[str, Any]]]) -> list[Any]:
    done = subprocess.run(
        [agents.NODE, str(agents.FOLDER / script)],
        input=json.dumps(streams).encode(),
        capture_output=True,
        check=True,
        timeout=280,
    )
    return json.loads(done.stdout)


def messages(chunks: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """A stream is one message; what is encoded in a row is cut where the next one starts."""
    starts = [at for at, chunk in enumerate(chunks) if chunk["type"] == "start"]
    return [chunks[one:other] for one, other in pairwise([*starts, len(chunks)])]


@pytest.mark.requirement("outlets.vendors")
@pytest.mark.parametrize("outlet", ["ai-sdk", "ai-sdk-6", "ai-sdk-5"])
def test_the_ai_sdk_reads_every_message_and_has_its_words_and_calls(outlet: str):
    streams = [
        each for name in ON_FILE for each in messages(encode_facts(facts_on_file(name), outlet))
    ]
    for chunks, read in zip(streams, read_by("read_chunks.mjs", streams), strict=True):
        payloads = [chunk["errorText"] for chunk in chunks if chunk["type"] == "error"]
        assert "problem" not in read, read
        assert [error.removeprefix("Error: ") for error in read["errors"]] == payloads
        if not any(chunk["type"] == "reset-step" for chunk in chunks):
            assert texts(read["parts"]) == spoken(chunks)
        assert calls(read["parts"]) == called_tools(chunks)


def spoken(chunks: list[dict[str, Any]]) -> str:
    return "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")


def texts(parts: list[dict[str, Any]]) -> str:
    return "".join(part["text"] for part in parts if part["type"] == "text")


def called_tools(chunks: list[dict[str, Any]]) -> set[str]:
    return {chunk["toolCallId"] for chunk in chunks if chunk["type"] == "tool-input-start"}


def calls(parts: list[dict[str, Any]]) -> set[str]:
    return {part["toolCallId"] for part in parts if part["type"] == "dynamic-tool"}


@pytest.mark.requirement("outlets.vendors")
def test_ag_ui_verifies_every_event_and_strips_nothing():
    streams = [encode_facts(facts_on_file(name), "ag-ui") for name in ON_FILE]
    verdicts = read_by("verify_events.mjs", streams)
    assert dict(zip(ON_FILE, verdicts, strict=True)) == dict.fromkeys(ON_FILE)


@pytest.mark.requirement("outlets.vendors")
def test_the_vendors_refuse_what_breaks_their_rules():
    text = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "a"}
    run = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
    odd = {**run, "odd": 1}
    assert all(read_by("verify_events.mjs", [[run, text], [odd]]))
    bad = [{"type": "text-delta", "id": "m"}]
    assert "problem" in read_by("read_chunks.mjs", [bad])[0]
