"""The scenes of the demo agent: what it says is scripted, what it does is done.

A `DemoStage` emits the facts of one turn like any agent; each scene can be played again after a
restart without doing anything twice.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from factwire.facts import Fact, redact_text
from factwire.projection.actions import Action
from factwire.runtime.action_cards import shown_hash
from factwire.runtime.mint import FactScope
from factwire.runtime.policy import (
    PolicyRequest,
    build_denial_fact,
    build_evaluation_fact,
    evaluate_asking,
    with_remedy,
)
from factwire.runtime.provider import DecisionRequest, StartTurn
from factwire.runtime.toolbox import Toolbox, ToolOutcome
from factwire.runtime.toolbox.tool_calls import find_pending_call
from factwire.runtime.turn_end import failure_payload

MODEL: Final = "demo"

_WORD: Final = re.compile(r"\s*\S+\s*")

Sleep = Callable[[float], Awaitable[None]]


class DemoStopped(Exception):
    """Raised to leave a script that was told to stop."""


class DemoStage:
    """Where the script of one turn plays."""

    def __init__(
        self,
        turn: StartTurn,
        toolbox: Toolbox,
        *,
        pace: float,
        sleep: Sleep,
        mistake: bool = True,
    ) -> None:
        self.turn = turn
        self.host = turn.host
        self.toolbox = toolbox
        self.pace = pace
        self.mistake = mistake
        self.failure: dict[str, str] | None = None
        self.result: dict[str, Any] = {}
        self.is_over = False
        self.undone: set[str] = set()
        self._sleep = sleep
        self._words = 0
        self._step = ""
        self._pending = find_pending_call(turn)

    @property
    def first(self) -> int:
        """The beat to begin with: that in which a person was asked, else the first."""
        if self._pending is None:
            return 0
        number = (self._pending.tool.step_id or "").rpartition("-")[2]
        return int(number) if number.isdecimal() else 0

    def enter(self, theme: str, beat: int) -> None:
        self._step = f"{theme}-{beat}"

    def name(self, prefix: str, word: str) -> str:
        """An id that is the same after a restart."""
        return f"{prefix}_{word}_{self.turn.turn_id}"

    def open_action(self) -> Action | None:
        """The request that this beat made before a restart; only once."""
        pending, self._pending = self._pending, None
        return None if pending is None else pending.action

    def fact(
        self,
        event_class: str,
        payload: dict[str, Any] | None = None,
        scope: FactScope | None = None,
        **ids: Any,
    ) -> Fact:
        return self.host.mint.fact(self._scope(scope), event_class, payload, **ids)

    def put(
        self,
        event_class: str,
        payload: dict[str, Any] | None = None,
        scope: FactScope | None = None,
        **ids: Any,
    ) -> None:
        self.host.emit(self.fact(event_class, payload, scope, **ids))

    async def say(self, text: str, scope: FactScope | None = None) -> None:
        """Say something, word by word."""
        message = self.host.mint.ids("msg")
        model_fields = {"model": MODEL, "provider": "factwire"}
        self.put("model.requested", model_fields, scope, message_id=message)
        first = {"first": True}
        for word in _WORD.findall(text):
            if self.toolbox.is_stopping:
                raise DemoStopped
            self.put("model.delta", {"delta": word, **first}, scope, message_id=message)
            first = {}
            self._words += 1
            await self._sleep(self.pace)
        whole = {"text": text, "finishReason": "stop"}
        self.put("model.completed", whole, scope, message_id=message)

    def think(self, summary: str) -> None:
        message = self.host.mint.ids("msg")
        self.put("reasoning.started", message_id=message)
        self.put("reasoning.summary", {"summary": summary}, message_id=message)
        self.put("reasoning.completed", message_id=message)

    async def call(
        self,
        tool: str,
        args: dict[str, Any],
        scope: FactScope | None = None,
        *,
        always_ask: bool = False,
    ) -> ToolOutcome:
        """Use a tool, or go on with the use that a person was asked about before a restart."""
        narrowed, action = self._scope(scope), self.open_action()
        if action is not None:
            outcome = await self.toolbox.resume(action, args, scope=narrowed)
        else:
            outcome = await self.toolbox.call(tool, args, scope=narrowed, always_ask=always_ask)
        if self.toolbox.is_stopping:
            raise DemoStopped
        return outcome

    def fail(self, category: str, message: str, hint: str) -> None:
        """End the turn as failed, once the script is over."""
        self.failure = failure_payload(category, message, hint)

    def end(self) -> Fact:
        prompt_words = len(self.turn.prompt.split())
        used = {"inputTokens": prompt_words, "outputTokens": self._words, "totalCostUsd": 0.0}
        self._step = ""
        self.put("cost.recorded", {"model": MODEL, "provider": "factwire", **used})
        if self.failure is not None:
            return self.fact("turn.failed", dict(self.failure))
        return self.fact("turn.completed", self.result)

    def _scope(self, scope: FactScope | None) -> FactScope:
        return (scope or self.host.scope).within(step_id=self._step or None)


FOLDER: Final = "factwire-demo"
LONG: Final = ["seq", "1", "800000"]
"""A real program that says more than five megabytes."""

SLOW: Final = "for step in 1 2 3 4 5 6; do echo step $step of 6; sleep 1; done"
FAILING: Final = "echo checking the answer; echo expected 42, got 41 >&2; exit 3"


def notes_path(stage: DemoStage) -> str:
    return f"{FOLDER}/notes-{stage.turn.turn_id}.md"


def notes(stage: DemoStage) -> str:
    return (
        "# Notes of a demo\n\n"
        "A fact is one thing that happened.\n"
        "Facts of a thread have an order, and keep it.\n"
        f"Written by turn {stage.turn.turn_id}.\n"
    )


async def write_notes(stage: DemoStage) -> None:
    outcome = await stage.call("write", {"path": notes_path(stage), "content": notes(stage)})
    await stage.say(
        describe_outcome(outcome, f"I wrote `{notes_path(stage)}`; the diff is shown with it.")
    )


async def edit_notes(stage: DemoStage) -> None:
    edit = {"path": notes_path(stage), "old": "one thing", "new": "exactly one thing"}
    outcome = await stage.call("patch", {"edits": [edit]})
    await stage.say(describe_outcome(outcome, "One more word, as a patch: *exactly* one thing."))


async def read_notes(stage: DemoStage) -> None:
    outcome = await stage.call("read", {"path": notes_path(stage)})
    lines = outcome.text.count("\n")
    await stage.say(describe_outcome(outcome, f"Read back, the file has {lines} lines."))


async def ask_first(stage: DemoStage) -> None:
    args = {"command": ["cksum", notes_path(stage)]}
    outcome = await stage.call("run", args, always_ask=True)
    await stage.say(
        describe_outcome(outcome, f"You approved it, so I ran it: `{outcome.text.strip()}`.")
    )


async def run_command(stage: DemoStage) -> None:
    outcome = await stage.call("run", {"command": ["wc", "-w", notes_path(stage)]})
    await stage.say(
        describe_outcome(outcome, f"A command counted the words: `{outcome.text.strip()}`.")
    )


async def check(stage: DemoStage) -> None:
    """A check that is really run, as a test and as evidence with its verdict."""
    path = notes_path(stage)
    command = ["grep", "-c", stage.turn.turn_id, path]
    run = {"testRunId": stage.name("test", "notes"), "command": " ".join(command)}
    begun = stage.fact("test.started", run)
    outcome = await stage.call("run", {"command": command})
    verdict = _verdict(outcome)
    counts = {"passed": int(verdict == "passed"), "failed": int(verdict == "failed")}
    stage.host.emit(begun, stage.fact("test.completed", {**run, "result": verdict, **counts}))
    report = f"$ {' '.join(command)}\n{outcome.text}\n{verdict}\n"
    ref = await stage.host.resources.blobs.put(redact_text(report)[0].encode(), kind="evidence")
    stage.put(
        "evidence.changed",
        {
            "kind": "verification",
            "title": "The notes name the turn that wrote them",
            "status": "recorded",
            "verdict": verdict,
            "summaryRef": ref.ref,
        },
        evidence_id=stage.name("evd", "notes"),
        evidence_refs=(ref.ref,),
        tool_call_id=outcome.call_id,
    )
    await stage.say(f"I checked that the notes name this turn: {verdict}.")


async def make_artifact(stage: DemoStage) -> None:
    report = f"# Report\n\nA demo of turn {stage.turn.turn_id}.\n\nNothing in it was made up.\n"
    ref = await stage.host.resources.blobs.put(report.encode(), kind="artifact")
    stage.put(
        "artifact.created",
        {
            "kind": "document",
            "title": "Report of the demo",
            "mediaType": "text/markdown",
            "versionId": "1",
            "contentRef": ref.ref,
        },
        artifact_id=stage.name("art", "report"),
        artifact_refs=(ref.ref,),
    )
    await stage.say("The report is an artifact; its content is stored behind a ref.")


async def say_a_lot(stage: DemoStage) -> None:
    outcome = await stage.call("run", {"command": LONG})
    ref = outcome.data.get("outputRef", "nowhere")
    text = f"These are {len(outcome.text)} characters of it; the full output is in `{ref}`."
    await stage.say(describe_outcome(outcome, text))


async def take_long(stage: DemoStage) -> None:
    outcome = await stage.call("run", {"command": ["sh", "-c", SLOW]})
    await stage.say(
        describe_outcome(outcome, "Six steps, one per second: there was time to stop me.")
    )


async def break_down(stage: DemoStage) -> None:
    outcome = await stage.call("run", {"command": ["sh", "-c", FAILING]})
    if outcome.category == "nonzero_exit":
        message = "the answer should be 42 but is 41, as you requested"
        hint = "Ask for another demo; this one always fails."
    else:
        message = f"the check that should fail did not run: {outcome.text[:500]}"
        hint = "Allow the check to run; it then fails as you requested."
    stage.fail(outcome.category or "nonzero_exit", message, hint)


def _verdict(outcome: ToolOutcome) -> str:
    if outcome.ok:
        return "passed"
    return "failed" if outcome.category == "nonzero_exit" else "unknown"


def describe_outcome(outcome: ToolOutcome, text: str) -> str:
    """What is said of a call: that it worked, or why it did not."""
    if outcome.ok:
        return text
    if outcome.category == "permission_denied":
        return "That was not allowed, so I skipped it."
    return f"That did not work ({outcome.category}), so I continue without it."


STEPS: Final = ("Write some notes", "Change one word of them", "Check the result")
PLAN: Final = "\n".join(f"{number}. {step}" for number, step in enumerate(STEPS, 1))
_TOOL: Final = "submit_plan"
_ENOUGH: Final = frozenset({"enough", "finish", "stop"})
_PLAN_WORD: Final = re.compile(r"[a-z]+")


async def greet(stage: DemoStage) -> None:
    stage.think("The prompt asks for a demo. This needs no model, only real work to look at.")
    await stage.say(
        "Hello. My words are scripted, but what I do is real, and you can inspect all of it."
    )


async def show_plan(stage: DemoStage) -> None:
    for step in PLAN.splitlines(keepends=True):
        stage.put("plan.delta", {"delta": step})
    steps = [{"title": step, "status": "pending"} for step in STEPS]
    stage.put("plan.final", {"text": PLAN, "steps": steps})


async def ask_about_plan(stage: DemoStage) -> None:
    """The plan is put to a person, by a call that waits for the answer."""
    action = stage.open_action()
    if action is not None:
        call = action.tool_call_id or ""
        asking = stage.host.await_open(action.action_id)
    else:
        call = stage.host.mint.ids("call")
        stage.put("tool.started", {"toolName": _TOOL}, tool_call_id=call)
        stage.put("tool.args", {"args": {"plan": PLAN}}, tool_call_id=call)
        if (denial := _denial(stage, call)) is not None:
            await _leave_it(stage, call, denial)
            return
        asking = stage.host.ask(_question(call))
    decision = await stage.toolbox.await_decision(asking)
    if decision is None:
        raise DemoStopped
    if decision.decided_by is not None:
        await stage.host.mark_applied(decision)
    if decision.allowed:
        stage.put("tool.result", {"summary": "the plan was approved"}, tool_call_id=call)
        await stage.say("Then I begin.")
        return
    await _leave_it(stage, call, decision.decision)


async def _leave_it(stage: DemoStage, call: str, why: str) -> None:
    failure: dict[str, Any] = {"failureCategory": "permission_denied", "message": why}
    stage.put("tool.failed", failure, tool_call_id=call)
    stage.is_over = True
    await stage.say("Then I will stop at the plan.")


def _denial(stage: DemoStage, call_id: str) -> str | None:
    """Why nobody can be asked about the plan; None where somebody can."""
    policy = stage.host.resources.policy
    if policy.mode != "dontAsk":
        # Other modes say what may be done; a plan does nothing.
        return None
    request = PolicyRequest(tool=_TOOL, workspace=str(stage.host.workspace))
    found = evaluate_asking(policy, request)
    evaluation = with_remedy(policy, request, found, always_ask=True)
    mint, scope = stage.host.mint, stage.host.scope
    for tell in (build_evaluation_fact, build_denial_fact):
        stage.host.emit(tell(mint, scope, request, evaluation, tool_call_id=call_id))
    return evaluation.message


def _question(call_id: str) -> DecisionRequest:
    shown, digest = shown_hash("Shall I do this?", PLAN)
    return DecisionRequest(
        action_type="plan_decision",
        prompt="Shall I do this?",
        shown=shown,
        args_hash=digest,
        severity="low",
        tool_call_id=call_id,
        tool_name=_TOOL,
        args={"plan": PLAN},
    )


async def answer_steers(stage: DemoStage) -> None:
    """Say what was heard of a person meanwhile; a word that ends it ends the script."""
    for steer in await stage.host.take_steers():
        if _ENOUGH.intersection(_PLAN_WORD.findall(steer.text.lower())):
            stage.is_over = True
            await stage.say(f"Message received: “{steer.text}”. I will stop here.")
        else:
            await stage.say(f"Message received: “{steer.text}”. I will keep to my script.")


async def close(stage: DemoStage) -> None:
    await stage.say("That was all. Ask for `demo: help` to see what else there is.")


READER, WRITER = "reader", "writer"


def _scope(stage: DemoStage, who: str) -> FactScope:
    return stage.host.scope.within(
        subagent_id=stage.name("sub", who),
        task_id=stage.name("task", who),
        parent_task_id=stage.name("task", "team"),
    )


def _team(stage: DemoStage) -> FactScope:
    return stage.host.scope.within(task_id=stage.name("task", "team"))


async def gather_team(stage: DemoStage) -> None:
    whole = "Find what the notes say about facts, and write it up"
    stage.put("task.created", {"title": whole, "objective": whole}, _team(stage))
    stage.put("task.started", {"title": whole, "taskType": "team"}, _team(stage))
    for who, task in ((READER, "Find the lines about facts"), (WRITER, "Write them up")):
        scope = _scope(stage, who)
        stage.put("task.created", {"title": task, "objective": task, "assignee": who}, scope)
        spawned = {"name": who, "role": who, "title": task, "topology": "coordinator_team"}
        stage.put("subagent.spawned", spawned, scope)
        stage.put("subagent.started", {"name": who, "title": task, "role": who}, scope)
    await stage.say("Two helpers share this task: one reads, one writes.")


async def reader_works(stage: DemoStage) -> None:
    scope = _scope(stage, READER)
    args = {"text": "act", "path": FOLDER, "glob": notes_path(stage).rpartition("/")[2]}
    outcome = await stage.call("search", args, scope)
    _finish(stage, READER, outcome)


async def hand_over(stage: DemoStage) -> None:
    _handoff(stage, "requested")
    _handoff(stage, "accepted")
    await stage.say("The reader hands over to the writer.")


async def writer_works(stage: DemoStage) -> None:
    path = f"{FOLDER}/summary-{stage.turn.turn_id}.md"
    content = f"# Summary\n\nSee `{notes_path(stage)}`: facts have an order, and keep it.\n"
    outcome = await stage.call("write", {"path": path, "content": content}, _scope(stage, WRITER))
    _finish(stage, WRITER, outcome)


async def dismiss_team(stage: DemoStage) -> None:
    undone = _unfinished_work(stage)
    if WRITER not in undone:
        _handoff(stage, "completed")
    team = {"parentId": stage.name("task", "team"), "childCount": len((READER, WRITER))}
    stage.put("team.changed", {**team, "allComplete": not undone}, _team(stage))
    if not undone:
        stage.put("task.completed", None, _team(stage))
        await stage.say("Both are done, and each did its own part.")
        return
    names = " and the ".join(undone)
    failure = {"failureCategory": "subtask_failed", "message": f"not done: the {names}"}
    stage.put("task.failed", failure, _team(stage))
    await stage.say(f"The {names} could not complete the task, so there is no summary.")


def _unfinished_work(stage: DemoStage) -> list[str]:
    """Who failed, in this run of the turn or in one before a restart."""
    history = stage.turn.history
    threads = history.subagents.threads if stage.turn.resumed and history is not None else {}
    return [
        who
        for who in (READER, WRITER)
        if who in stage.undone
        or (
            (states := threads.get(stage.name("sub", who))) is not None
            and states.status == "failed"
        )
    ]


def _finish(stage: DemoStage, who: str, outcome: ToolOutcome) -> None:
    scope = _scope(stage, who)
    if outcome.ok:
        summary = outcome.text.partition("\n")[0]
        stage.put("subagent.completed", {"name": who, "summary": summary}, scope)
        stage.put("task.completed", {"summary": summary}, scope)
    else:
        stage.undone.add(who)
        failure = {"failureCategory": outcome.category, "message": outcome.text[:500]}
        stage.put("subagent.failed", {"name": who, **failure}, scope)
        stage.put("task.failed", failure, scope)


def _handoff(stage: DemoStage, state: str) -> None:
    handoff = stage.name("hnd", "team")
    payload = {
        "handoffId": handoff,
        "fromAgent": stage.name("sub", READER),
        "toAgent": stage.name("sub", WRITER),
        "reason": "no line was found"
        if READER in _unfinished_work(stage)
        else "the lines were found",
        "status": state,
    }
    scope = _scope(stage, WRITER)
    stage.put(f"handoff.{state}", payload, scope, handoff_id=handoff)
