"""A team at work, as another runtime tells of it, and threads with very many nodes."""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import httpx
import pytest

from tests.workbench.seeding import fact, post

Said = tuple[str, dict[str, Any], dict[str, str]]
TellTeam = Callable[..., list[dict[str, Any]]]

PLANNER = {"subagentId": "sub_planner", "taskId": "tsk_parser"}
CODER = {"subagentId": "sub_coder", "taskId": "tsk_grammar", "parentTaskId": "tsk_parser"}
TESTER = {"workerId": "wrk_tests", "taskId": "tsk_tests"}
REMOTE = {"subagentId": "sub_remote", "channelId": "chn_1", "surface": "remote_teammate"}
HANDOFF = {"handoffId": "hnd_1", "taskId": "tsk_grammar"}
TOLD = {"fromAgent": "sub_planner", "toAgent": "sub_coder", "reason": "the plan is ready"}
REVIEW = {"reviewId": "rev_1", "taskId": "tsk_grammar", "evidenceId": "evd_1"}

OPENING: list[Said] = [
    ("turn.submitted", {"prompt": "Ship the parser as a team."}, {}),
    ("turn.started", {}, {}),
    ("team.changed", {"name": "parsers", "phase": "running", "topology": "coordinator_team"}, {}),
    ("task.started", {"title": "Ship the parser"}, {"taskId": "tsk_parser"}),
    ("tool.started", {"toolName": "delegate"}, {"toolCallId": "call_delegate"}),
    (
        "subagent.spawned",
        {"name": "planner", "role": "plans the work"},
        PLANNER | {"toolCallId": "call_delegate"},
    ),
    ("subagent.started", {"name": "planner"}, PLANNER),
    ("text.final", {"text": "First the grammar, then tests."}, PLANNER | {"messageId": "msg_p"}),
]
GRAMMAR: list[Said] = [
    (
        "task.created",
        {"title": "Write the grammar", "assignee": "sub_coder"},
        {"taskId": "tsk_grammar", "parentTaskId": "tsk_parser"},
    ),
    ("subagent.started", {"name": "coder", "parentSubagentId": "sub_planner"}, CODER),
    ("task.started", {}, {"taskId": "tsk_grammar"}),
    ("handoff.requested", TOLD, HANDOFF),
    ("handoff.accepted", TOLD, HANDOFF),
    (
        "tool.started",
        {"toolName": "shell", "args": {"command": "make grammar"}},
        CODER | {"toolCallId": "call_make"},
    ),
    (
        "action.required",
        {"actionType": "delegated_permission", "severity": "high", "prompt": "May I run make?"},
        CODER | {"toolCallId": "call_make", "actionId": "act_make"},
    ),
    ("review.requested", {"reviewer": "sub_planner"}, REVIEW),
    ("review.verdict", {"verdict": "approved", "summary": "Small and clear."}, REVIEW),
]
REST: list[Said] = [
    (
        "task.created",
        {"title": "Test the grammar", "dependsOn": ["tsk_grammar"]},
        {"taskId": "tsk_tests"},
    ),
    ("worker.started", {"name": "tester"}, TESTER),
    (
        "worker.notification",
        {
            "role": "user",
            "message": "48 tests pass.",
            "status": "completed",
            "resultRef": "output:tests",
        },
        TESTER,
    ),
    ("task.failed", {"title": "Publish", "failureCategory": "timeout"}, {"taskId": "tsk_publish"}),
    ("task.blocked", {"title": "שלום: announce it"}, {"taskId": "tsk_announce"}),
    ("channel.connected", {"name": "deployer"}, REMOTE),
    ("worker.started", {"name": "stray"}, {"workerId": "wrk_stray"}),
]
TEAM = [*OPENING, *GRAMMAR, *REST]
ANSWER: list[Said] = [("action.resolved", {"decision": "deny"}, CODER | {"actionId": "act_make"})]


@pytest.fixture
def tell_team(requests: httpx.Client) -> Generator[TellTeam]:
    """`tell_team("thr_1")`: five members, tasks in every column, and a request that waits.

    It is answered in the end: other tests look at the inbox of the same Edge.
    """
    threads: list[str] = []

    def tell(thread_id: str, messages: Iterable[Said] = TEAM) -> list[dict[str, Any]]:
        threads.append(thread_id)
        facts = facts_of(thread_id, messages)
        post(requests, facts)
        return facts

    yield tell
    for thread_id in threads:
        post(requests, facts_of(thread_id, ANSWER, begin=len(TEAM) + 2))


def facts_of(thread_id: str, messages: Iterable[Said], begin: int = 1) -> list[dict[str, Any]]:
    """Facts of a thread from a sequence on; the first opens it."""
    rows: list[Said] = [
        *([("thread.started", {"title": "Parsers"}, {})] if begin == 1 else []),
        *messages,
    ]
    return [
        fact(thread_id, sequence, event_class, payload, **ids)
        for sequence, (event_class, payload, ids) in enumerate(rows, begin)
    ]


def many_turns(thread_id: str, turns: int, calls: int) -> Iterator[dict[str, Any]]:
    """So many turns with so many calls each."""
    messages: list[Said] = []
    for number in range(turns):
        turn = {"turnId": f"{thread_id}-turn-{number}"}
        messages.append(("turn.started", {}, turn))
        for call in range(calls):
            ids = turn | {"toolCallId": f"{thread_id}-call-{number}-{call}"}
            messages.append(("tool.started", {"toolName": f"search {number}.{call}"}, ids))
            messages.append(("tool.result", {"output": "found"}, ids))
        messages.append(("turn.completed", {}, turn | {"status": "completed"}))
    yield from facts_of(thread_id, messages)
