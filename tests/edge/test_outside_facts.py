"""Facts that others send to an Edge: kept whole over requests and processes, and refused when they
cannot have happened.
"""

import asyncio
import json
import stat
from collections.abc import Generator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factwire.edge.operations.outside_intakes import INTAKE_FILE
from factwire.facts import redact_text
from tests.edge.edge_process import EdgeProcess, new_client
from tests.edge.edges import RunningEdge, running_edge

TOKENS = (
    "a", " ", "\n", "my ", " key", " npm", "-----", "the ", "sk-", "ghp", "Bearer ", "password",
    " = ", ": ", "https://", "user:", "%", "\\", "é", "[redacted]", "AKIA", ".", ",", "word ",
    "AKIAIOSFODNN7EXAMPLQ", "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "password=hunter2hunter2", "Authorization: Bearer abcdefghijklmnop.qrstuv",
    "https://user:s3cr3tpass@host/path",
    "-----BEGIN PRIVATE KEY-----\nMIIabcdefghijklmnop\n-----END PRIVATE KEY-----",
)  # fmt: skip
"""Words that are, begin or surround secrets."""

ENDS = {
    "model.delta": ("turn.completed", "delta"),
    "tool.output.delta": ("tool.failed", "delta"),
    "process.output": ("process.completed", "text"),
}
"""Class of the pieces → the fact that ends their text, and the key of the text."""

_threads = count(1)


def make_fact(thread: str, number: int, name: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": name,
        "id": f"{thread}-{number}",
        "runtimeId": "my-agent",
        "sessionId": "s",
        "threadId": thread,
        "turnId": f"{thread}-turn",
        "messageId": "m",
        "toolCallId": "c",
        "processId": "p",
        "createdAt": "2026-01-01T00:00:00Z",
        "payload": payload,
    }


def story_of(thread: str, name: str, pieces: list[str], *, is_numbered: bool) -> list[Any]:
    """A turn with one text; without its own ids in `turn.*`, which name no message."""
    end, key = ENDS[name]
    rows: list[tuple[str, dict[str, Any]]] = [("turn.started", {})]
    if name == "tool.output.delta":
        rows.append(("tool.started", {"toolName": "look"}))
    if name == "process.output":
        rows.append(("process.started", {"command": "look"}))
    stream = {} if name == "model.delta" else {"stream": "stdout"}
    rows += [(name, {key: piece, **stream}) for piece in pieces]
    failure = {"failureCategory": "cut", "message": "cut", "output": "its own"}
    rows.append((end, failure if end == "tool.failed" else {"exitCode": 0}))
    facts = [make_fact(thread, number, *row) for number, row in enumerate(rows, 1)]
    if is_numbered:
        return [fact | {"sequence": number} for number, fact in enumerate(facts, 1)]
    return facts


def joined_text(stored: list[dict[str, Any]], name: str) -> str:
    end, key = ENDS[name]
    # A fact that ends a text calls the rest of it `delta`, whatever its pieces call theirs.
    keys = {name: key, end: "delta"}
    return "".join(
        fact["payload"].get(keys[fact["eventClass"]], "")
        for fact in stored
        if fact["eventClass"] in keys
    )


class OpenedEdge:
    """An Edge between the examples of a law."""

    def __init__(self, runner: asyncio.Runner, edge: RunningEdge) -> None:
        self.edge = edge
        self._runner = runner

    def post(self, facts: list[Any]) -> dict[str, Any]:
        return self._runner.run(self.edge.post("/v1/facts", {"facts": facts}))

    def stored(self, thread: str) -> list[dict[str, Any]]:
        page = self._runner.run(self.edge.get("/v1/facts", threadId=thread, limit=1000))
        return [item["fact"] for item in page["items"]]

    def shown_output(self, thread: str) -> str:
        state = self._runner.run(self.edge.get(f"/v1/threads/{thread}/projection"))["state"]
        return state["tools"]["c"]["outputText"]

    def shown_message(self, thread: str) -> str:
        state = self._runner.run(self.edge.get(f"/v1/threads/{thread}/projection"))["state"]
        [message] = state["messages"]
        return "".join(part["text"] for part in message["parts"])

    def forget(self, thread: str) -> None:
        """Lose what only the memory of the process has, as a new process would have."""
        self.edge.machine.intakes.forget([thread])


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Generator[OpenedEdge]:
    with asyncio.Runner() as runner:
        manager = running_edge(tmp_path_factory.mktemp("edge"))
        edge = runner.run(manager.__aenter__())
        yield OpenedEdge(runner, edge)
        runner.run(manager.__aexit__(None, None, None))


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
@pytest.mark.requirement("edge.rest.outside-text")
def test_a_text_is_stored_whole_and_redacted_however_it_is_split(
    opened: OpenedEdge, data: st.DataObject
):
    whole = "".join(data.draw(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=6)))
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(whole) - 1)), max_size=6)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    name = data.draw(st.sampled_from(sorted(ENDS)))
    is_numbered = data.draw(st.booleans())
    thread = f"law-{next(_threads)}"
    facts = story_of(thread, name, [piece for piece in pieces if piece], is_numbered=is_numbered)
    while facts:
        size = data.draw(st.integers(1, len(facts)))
        request, facts = facts[:size], facts[size:]
        answer = opened.post(request)
        assert (answer["accepted"], answer["repeated"]) == (size, 0)
        if data.draw(st.booleans()):
            opened.forget(thread)
        if data.draw(st.booleans()):
            again = opened.post(request)
            assert again == answer | {"accepted": 0, "repeated": size}
    assert joined_text(opened.stored(thread), name) == redact_text(whole)[0]
    if name == "tool.output.delta":
        assert opened.shown_output(thread) == redact_text(whole)[0]
    if name == "model.delta":
        assert opened.shown_message(thread) == redact_text(whole)[0]


KILLED = [
    ["my", " key", " is", " blue", " npm", " -----", " end"],
    ["token: gh", "p_abcdefghijklm", "nopqrstuvwxyz01", "23456789 is", " mine"],
    ["pass", "word", " = ", "hunter2", "hunter2", "\nnext"],
    ["-----BEGIN PRIV", "ATE KEY-----\nMIIabc", "defghijklmnop\n-----END PRIVATE", " KEY-----\nok"],
]


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.requirement("edge.rest.outside-text")
@pytest.mark.requirement("edge.rest.outside-lifecycle")
async def test_texts_and_open_calls_go_on_after_the_edge_was_killed(tmp_path: Path):
    stories = [
        story_of(f"thread-{index}", "tool.output.delta", pieces, is_numbered=index % 2 == 0)
        for index, pieces in enumerate(KILLED)
    ]
    journal = tmp_path / "journal.db"
    async with new_client() as http:
        for place in range(max(map(len, stories))):
            edge = EdgeProcess.start(tmp_path)
            batch = [story[place] for story in stories if place < len(story)]
            answers = [await _post(http, edge, {"facts": batch}) for _ in range(2)]
            assert answers[1] == answers[0] | {"accepted": 0, "repeated": len(batch)}
            edge.kill()
            await edge.wait_for_end()
        edge = EdgeProcess.start(tmp_path)
        for index, pieces in enumerate(KILLED):
            again = make_fact(f"thread-{index}", 99, "tool.failed", {"failureCategory": "cut"})
            refused = await http.post(f"{edge.url}/v1/facts", json=[again])
            assert refused.json()["issues"][0]["code"] == "tool_failed_without_start"
            params = {"threadId": f"thread-{index}", "limit": 1000}
            page = (await http.get(f"{edge.url}/v1/facts", params=params)).json()
            stored = [item["fact"] for item in page["items"]]
            assert joined_text(stored, "tool.output.delta") == redact_text("".join(pieces))[0]
        edge.terminate()
        await edge.wait_for_end()
    kept = tmp_path / "data" / INTAKE_FILE
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for file in (journal, journal.with_name("journal.db-wal")):
        content = file.read_bytes() if file.exists() else b""
        assert b"abcdefghijklm" not in content
        assert b"hunter2" not in content


_OWN_TURN = {"turnId": "main", "parentTaskId": "plan", "taskId": "task"}
_TURN_BESIDE = {"turnId": "beside", "workerId": "worker"}
_MARKED_TURNS = [
    ("turn.submitted", _OWN_TURN),
    ("turn.started", _OWN_TURN),
    ("turn.submitted", _TURN_BESIDE),
    ("turn.completed", _OWN_TURN),
    ("turn.started", _TURN_BESIDE),
    ("turn.completed", _TURN_BESIDE),
]
"""An agent whose own turn names its task, and a worker beside it."""


def _marked_turn_facts() -> list[dict[str, Any]]:
    dropped = ("turnId", "messageId", "toolCallId", "processId")
    return [
        {
            key: value
            for key, value in make_fact("t", number, name, {}).items()
            if key not in dropped
        }
        | ids
        for number, (name, ids) in enumerate(_MARKED_TURNS, 1)
    ]


@pytest.mark.asyncio
@pytest.mark.requirement("edge.records.pure")
async def test_a_turn_that_names_a_task_ends_its_run_after_a_restart(tmp_path: Path):
    listed: list[list[tuple[str, str]]] = []
    for fact in _marked_turn_facts():
        async with running_edge(tmp_path) as edge:
            await edge.post("/v1/facts", [fact])
            runs = (await edge.get("/v1/runs"))["items"]
            listed.append([(run["turnId"], run["status"]) for run in runs])
    assert listed == _LISTED_RUNS


_LISTED_RUNS = [
    [("main", "queued")],
    [("main", "running")],
    [("main", "running")],
    [("main", "finished")],
    [("main", "finished")],
    [("main", "finished")],
]


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.requirement("edge.records.pure")
async def test_a_turn_that_names_a_task_ends_its_run_after_the_edge_was_killed(tmp_path: Path):
    listed: list[list[tuple[str, str]]] = []
    async with new_client() as http:
        for fact in _marked_turn_facts():
            edge = EdgeProcess.start(tmp_path)
            await _post(http, edge, [fact])
            runs = (await http.get(f"{edge.url}/v1/runs")).json()["items"]
            listed.append([(run["turnId"], run["status"]) for run in runs])
            edge.kill()
            await edge.wait_for_end()
            # A start saves what it has read, so that the next one does not read it again.
            again = EdgeProcess.start(tmp_path)
            again.kill()
            await again.wait_for_end()
    assert listed == _LISTED_RUNS


async def _post(http: httpx.AsyncClient, edge: EdgeProcess, body: Any) -> dict[str, Any]:
    answer = await http.post(f"{edge.url}/v1/facts", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_what_is_not_written_is_not_held_back(opened: OpenedEdge):
    """A batch that the journal refuses leaves no text behind, in memory or on disk."""
    first, piece, *rest = story_of("refused", "model.delta", ["my", " key"], is_numbered=False)
    taken = make_fact("elsewhere", 1, "run.status", {"status": "running"})
    opened.post([first, taken])
    conflict = taken | {"payload": {"status": "idle"}}
    body = {"facts": [piece, conflict]}
    refused = opened._runner.run(opened.edge.http.post("/v1/facts", json=body))
    assert (refused.status_code, refused.json()["code"]) == (409, "conflicting_fact")
    opened.forget("refused")
    opened.post([piece])
    opened.forget("refused")
    opened.post(rest)
    assert joined_text(opened.stored("refused"), "model.delta") == "my key"


IMPOSSIBLE: dict[str, tuple[list[tuple[str, dict[str, Any]]], tuple[str, dict[str, Any]]]] = {
    "turn_terminal_repeated": ([("turn.completed", {})], ("turn.failed", {"failureCategory": "x"})),
    "tool_result_without_start": ([], ("tool.result", {"output": "x"})),
    "tool_started_already_active": (
        [("tool.started", {"toolName": "look"})],
        ("tool.started", {"toolName": "look"}),
    ),
    "tool_unclosed_at_turn_end": (
        [("tool.started", {"toolName": "look"})],
        ("turn.completed", {}),
    ),
    "approval_pending": (
        [
            ("tool.started", {"toolName": "look"}),
            ("action.required", {"actionId": "act", "actionType": "tool_approval", "prompt": "?"}),
        ],
        ("tool.result", {"output": "x"}),
    ),
    "approval_pending output": (
        [
            ("tool.started", {"toolName": "look"}),
            ("action.required", {"actionId": "act", "actionType": "tool_approval", "prompt": "?"}),
        ],
        ("tool.output.delta", {"delta": "x"}),
    ),
    "action_already_decided": (
        [
            ("action.required", {"actionId": "act", "actionType": "tool_approval", "prompt": "?"}),
            ("action.resolved", {"actionId": "act", "decision": "approved"}),
        ],
        ("action.resolved", {"actionId": "act", "decision": "denied"}),
    ),
    "execution_after_turn_terminal": (
        [("turn.completed", {})],
        ("tool.started", {"toolName": "look"}),
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
@pytest.mark.requirement("edge.rest.outside-lifecycle")
def test_what_cannot_have_happened_is_refused_whole(opened: OpenedEdge, name: str):
    before, wrong = IMPOSSIBLE[name]
    code = name.partition(" ")[0]
    rows: list[tuple[str, dict[str, Any]]] = [("turn.started", {}), *before]
    facts = [make_fact(name, number, *row) for number, row in enumerate(rows, 1)]
    fine = make_fact(name, 50, "run.status", {"status": "running"})
    batch = [fine, make_fact(name, 51, *wrong)]
    opened.post(facts)
    for _ in range(2):
        answer = opened._runner.run(opened.edge.http.post("/v1/facts", json={"facts": batch}))
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (422, "invalid_facts")
        assert {(issue["code"], issue["path"]) for issue in problem["issues"]} == {
            (code, "$.facts[1]")
        }
        opened.forget(name)
    assert len(opened.stored(name)) == len(facts)
    assert opened.post([fine])["accepted"] == 1


@pytest.mark.requirement("edge.rest.outside-bodies")
def test_a_batch_may_be_an_object_a_list_or_lines(opened: OpenedEdge):
    rows = [make_fact("forms", number, "run.status", {"status": "running"}) for number in (1, 2)]
    lines = "\n\r\n".join(map(json.dumps, rows))
    wrong = {**rows[0], "type": ""}
    bodies = [
        (json.dumps({"facts": rows}), "application/json", "$.facts[1].type"),
        (json.dumps(rows), "application/json", "$[1].type"),
        (lines, "application/x-ndjson", "line 3: $.type"),
    ]
    for content, media_type, place in bodies:
        answer = _send(opened, content, media_type)
        assert (answer["accepted"] + answer["repeated"], len(answer["seqs"])) == (2, 2)
        broken = content.replace(json.dumps(rows[1]), json.dumps(wrong))
        problem = _send(opened, broken, media_type)
        assert problem["code"] == "invalid_facts"
        assert [issue["path"] for issue in problem["issues"]] == [place]
    assert _send(opened, '{"type": "x"}\n{broken', "application/x-ndjson")["issues"][0]["path"] == (
        "line 2: $"
    )
    assert _send(opened, '"text"', "application/json")["code"] == "invalid_request"
    assert _send(opened, "\n", "application/x-ndjson")["code"] == "batch_size"
    assert len(opened.stored("forms")) == 2


def _send(opened: OpenedEdge, content: str, media_type: str) -> dict[str, Any]:
    headers = {"content-type": media_type}
    request = opened.edge.http.post("/v1/facts", content=content.encode(), headers=headers)
    return opened._runner.run(request).json()
