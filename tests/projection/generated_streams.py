"""Streams to project: whole ones as runtimes tell them, and every way in which they go wrong.

A whole stream is several turns whose activities (answers, tools, approvals, subagents, tasks …) run
beside each other, with sequences that have no gap. All of it follows from a seed.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from factwire.facts import KNOWN_CLASSES, Fact, InvalidFacts, decode_fact, kind_of, status_of
from factwire.facts.fact import CORRELATION_IDS

THREAD = "thread/main~1"

Step = tuple[str, dict[str, Any]]
Activity = Iterator[Step]

_WORDS = ("so ", "the", " ", "\n", "é", "answer", "  two", "", "🙂", '"', "\\", "a/b~c")
_TASTES = ("{}-{}", "{}/{}", "{}~{}", "{} {} é", "{}\u202e{}", '{}"{}', "{}:{}")


class StreamBuilder:
    """One thread, told fact by fact; ids are plain or as hostile as ids may be."""

    def __init__(
        self, seed: int, *, first: int = 1, children: bool = True, hostile: bool = False
    ) -> None:
        self.random = random.Random(seed)
        self.children = children
        self.hostile = hostile
        self.facts: list[Fact] = []
        self._sequences: Counter[str] = Counter({THREAD: first})
        self._ids: Counter[str] = Counter()

    def build(self, turns: int, busy: int = 6) -> list[Fact]:
        """Some turns, with up to `busy` activities in each."""
        self._add_fact("session.created", {"payload": {"title": "A session"}})
        for _ in range(turns):
            self._turn(busy)
        return self.facts

    def name(self, kind: str) -> str:
        """An id that nothing else has."""
        self._ids[kind] += 1
        taste = self.random.choice(_TASTES) if self.hostile else "{}-{}"
        return taste.format(kind, self._ids[kind])

    def chance(self, probability: float = 0.5) -> bool:
        return self.random.random() < probability

    def text(self) -> str:
        return "".join(self.random.choices(_WORDS, k=self.random.randint(1, 4)))

    def pieces(self, least: int = 1, most: int = 6) -> list[str]:
        return [self.text() for _ in range(self.random.randint(least, most))]

    def _add_fact(self, event_class: str, fields: dict[str, Any]) -> None:
        number = len(self.facts) + 1
        thread = fields.get("threadId", THREAD)
        sequence = self._sequences.setdefault(thread, 1)
        self._sequences[thread] = sequence + 1
        wire = {
            "id": f"fact-{number}",
            "kind": kind_of(event_class),
            "status": status_of(event_class),
            "title": event_class,
            "createdAt": f"2026-06-10T00:00:00.{number:06}Z",
            "schemaVersion": "factwire-event/v0.1",
            "runtimeId": "runtime",
            "sessionId": "session",
            "threadId": thread,
            "eventClass": event_class,
            "sequence": sequence,
            **fields,
        }
        self.facts.append(msgspec.convert(wire, Fact))

    def _turn(self, busy: int) -> None:
        turn = self.name("turn")
        makers = [make for make in ACTIVITIES if self.children or make is not child_thread]
        chosen = [answer, *self.random.choices(makers, k=self.random.randint(1, busy))]
        request: dict[str, Any] = {"prompt": self.text() or "?"}
        if self.chance(0.2):
            request = {"input": [{"type": "text", "text": "look"}, {"type": "asset", "ref": "b:1"}]}
        self._add_fact("turn.submitted", {"turnId": turn, "payload": request})
        if self.chance(0.8):
            self._add_fact("turn.started", {"turnId": turn, "payload": {}})
        self._add_fact(
            "run.status", {"turnId": turn, "runId": turn, "payload": {"status": "running"}}
        )
        for event_class, fields in self._interleave([make(self, turn) for make in chosen]):
            self._add_fact(event_class, fields)
        self._add_fact(*self._end(turn))
        if self.chance(0.3):
            self._add_fact("snapshot.updated", {"turnId": turn, "payload": {"status": "ok"}})

    def _end(self, turn: str) -> Step:
        failure = {"failureCategory": "provider", "recoveryHint": "retry"}
        name = self.random.choice(["turn.completed"] * 6 + ["turn.failed", "turn.canceled"])
        return name, {"turnId": turn, "payload": failure if name == "turn.failed" else {}}

    def _interleave(self, activities: list[Activity]) -> Iterator[Step]:
        """Activities side by side; each keeps its own order."""
        while activities:
            chosen = self.random.choice(activities)
            for _ in range(self.random.randint(1, 4)):
                step = next(chosen, None)
                if step is None:
                    activities.remove(chosen)
                    break
                yield step


def answer(story: StreamBuilder, turn: str) -> Activity:
    """One message in parts; each is streamed and then completed, or cut off."""
    message = story.name("message")
    yield "model.requested", {"turnId": turn, "payload": {"model": "model-1"}}
    for _ in range(story.random.randint(1, 3)):
        ids = {"turnId": turn, "messageId": message, "partId": story.name("part")}
        pieces = story.pieces()
        for piece in pieces:
            yield "model.delta", {**ids, "payload": {"delta": piece}}
        if story.chance(0.9):
            yield "model.completed", {**ids, "payload": {"text": "".join(pieces)}}


def nameless_answer(story: StreamBuilder, turn: str) -> Activity:
    """Text that names neither message nor part."""
    pieces = story.pieces()
    for piece in pieces:
        yield "model.delta", {"turnId": turn, "payload": {"delta": piece}}
    yield "model.completed", {"turnId": turn, "payload": {"text": "".join(pieces)}}


def reason_facts(story: StreamBuilder, turn: str) -> Activity:
    """Reasoning, with a summary of it."""
    ids = {"turnId": turn, "messageId": story.name("message"), "partId": story.name("part")}
    yield "reasoning.started", {**ids}
    pieces = story.pieces()
    for piece in pieces:
        yield "reasoning.delta", {**ids, "payload": {"delta": piece}}
    yield "reasoning.summary", {**ids, "payload": {"summary": story.text()}}
    whole = {"text": "".join(pieces)} if story.chance() else {}
    yield "reasoning.completed", {**ids, "payload": whole}


def plan(story: StreamBuilder, turn: str) -> Activity:
    """A plan, and perhaps a person's word on it."""
    pieces = story.pieces()
    for piece in pieces:
        yield "plan.delta", {"turnId": turn, "payload": {"delta": piece}}
    steps = [{"title": "one"}, {"title": "two"}]
    yield "plan.final", {"turnId": turn, "payload": {"text": "".join(pieces), "steps": steps}}
    if story.chance():
        ids = {"turnId": turn, "actionId": story.name("action")}
        yield "action.required", {**ids, "payload": {"actionType": "plan_decision"}}
        yield "action.resolved", {**ids, "payload": {"decision": "approve"}}


def tool(story: StreamBuilder, turn: str) -> Activity:
    """A call from its first piece of input to its end."""
    ids: dict[str, Any] = {"turnId": turn, "toolCallId": story.name("call")}
    yield "tool.started", {**ids, "payload": {"toolName": "shell"}}
    if story.chance():
        pieces = story.pieces()
        for piece in pieces:
            yield "tool.args.delta", {**ids, "payload": {"delta": piece}}
        whole = "".join(pieces) if story.chance() else {"command": ["ls", "-l"]}
        yield "tool.args", {**ids, "payload": {"args": whole}}
    if story.chance(0.3):
        yield from _request_approval(story, ids)
    output = story.pieces(0)
    for index, piece in enumerate(output):
        yield "tool.output.delta", {**ids, "payload": {"delta": piece}}
        if story.chance(0.2):
            yield "tool.progress", {**ids, "payload": {"progress": index, "total": 6}}
    yield from _tool_end(story, ids, "".join(output))


def _request_approval(story: StreamBuilder, ids: dict[str, Any]) -> Activity:
    request = {"actionType": "tool_approval", "severity": "high", "prompt": "may I?"}
    named = {**ids, "actionId": story.name("action")}
    yield "permission.evaluated", {**ids, "payload": {"mode": "ask", "decision": "ask"}}
    yield "action.required", {**named, "payload": request}
    if story.chance(0.3):
        yield "action.updated", {**named, "payload": {"severity": "low"}}
    closer = story.random.choice(["action.resolved"] * 3 + ["action.expired", "action.cancelled"])
    yield closer, {**named, "payload": {"decision": "approve", "decidedBy": "user"}}


def _tool_end(story: StreamBuilder, ids: dict[str, Any], output: str) -> Activity:
    if story.chance(0.2):
        failure = {"failureCategory": "timeout", "message": "too slow"}
        yield "tool.failed", {**ids, "payload": failure}
    elif story.chance(0.3):
        made = {"artifactId": story.name("artifact")}
        yield "tool.result", {**ids, **made, "payload": {"summary": "made it"}}
        yield "artifact.created", {**ids, **made, "payload": {"kind": "report", "versionId": "v1"}}
    elif story.chance(0.9):
        name = story.random.choice(["output", "text"])
        yield "tool.result", {**ids, "refIds": ["blob:1"], "payload": {name: output}}


def subagent(story: StreamBuilder, turn: str) -> Activity:
    """A teammate on the same thread."""
    ids = {"turnId": turn, "subagentId": story.name("subagent"), "taskId": story.name("task")}
    yield "task.created", {"turnId": turn, "taskId": ids["taskId"], "payload": {"title": "work"}}
    yield "subagent.spawned", {**ids, "toolCallId": story.name("call"), "payload": {"role": "r"}}
    yield "subagent.started", {**ids}
    for piece in story.pieces():
        yield "model.delta", {**ids, "payload": {"delta": piece}}
    if story.chance(0.3):
        named = {**ids, "actionId": story.name("action")}
        request = {"actionType": "delegated_permission", "severity": "high"}
        yield "action.required", {**named, "payload": request}
        yield "action.resolved", {**named, "payload": {"decision": "deny"}}
    yield "subagent.progress", {**ids, "payload": {"message": "half"}}
    yield "worker.notification", {**ids, "payload": {"resultRef": "blob:2", "message": "done"}}
    ended = story.random.choice(["subagent.completed", "subagent.failed", "subagent.closed"])
    yield ended, {**ids, "payload": {"summary": story.text()}}


def child_thread(story: StreamBuilder, turn: str) -> Activity:
    """A teammate on a thread of its own, which counts for itself."""
    thread, task, inner = story.name("child"), story.name("task"), story.name("turn")
    ids = {"threadId": thread, "parentThreadId": THREAD, "turnId": inner}
    named = {"subagentId": story.name("subagent"), "taskId": task}
    yield "subagent.spawned", {**named, "turnId": turn, "payload": {"childThreadId": thread}}
    yield "turn.started", {**ids, **named}
    for piece in story.pieces():
        yield "model.delta", {**ids, **named, "payload": {"delta": piece}}
    call = {**ids, **named, "toolCallId": story.name("call")}
    yield "tool.started", {**call, "payload": {"toolName": "read"}}
    yield "tool.result", {**call, "payload": {"summary": "read it"}}
    yield "turn.completed", {**ids, **named}
    yield "subagent.completed", {**named, "turnId": turn, "payload": {"summary": "done"}}


def task(story: StreamBuilder, turn: str) -> Activity:
    """Work in attempts."""
    ids = {"turnId": turn, "taskId": story.name("task")}
    yield "task.created", {**ids, "payload": {"title": "Task", "objective": "do it"}}
    other = {"dependsOnTaskId": story.name("task"), "dependencyStatus": "running"}
    yield "task.dependency.updated", {**ids, "payload": other}
    yield "task.started", {**ids, "payload": {"assignee": "somebody"}}
    for number in range(story.random.randint(1, 3)):
        attempt = {**ids, "attemptId": story.name("attempt"), "runId": story.name("run")}
        yield "task.attempt.started", {**attempt, "payload": {"attempt": number + 1}}
        progress = {"completedSteps": number, "totalSteps": 3}
        yield "task.progress", {**ids, "payload": {"progress": progress}}
        if story.chance():
            yield "task.attempt.completed", {**attempt}
            break
        yield "task.attempt.failed", {**attempt, "payload": {"failureCategory": "flaky"}}
        yield "task.retrying", {**ids}
    yield story.random.choice(["task.completed", "task.failed", "task.cancelled"]), {**ids}


def job(story: StreamBuilder, turn: str) -> Activity:
    """Many items, counted."""
    ids = {"turnId": turn, "jobId": story.name("job")}
    yield "job.created", {**ids, "payload": {"title": "Job", "totalItems": 3}}
    yield "job.started", {**ids}
    for _ in range(3):
        item = {**ids, "jobItemId": story.name("item")}
        yield "job.item.started", {**item}
        yield story.random.choice(["job.item.completed", "job.item.failed"]), {**item}
    yield "job.completed", {**ids}


def artifact(story: StreamBuilder, turn: str) -> Activity:
    """A thing with versions, a preview and an export."""
    ids = {"turnId": turn, "artifactId": story.name("artifact")}
    yield "artifact.created", {**ids, "payload": {"kind": "document", "title": "Doc"}}
    for number in range(story.random.randint(1, 3)):
        version = {"versionId": f"v{number}", "contentRef": f"blob:{number}"}
        yield "artifact.versioned", {**ids, "payload": version}
    yield "artifact.preview.ready", {**ids, "payload": {"previewRef": "blob:p"}}
    yield "artifact.diff.ready", {**ids, "payload": {"diffRef": "blob:d"}}
    yield "artifact.export.started", {**ids}
    if story.chance(0.2):
        yield "artifact.failed", {**ids, "payload": {"failureCategory": "export"}}
    else:
        yield "artifact.export.completed", {**ids, "payload": {"exportRef": "blob:e"}}
    if story.chance(0.2):
        yield "artifact.deleted", {**ids}


def evidence(story: StreamBuilder, turn: str) -> Activity:
    """A citation, and a review of it."""
    ids = {"turnId": turn, "evidenceId": story.name("evidence")}
    yield "evidence.changed", {**ids, "payload": {"kind": "trace", "title": "Trace"}}
    review = {**ids, "reviewId": story.name("review")}
    yield "review.requested", {**review, "payload": {"reviewer": "somebody"}}
    yield "review.completed", {**review, "payload": {"verdict": "pass"}}
    yield "evidence.exported", {**ids, "payload": {"exportRef": "blob:x"}}


def team(story: StreamBuilder, turn: str) -> Activity:
    """A team, a handoff and a remote member."""
    changed = {"teamName": "Team", "activeAgent": "a", "policy": {"parallel": 2}}
    yield "team.changed", {"turnId": turn, "payload": changed}
    ids = {"turnId": turn, "handoffId": story.name("handoff")}
    yield "handoff.requested", {**ids, "payload": {"fromAgent": "a", "toAgent": "b"}}
    yield "handoff.accepted", {**ids}
    channel = {"turnId": turn, "channelId": story.name("channel")}
    yield "channel.connected", {**channel}
    yield "channel.message", {**channel, "payload": {"message": story.text()}}
    yield "channel.disconnected", {**channel}
    yield "handoff.completed", {**ids}


def context(story: StreamBuilder, turn: str) -> Activity:
    """What the model is given, and a boundary."""
    ids = {"turnId": turn}
    yield "context.resolved", {**ids, "payload": {"kind": "files", "usagePercent": 12.5}}
    yield "context.compaction.started", {**ids, "payload": {"trigger": "auto"}}
    done = {"summary": story.text(), "tokensBefore": 100, "tokensAfter": 10}
    yield "context.compaction.completed", {**ids, "payload": done}


def policies(story: StreamBuilder, turn: str) -> Activity:
    """What is allowed, and what was stopped."""
    ids = {"turnId": turn}
    yield "policy.changed", {**ids, "payload": {"mode": story.random.choice(["ask", "auto"])}}
    yield "sandbox.applied", {**ids, "payload": {"network": False}}
    yield "sandbox.blocked", {**ids, "payload": {"reasonCode": "network_denied"}}
    yield "permission.denied", {**ids, "payload": {"reasonCode": "policy"}}
    yield "runtime.warning", {**ids, "payload": {"code": "slow", "message": story.text()}}


def figures(story: StreamBuilder, turn: str) -> Activity:
    """Routing, cost and limits."""
    ids = {"turnId": turn}
    yield "routing.decided", {**ids, "payload": {"model": "model-2", "reason": "cheap"}}
    cost = {"inputTokens": 10, "outputTokens": 5, "totalCostUsd": 0.25}
    yield "cost.recorded", {**ids, "payload": cost}
    yield "limit.changed", {**ids, "payload": {"name": "daily", "remaining": 5.5}}
    yield "rate_limit.hit", {**ids, "payload": {"retryAfterMs": 10}}
    yield "metrics.changed", {**ids, "payload": {"latency": story.random.randint(1, 9)}}


def coding_facts(story: StreamBuilder, turn: str) -> Activity:
    """Files, a patch, a command and tests."""
    ids = {"turnId": turn, "toolCallId": story.name("call")}
    yield "tool.started", {**ids, "payload": {"toolName": "edit"}}
    yield "file.read", {**ids, "payload": {"path": "src/a.py"}}
    changed = {"path": "src/a.py", "change": "modified", "addedLines": 2, "removedLines": 1}
    yield "file.changed", {**ids, "artifactId": story.name("file"), "payload": changed}
    patch, run = {"patchId": story.name("patch")}, {"testRunId": story.name("tests")}
    yield "patch.started", {**ids, "payload": patch}
    yield "patch.applied", {**ids, "payload": patch}
    command = {"commandId": story.name("command"), "command": "make"}
    yield "command.started", {**ids, "payload": command}
    for piece in story.pieces():
        yield "command.output", {**ids, "refIds": ["blob:o"], "payload": {**command, "text": piece}}
    yield "command.exited", {**ids, "payload": {**command, "exitCode": 0}}
    yield "test.started", {**ids, "payload": run}
    yield "test.completed", {**ids, "payload": {**run, "result": "passed", "passed": 3}}
    yield "tool.result", {**ids, "payload": {"summary": "edited"}}


def programs(story: StreamBuilder, turn: str) -> Activity:
    """A process and a hook."""
    ids = {"turnId": turn, "processId": story.name("process")}
    yield "process.started", {**ids, "payload": {"command": ["serve"], "cwd": "/work"}}
    for piece in story.pieces():
        yield "process.output", {**ids, "payload": {"text": piece}}
    yield "process.completed", {**ids, "payload": {"exitCode": 0}}
    hook = {"hookId": story.name("hook"), "hookName": "check"}
    yield "hook.started", {"turnId": turn, "payload": hook}
    yield "hook.completed", {"turnId": turn, "payload": {**hook, "outcome": "ok"}}


def queue_turn(story: StreamBuilder, turn: str) -> Activity:
    """A turn that waits, and text for the running one."""
    ids = {"turnId": turn, "queuedTurnId": story.name("queued")}
    yield "queue.changed", {**ids, "payload": {"prompt": story.text()}}
    yield "queue.changed", {"turnId": turn, "control": "steer", "payload": {"text": "left"}}
    yield "queue.changed", {**ids, "payload": {"change": "removed"}}


def shared_state(story: StreamBuilder, turn: str) -> Activity:
    """The application's own state, whole and by patches."""
    ids = {"turnId": turn}
    whole = {"shared": {"list": [1, 2], "a/b": {"~": None}}}
    yield "state.snapshot", {**ids, "payload": whole}
    add = {"op": "add", "path": "/shared/list/-", "value": story.random.randint(0, 9)}
    yield "state.delta", {**ids, "payload": {"patch": [add]}}
    move = {"op": "move", "from": "/shared/a~1b/~0", "path": "/shared/list/0"}
    copy = {"op": "copy", "from": "/shared/list", "path": "/shared/copy"}
    yield "state.delta", {**ids, "payload": {"operations": [move, copy]}}


def repaired_messages(story: StreamBuilder, turn: str) -> Activity:
    """A snapshot of messages in the middle of a turn."""
    rows = [{"messageId": story.name("message"), "role": "assistant", "text": story.text()}]
    yield "messages.snapshot", {"turnId": turn, "payload": {"messages": rows}}


ACTIVITIES: tuple[Callable[[StreamBuilder, str], Activity], ...] = (
    answer,
    nameless_answer,
    reason_facts,
    plan,
    tool,
    tool,
    subagent,
    child_thread,
    task,
    job,
    artifact,
    evidence,
    team,
    context,
    policies,
    figures,
    coding_facts,
    programs,
    queue_turn,
    shared_state,
    repaired_messages,
)


def build_stream(
    seed: int, turns: int = 4, *, first: int = 1, children: bool = True, hostile: bool = False
) -> list[Fact]:
    """A whole stream of one thread, and of its children unless they are left out."""
    return StreamBuilder(seed, first=first, children=children, hostile=hostile).build(turns)


def duplicate_facts(source: random.Random, facts: Sequence[Fact], share: float = 0.2) -> list[Fact]:
    """The same stream, with facts that come again, at once or later."""
    found: list[Fact] = []
    for index, fact in enumerate(facts):
        found.append(fact)
        if source.random() < share:
            again = facts[source.randint(max(0, index - 300), index)]
            found.append(
                decode_fact(msgspec.json.encode(again)) if source.random() < 0.5 else again
            )
    return found


def other_body(fact: Fact) -> Fact:
    """A fact with the same id that says something else."""
    return msgspec.structs.replace(fact, title=f"{fact.title} changed")


def shuffle_facts(source: random.Random, facts: Sequence[Fact], window: int) -> list[Fact]:
    """The same facts; none is further than `window` from its place."""
    found: list[Fact] = []
    for start in range(0, len(facts), window):
        block = list(facts[start : start + window])
        source.shuffle(block)
        found += block
    return found


def chunks(source: random.Random, facts: Sequence[Fact]) -> Iterator[Sequence[Fact]]:
    """The same facts in pieces of any size."""
    at = 0
    while at < len(facts):
        size = source.choice([1, 1, 2, 7, 50])
        yield facts[at : at + size]
        at += size


class RandomFacts:
    """Facts that a decoder lets through and no runtime means: any class, few and ugly ids that
    collide, and payloads whose fields have any type.
    """

    ids = (*"abc", "", "/", "~", "~1", "a/b", "a:text", "a:reasoning", "tool:a", "evidence:a")
    ids = (*ids, "artifact:a", "diagnostic:a", "é", "\u202e", "a:text:1", "thread:answer", "a:plan")
    numbers = (0, 1, -1, 2**53, 2**63, 2**64 - 1, -(2**63), 1.5, -0.0, 1e300, 1.7e308)
    numbers = (*numbers, 10**30, 10**400)
    classes = (*sorted(KNOWN_CLASSES), "custom.thing", "x", None)
    fields = """delta text summary title name role status prompt message reason command path args
        output outputRef progress total exitCode durationMs failureCategory recoveryHint toolName
        actionType severity requestedBy decision decidedBy applied options responseSchema versionId
        kind contentRef previewRef diffRef exportRef verdict reviewer dependsOn attempt
        dependsOnTaskId dependencyStatus queuedTurns queuedTurnCount change mode control input
        supersedes retractedMessageIds messages toSequence lastSequence patch operations shared
        state model provider inputTokens outputTokens totalTokens totalCostUsd limit used remaining
        usagePercent tokensAfter tokensBefore tools trialId reward configuration hookId signal
        offset truncated patchId commandId testRunId result passed failed skipped paths addedLines
        fromAgent toAgent teamName policy resultRef transcriptRef parentSubagentId childThreadId
        planId steps optimisticId artifactRefs evidenceRefs reasonCode code rawRef totalItems
        candidates resetsAt encryptedRef phase queuedTurnCount parallelLimit""".split()  # noqa: SIM905

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._sequence = self.random.choice([-2, 0, 1, 7])

    def facts(self, count: int) -> list[Fact]:
        found: list[Fact] = []
        while len(found) < count:
            try:
                found.append(decode_fact(msgspec.json.encode(self._wire(len(found)))))
            except InvalidFacts:
                continue
        return found

    def _wire(self, number: int) -> dict[str, Any]:
        pick = self.random
        wire: dict[str, Any] = {
            "id": f"fact-{number}" if pick.random() < 0.95 else pick.choice("abc"),
            "kind": "state",
            "status": pick.choice(["pending", "running", "completed", "failed", "canceled", "odd"]),
            "title": pick.choice(["A fact", ""]),
            "createdAt": f"2026-06-10T00:00:00.{number:06}Z",
            "schemaVersion": "v",
            "runtimeId": "r",
            "sequence": self._place(),
        }
        name = pick.choice(self.classes)
        if name is not None:
            wire["eventClass"] = name
        for key in pick.sample(CORRELATION_IDS, pick.randint(0, 9)):
            wire[key] = pick.choice(self.ids)
        for key in ("messageId", "partId", "toolCallId", "artifactId", "evidenceId", "taskId"):
            if pick.random() < 0.5:
                wire[key] = pick.choice(self.ids[:1] if pick.random() < 0.5 else self.ids)
        if pick.random() < 0.7:
            wire["turnId"] = pick.choice("ab")
        wire["threadId"] = pick.choice(["main"] * 8 + ["", "a"])
        for key in ("refIds", "artifactRefs", "evidenceRefs"):
            if pick.random() < 0.2:
                wire[key] = pick.choices(self.ids, k=2)
        wire["payload"] = self._payload()
        return wire

    def _place(self) -> int:
        pick = self.random.random()
        if pick < 0.9:
            self._sequence += 1
        elif pick < 0.95:
            return self._sequence + self.random.randint(-5, 5)
        return self._sequence

    def _payload(self) -> dict[str, Any]:
        keys = [*self.random.sample(self.fields, self.random.randint(0, 8))]
        if self.random.random() < 0.5:
            keys += self.random.sample(CORRELATION_IDS, 3)
        return {key: self._value(key) for key in keys}

    def _value(self, key: str) -> Any:
        pick = self.random
        if key in ("patch", "operations") and pick.random() < 0.8:
            return [self._operation() for _ in range(pick.randint(0, 4))]
        if key in ("messages", "queuedTurns", "input") and pick.random() < 0.8:
            return [self._row() for _ in range(pick.randint(0, 3))]
        return self._any(2)

    def _any(self, depth: int) -> Any:
        pick = self.random
        kind = pick.randint(0, 7 if depth else 5)
        if kind <= 2:
            return pick.choice(self.ids)
        if kind == 3:
            return pick.choice(self.numbers)
        if kind == 4:
            return pick.choice([None, True, False])
        if kind == 5:
            return pick.choice(["input", "deny", "steer", "promoted", "removed", "some text"])
        if kind == 6:
            return [self._any(depth - 1) for _ in range(pick.randint(0, 3))]
        return {pick.choice(self.ids): self._any(depth - 1) for _ in range(pick.randint(0, 3))}

    def _operation(self) -> Any:
        pick = self.random
        if pick.random() < 0.05:
            return self._any(1)
        ops = ["add"] * 6 + ["replace", "remove", "test", "move", "copy", "append", 5]
        operation: dict[str, Any] = {"op": pick.choice(ops), "path": self._pointer()}
        if pick.random() < 0.9:
            operation["value"] = self._any(2)
        if pick.random() < 0.5:
            operation["from"] = self._pointer()
        return operation

    def _pointer(self) -> Any:
        tails = ["", "/a", "/b", "/a/b", "/a/-", "/a/0", "/a/1", "/~0", "/~1", "/~2", "/", "/-"]
        roots = ["/shared"] * 9 + ["/messages", "shared", ""]
        return self.random.choice(roots) + self.random.choice(tails)

    def _row(self) -> Any:
        pick = self.random
        if pick.random() < 0.1:
            return self._any(1)
        row: dict[str, Any] = {"messageId": pick.choice(self.ids), "text": self._any(1)}
        if pick.random() < 0.5:
            parts = [{"type": "text", "text": self._any(0)} for _ in range(pick.randint(0, 3))]
            row |= {"parts": parts, "role": pick.choice(["user", "assistant", 5])}
        if pick.random() < 0.5:
            row["turnId"] = pick.choice("ab")
        return row


def build_random_facts(seed: int, count: int = 200) -> list[Fact]:
    """Facts without any sense, in an order that mostly has no gap."""
    return RandomFacts(seed).facts(count)


def spoil_facts(source: random.Random, facts: Iterable[Fact]) -> list[Fact]:
    """A whole stream in which some facts lost an id or got payload values of wrong types."""
    found: list[Fact] = []
    junk = RandomFacts(source.randint(0, 2**32))
    for fact in facts:
        changes: dict[str, Any] = {}
        if source.random() < 0.1:
            keys = [*fact.payload, *source.sample(RandomFacts.fields, 2)]
            changes["payload"] = {key: junk._value(key) for key in keys}
        if source.random() < 0.1:
            lost = source.choice(["turn_id", "tool_call_id", "action_id", "message_id", "task_id"])
            changes[lost] = None
        if source.random() < 0.02:
            changes["event_class"] = source.choice([None, "made.up"])
        found.append(msgspec.structs.replace(fact, **changes) if changes else fact)
    return found
