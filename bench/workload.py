"""A realistic mix of facts: four fifths are text deltas, a fact has some 450 bytes.

Turns of one thread, each with reasoning, tools with arguments and output, an approval now and then,
an artifact and its evidence. Seeded, so that every run and every contender sees the same bytes.
"""

import random
from typing import Any

import msgspec

_WORDS = [
    "the",
    "agent",
    "looks",
    "at",
    "every",
    "file",
    "in",
    "turn",
    "and",
    "then",
    "decides",
    "which",
    "test",
    "has",
    "to",
    "change",
    "before",
    "it",
    "writes",
    "a",
    "patch",
    "that",
    "keeps",
    "the",
    "old",
    "behaviour",
    "while",
    "the",
    "new",
    "one",
    "is",
    "tried",
    "out",
    "on",
    "a",
    "small",
    "part",
    "of",
    "the",
    "data",
    "so",
    "nobody",
    "waits",
    "for",
    "long",
    "and",
    "the",
    "answer",
    "says",
    "what",
    "was",
    "done",
    "and",
    "what",
    "is",
    "left",
]

Event = dict[str, Any]


def facts(count: int, *, seed: int = 7) -> list[bytes]:
    """`count` encoded facts in shape A, in order, valid and free of secrets."""
    return [msgspec.json.encode(event) for event in events(count, seed=seed)]


def events(count: int, *, seed: int = 7) -> list[Event]:
    """`count` facts as objects."""
    writer = _Writer(random.Random(seed))
    while len(writer.events) < count:
        writer.turn()
    return writer.events[:count]


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.events: list[Event] = []
        self._rng = rng
        self._turn = 0
        self._ids: dict[str, str] = {}

    def turn(self) -> None:
        self._turn += 1
        self._ids = {"turnId": self._id("trn")}
        self._add("turn.submitted", "state", "pending", {"prompt": self._words(12)})
        self._add("turn.started", "state", "running", {})
        self._add("run.status", "state", "running", {"status": "running", "phase": "reasoning"})
        self._add("model.requested", "model", "running", {"model": "example-large"})
        for _ in range(3):
            self._message(30)
            self._tool()
        self._approval()
        self._message(40)
        artifact = self._id("artifact")
        self._add(
            "artifact.changed", "draft", "completed", {"kind": "document"}, artifactId=artifact
        )
        self._add("cost.recorded", "state", "pending", {"inputTokens": 1200, "outputTokens": 340})
        self._add("turn.completed", "state", "completed", {})
        self._add("snapshot.updated", "state", "pending", {"status": "completed"})

    def _message(self, deltas: int) -> None:
        message = self._id("msg")
        text: list[str] = []
        for _ in range(deltas):
            text.append(" " + self._words(self._rng.randint(1, 6)))
            self._add("model.delta", "model", "running", {"messageId": message, "delta": text[-1]})
        whole = {"messageId": message, "text": "".join(text)[:800]}
        self._add("model.completed", "model", "completed", whole)

    def _tool(self) -> None:
        call = {"toolCallId": self._id("call")}
        args = {"path": "src/report.py", "pattern": self._words(3), "limit": 50}
        self._add("tool.started", "tool", "running", {"toolName": "search"}, **call)
        self._add("tool.args", "tool", "running", {"args": args}, **call)
        self._add("permission.evaluated", "permission", "completed", {"decision": "allow"})
        self._add(
            "tool.progress", "tool", "running", {"message": "searching", "progress": 1}, **call
        )
        for _ in range(3):
            self._add("tool.output.delta", "tool", "running", {"delta": self._words(12)}, **call)
        result = {"summary": self._words(20), "exitCode": 0}
        self._add("tool.result", "tool", "completed", result, **call)

    def _approval(self) -> None:
        action = {"actionId": self._id("action")}
        request = {"actionType": "tool_approval", "severity": "medium", "prompt": self._words(10)}
        self._add("action.required", "action", "blocked", request, **action)
        self._add("action.resolved", "action", "completed", {"decision": "approved"}, **action)

    def _add(
        self, event_class: str, kind: str, status: str, payload: dict[str, Any], **ids: str
    ) -> None:
        sequence = len(self.events) + 1
        self.events.append(
            {
                "id": self._id("evt"),
                "kind": kind,
                "status": status,
                "title": event_class,
                "createdAt": "2026-06-10T00:00:00.000Z",
                "schemaVersion": "factwire-fact/v1",
                "runtimeId": "edge-01",
                "sequence": sequence,
                "eventClass": event_class,
                "sessionId": "ses_01K3ZT9Q4M6YB8N2D5F7H9J1KL",
                "threadId": "thr_01K3ZT9Q4M6YB8N2D5F7H9J1KL",
                **self._ids,
                **ids,
                "payload": payload,
            }
        )

    def _id(self, prefix: str) -> str:
        alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
        return f"{prefix}_01K3" + "".join(self._rng.choices(alphabet, k=22))

    def _words(self, count: int) -> str:
        return " ".join(self._rng.choices(_WORDS, k=count))
