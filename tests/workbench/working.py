"""A thread in which an agent works: turns with tools, approvals, failures, figures and a repair."""

from collections.abc import Iterator
from typing import Any

from tests.workbench.seeding import fact

Said = tuple[str, dict[str, Any], dict[str, str]]


def work_facts(thread_id: str, turns: int, title: str = "Worked") -> Iterator[dict[str, Any]]:
    """Facts of so many turns; each third turn fails, each second asks somebody first."""
    messages: list[Said] = [("thread.started", {"title": title}, {})]
    for number in range(1, turns + 1):
        messages += _turn(thread_id, number)
    for sequence, (event_class, payload, ids) in enumerate(messages, 1):
        yield fact(thread_id, sequence, event_class, payload, **ids)


def _turn(thread_id: str, number: int) -> list[Said]:
    turn = {"turnId": f"{thread_id}-turn-{number}"}
    message = {"messageId": f"{thread_id}-answer-{number}"}
    text = {**message, "partId": f"{thread_id}-part-{number}"}
    failed = number % 3 == 0
    end = {"failureCategory": "provider_error", "message": "the agent gave up"} if failed else {}
    messages: list[Said] = [
        ("turn.submitted", {"prompt": f"Question {number}"}, {}),
        ("turn.started", {}, {}),
        *_tool(thread_id, number, failed=failed),
        ("text.delta", {**text, "text": f"Answer {number} be"}, message),
        ("text.delta", {**text, "text": "gins"}, message),
        ("text.final", {**text, "text": f"Answer {number} begins and ends"}, message),
        ("cost.recorded", {"inputTokens": 100, "outputTokens": 20, "totalCostUsd": 0.01}, {}),
        ("turn.failed" if failed else "turn.completed", end, {}),
    ]
    return [(event_class, payload, turn | ids) for event_class, payload, ids in messages]


def _tool(thread_id: str, number: int, *, failed: bool) -> list[Said]:
    call = {"toolCallId": f"{thread_id}-call-{number}"}
    requests = {"actionId": f"{thread_id}-ask-{number}"}
    asking: list[Said] = [
        (
            "action.required",
            {"actionType": "tool_approval", "title": "May it?", "prompt": "rm -r build"},
            call | requests,
        ),
        ("action.resolved", {"decision": "allow"}, call | requests),
    ]
    ending: Said = (
        ("tool.failed", {"failureCategory": "timeout", "message": "it took too long"}, call)
        if failed
        else ("tool.result", {"output": f"done {number}"}, call)
    )
    return [
        ("tool.started", {"toolName": "shell", "args": {"command": f"make {number}"}}, call),
        *(asking if number % 2 == 0 else []),
        ending,
    ]
