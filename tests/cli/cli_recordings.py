"""Recorded runs to project and to play, as facts in shape A."""

from typing import Any

from factwire.facts import Fact, read_fact

Wire = dict[str, Any]

HOSTILE = "\x1b[2J\x1b]0;owned\x07 [bold]x[/] \u202egnp.exe\u200b"
"""Text that would clear the screen, name the window, use markup, read backwards and hide."""


class Recorder:
    """Writes facts of one thread, a second apart, with sequences from 1."""

    def __init__(self, thread: str | None, name: str = "") -> None:
        self.thread = thread
        self.facts: list[Wire] = []
        self._name = name or thread or "none"

    def __call__(self, event_class: str, status: str = "running", **fields: Any) -> Wire:
        number = len(self.facts) + 1
        fact = {
            "id": f"{self._name}-{number}",
            "kind": "state",
            "status": status,
            "title": fields.pop("title", event_class),
            "createdAt": f"2026-06-10T09:{number // 60:02}:{number % 60:02}.000Z",
            "schemaVersion": "factwire-fact/v1",
            "runtimeId": "r",
            "sessionId": "s",
            "sequence": number,
            "eventClass": event_class,
            "turnId": fields.pop("turnId", "turn_1"),
            "payload": fields.pop("payload", {}),
            **({} if self.thread is None else {"threadId": self.thread}),
            **fields,
        }
        self.facts.append(fact)
        return fact


def turn(thread: str | None = "t1", say: str = "Done.", title: str | None = None) -> list[Wire]:
    """A question, a streamed answer, a tool and its approval: 11 facts."""
    record = Recorder(thread)
    record("thread.started", payload={} if title is None else {"title": title})
    record("turn.submitted", payload={"prompt": "Fix the report, please."})
    record("turn.started")
    record("model.delta", messageId="m", payload={"delta": "Looking"})
    record("model.completed", "completed", messageId="m", payload={"text": say})
    record("tool.started", toolCallId="call", title="Run tests", payload={"toolName": "bash"})
    request = {"prompt": "Run the tests?", "severity": "high", "requestedBy": "planner"}
    command = {"command": ["pytest", "-q"], "cwd": "work", "actionType": "tool_approval"}
    record(
        "action.required", "blocked", actionId="act", toolCallId="call", payload=request | command
    )
    record("action.resolved", "completed", actionId="act", payload={"decision": "approved"})
    record("tool.result", "completed", toolCallId="call", payload={"summary": "12 passed"})
    record("artifact.created", artifactId="art", title="report.py", payload={"title": "report.py"})
    record("turn.completed", "completed")
    return record.facts


def teamwork() -> list[Wire]:
    """A thread, a child that names its parent, one that a subagent names, and a stranger."""
    main, child, named, other = (Recorder(name) for name in ("main", "child", "named", "other"))
    return [
        main("turn.submitted", payload={"prompt": "Write and review it."}),
        other("turn.submitted", payload={"prompt": "Something else."}),
        main("turn.started"),
        main("team.changed", payload={"teamName": "Crew", "topology": "coordinator_team"}),
        main(
            "subagent.spawned",
            taskId="k1",
            subagentId="writer",
            payload={"name": "Writer", "childThreadId": "named"},
        ),
        main("task.started", taskId="k1", payload={"title": "Write it"}),
        named("subagent.started", taskId="k1", subagentId="writer", turnId="turn_2"),
        other("turn.started"),
        child(
            "subagent.started",
            parentThreadId="main",
            taskId="k2",
            subagentId="reviewer",
            turnId="turn_3",
            payload={"name": "Reviewer", "role": "reviewer"},
        ),
        named(
            "model.completed",
            "completed",
            messageId="mw",
            subagentId="writer",
            turnId="turn_2",
            payload={"text": "Written."},
        ),
        main(
            "handoff.requested",
            handoffId="h1",
            payload={"fromAgent": "Writer", "toAgent": "Reviewer", "reason": "review"},
        ),
        child("subagent.completed", "completed", taskId="k2", subagentId="reviewer"),
        other("turn.completed", "completed"),
        main("turn.completed", "completed"),
    ]


def facts(values: list[Wire]) -> list[Fact]:
    return [read_fact(value, "facts") for value in values]
