"""The rules that AG-UI's own client holds every event to, written down once more.

`broken(events)` is the first rule that a stream breaks. The vendor's own code says the same of the
same streams where real agents are tested; this is what holds everywhere else.
"""

from collections import defaultdict
from typing import Any

SPANS = {
    "TEXT_MESSAGE_START": ("message", "messageId"),
    "TOOL_CALL_START": ("call", "toolCallId"),
    "REASONING_START": ("span", "messageId"),
    "REASONING_MESSAGE_START": ("thought", "messageId"),
}
INSIDE = {
    "TEXT_MESSAGE_CONTENT": ("message", "messageId"),
    "TOOL_CALL_ARGS": ("call", "toolCallId"),
    "REASONING_MESSAGE_CONTENT": ("thought", "messageId"),
}
CLOSE = {
    "TEXT_MESSAGE_END": ("message", "messageId"),
    "TOOL_CALL_END": ("call", "toolCallId"),
    "REASONING_END": ("span", "messageId"),
    "REASONING_MESSAGE_END": ("thought", "messageId"),
}
RUN_LEVEL = ("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT")


class Verifier:
    def __init__(self) -> None:
        self.state = "before"
        self.reset()

    def reset(self) -> None:
        self.open: dict[str, dict[str, Any]] = defaultdict(dict)
        self.owners: dict[tuple[str, str], str | None] = {}
        self.steps: set[tuple[str | None, str]] = set()
        self.subagents: set[str] = set()
        self.used: set[str] = set()

    def check(self, event: dict[str, Any]) -> str | None:
        kind = event["type"]
        if any(value is None for value in event.values()):
            return "a null where nothing should stand"
        if kind in RUN_LEVEL and "subagentRunId" in event:
            return "an event of the run has a subagent"
        if kind == "RUN_STARTED":
            return self.start()
        if self.state == "before" and kind != "RUN_ERROR":
            return "the first event is no RUN_STARTED"
        if self.state in ("finished", "errored") and kind != "RUN_ERROR":
            return "an event after the end"
        return self.within(kind, event)

    def start(self) -> str | None:
        if self.state == "running":
            return "a run starts in another"
        self.state = "running"
        self.reset()
        return None

    def within(self, kind: str, event: dict[str, Any]) -> str | None:
        tag = event.get("subagentRunId")
        for table, rule in ((SPANS, self.begin), (INSIDE, self.go_on), (CLOSE, self.end)):
            if kind in table:
                what, field = table[kind]
                return rule(what, event[field], tag)
        rule = getattr(self, f"on_{kind.lower()}", None)
        return rule(event, tag) if rule is not None else None

    def begin(self, what: str, name: str, tag: str | None) -> str | None:
        if name in self.open[what]:
            return f"{what} {name} is open"
        if self.owners.setdefault((what, name), tag) != tag:
            return f"{what} {name} is somebody else's"
        self.open[what][name] = tag
        return None

    def go_on(self, what: str, name: str, tag: str | None) -> str | None:
        if name not in self.open[what]:
            return f"{what} {name} is not open"
        return None if tag in (None, self.open[what][name]) else f"{what} {name} is not theirs"

    def end(self, what: str, name: str, tag: str | None) -> str | None:
        problem = self.go_on(what, name, tag)
        self.open[what].pop(name, None)
        return problem

    def on_step_started(self, event: dict[str, Any], tag: str | None) -> str | None:
        if (tag, event["stepName"]) in self.steps:
            return "the step is open"
        self.steps.add((tag, event["stepName"]))
        return None

    def on_step_finished(self, event: dict[str, Any], tag: str | None) -> str | None:
        if (tag, event["stepName"]) not in self.steps:
            return "the step is not open"
        self.steps.discard((tag, event["stepName"]))
        return None

    def on_subagent_started(self, event: dict[str, Any], tag: str | None) -> str | None:
        if tag is None or tag in self.used:
            return f"subagent {tag} has begun before"
        if event.get("parentSubagentRunId", tag) not in {*self.used, tag}:
            return "the parent has not begun"
        self.used.add(tag)
        self.subagents.add(tag)
        return None

    def on_subagent_finished(self, event: dict[str, Any], tag: str | None) -> str | None:
        del event
        if tag not in self.subagents:
            return f"subagent {tag} does not work"
        self.subagents.discard(tag or "")
        return None

    on_subagent_error = on_subagent_finished

    def on_run_finished(self, event: dict[str, Any], tag: str | None) -> str | None:
        del tag
        interrupts = event.get("outcome", {}).get("interrupts", [True])
        if any(self.open.values()) or self.steps or self.subagents or not interrupts:
            return f"something is open at the end: {dict(self.open)} {self.steps} {self.subagents}"
        self.state = "finished"
        return None

    def on_run_error(self, event: dict[str, Any], tag: str | None) -> str | None:
        del event, tag
        self.state = "errored"
        return None


def broken_rule(events: list[dict[str, Any]]) -> str | None:
    verifier = Verifier()
    for at, event in enumerate(events):
        problem = verifier.check(event)
        if problem is not None:
            return f"{at} {event['type']}: {problem}"
    return None
