"""What the supervisor of a team is asked to show: the states that it is told, and what must come
of each.

A supervisor is any agent whose turn ends with a decision as structured output. It is told the state
of a run as a Hub would tell it, and its own decisions are what the next state follows from. What it
gives is judged as it gives it, before the runtime validates it. A turn that breaks a rule which
others build on is judged by that rule alone.
"""

from collections.abc import Callable, Coroutine, Iterator
from functools import cache
from typing import Any, Final

import msgspec

from factwire.conformance.case import Finding, Result, build_finding, build_result
from factwire.conformance.provider_checks import LoopThread, Make, OutOfTime
from factwire.conformance.provider_trial import (
    ProviderRecord,
    RecordingProvider,
    TrialRuntime,
    TrialStorage,
    open_storage,
)
from factwire.facts import CapabilityManifest, Fact
from factwire.facts.classes.class_tables import TURN_TERMINALS
from factwire.facts.json_values import object_at
from factwire.facts.schemas.json_schema import route_decision_schema
from factwire.runtime.structured_output import OUTPUT_SCHEMA, OutputMisfit, OutputSchema

Route = dict[str, Any]
Problem = tuple[str, str]
"""The rule that is broken, and how."""

RULES: Final = {
    "supervisor.ends": "The agent ends its turn",
    "supervisor.structured": "A decision is never prose",
    "supervisor.one-decision": "One decision a turn",
    "supervisor.schema": "The decision fits its schema",
    "supervisor.complete": "The decision says all that its action needs",
    "supervisor.roster": "Work goes to members with the right role",
    "supervisor.ids": "Work keeps its ids",
    "supervisor.refusal": "A refused decision is not repeated",
    "supervisor.limits": "Nobody is given work beyond the limits",
    "supervisor.finish": "A run whose work is approved is finished",
    "supervisor.restart": "A run goes on after a restart",
}
"""Requirement → title, in the order in which they are judged."""

_PROMPT: Final = (
    "You supervise a team. Decide the next step, and answer with one decision as your structured "
    "output.\n\nThe state of the run:\n"
)
_GOAL: Final = "Write a short greeting and have it reviewed"
_MEMBERS: Final = (
    {"name": "lead", "role": "supervisor", "agentType": "agent"},
    {"name": "ann", "role": "executor", "agentType": "agent"},
    {"name": "ben", "role": "executor", "agentType": "agent"},
    {"name": "rex", "role": "reviewer", "agentType": "agent"},
)
_ROLES: Final = {"delegate": "executor", "review": "reviewer", "approve": "executor"}
_SAMPLE: Final[Route] = {"action": "delegate", "next_worker": "ann", "instructions": _GOAL}
_LIMITS: Final = {"assignmentsLeft": 19, "activeMost": 5, "depthMost": 3, "sameRoutesMost": 3}
_BUDGET: Final = {"tokens": 100_000, "usedTokens": 2_000}


def build_state(work: Route | None = None, **changes: Any) -> dict[str, Any]:
    """The state of a run: before anything was done, or after the work that a decision gave."""
    tasks, assignments = ([], []) if work is None else _build_work(work)
    return {
        "goal": _GOAL,
        "runId": "tmr_conformance",
        "members": list(_MEMBERS),
        "tasks": tasks,
        "assignments": assignments,
        "active": [],
        "lastOutcome": assignments[-1] if assignments else None,
        "lastRefusal": None,
        "budget": _BUDGET,
        "limits": _LIMITS,
        **changes,
    }


def _build_work(work: Route) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    task = {
        "teamTaskId": "ttk_conformance",
        "kind": "work",
        "title": work["instructions"],
        "subtaskId": work.get("subtask_id"),
        "approved": None,
    }
    assignment = {
        "assignmentId": "asg_conformance",
        "teamTaskId": task["teamTaskId"],
        "worker": work["next_worker"],
        "action": "delegate",
        "instructions": work["instructions"],
        "status": "completed",
        "resultSummary": "The greeting is in greeting.md.",
        "error": None,
    }
    return [task], [assignment]


class SupervisorTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn: what the supervisor was told, and what it gave."""

    name: str
    state: dict[str, Any]
    account: ProviderRecord

    @property
    def end(self) -> Fact | None:
        """The end of the turn, as the agent itself gave it."""
        facts = [item for item in self.account.items if isinstance(item, Fact)]
        ends = [fact for fact in facts if fact.event_class in TURN_TERMINALS]
        return next((fact for fact in ends if fact.turn_id == self.account.turn_id), None)

    @property
    def output(self) -> Any:
        return None if self.end is None else self.end.payload.get("structuredOutput")

    @property
    def route(self) -> Route | None:
        """The decision, where it is one."""
        try:
            return _load_schema().read(self.output)
        except OutputMisfit:
            return None


@cache
def _load_schema() -> OutputSchema:
    return OutputSchema(route_decision_schema())


# How a turn is judged


def find_problems(turn: SupervisorTurn) -> list[Problem]:
    """What is wrong with a turn; a rule that the others build on comes alone."""
    for judge in (_judge_end, _judge_form, _judge_count, _judge_schema):
        problems = list(judge(turn))
        if problems:
            return problems
    route = turn.route or {}
    rules = (_judge_completeness, _judge_worker, _judge_ids, _judge_situation)
    return [problem for judge in rules for problem in judge(turn, route)]


def _judge_end(turn: SupervisorTurn) -> Iterator[Problem]:
    end = turn.end
    if end is None:
        error = f" ({turn.account.error})" if turn.account.error else ""
        yield "supervisor.ends", f"the agent did not end its turn{error}"
    elif end.event_class != "turn.completed":
        reason = end.payload.get("message") or end.payload.get("failureCategory") or ""
        yield "supervisor.ends", f"expected turn.completed, got {end.event_class}: {reason}"


def _judge_form(turn: SupervisorTurn) -> Iterator[Problem]:
    if turn.output is None:
        yield "supervisor.structured", "the turn ended without structuredOutput"
    elif isinstance(turn.output, str):
        yield "supervisor.structured", "structuredOutput is a text, and text is not read"


def _judge_count(turn: SupervisorTurn) -> Iterator[Problem]:
    if isinstance(turn.output, list):
        yield "supervisor.one-decision", "structuredOutput is a list; give one decision a turn"
    facts = [item for item in turn.account.items if isinstance(item, Fact)]
    if any(fact.event_class == "routing.decided" and "action" in fact.payload for fact in facts):
        message = "the agent gave routing.decided itself; the runtime does, from structuredOutput"
        yield "supervisor.one-decision", message


def _judge_schema(turn: SupervisorTurn) -> Iterator[Problem]:
    try:
        _load_schema().read(turn.output)
    except OutputMisfit as misfit:
        yield "supervisor.schema", str(misfit)


def _assigns(route: Route) -> bool:
    """Whether a decision gives somebody work."""
    sends_back = route["action"] == "approve" and route.get("approved") is False
    return route["action"] in ("delegate", "review") or sends_back


def _judge_completeness(turn: SupervisorTurn, route: Route) -> Iterator[Problem]:
    del turn
    action = route["action"]
    needed = {
        "delegate": ("next_worker", "instructions"),
        "review": ("next_worker", "instructions"),
    }
    for name in needed.get(action, ()):
        if not str(route.get(name) or "").strip():
            yield "supervisor.complete", f"{action} needs {name}"
    if action == "approve" and route.get("approved") is None:
        yield "supervisor.complete", "approve needs approved, true or false"
    elif action == "approve" and _assigns(route) and not _says_what_is_missing(route):
        yield "supervisor.complete", "work that goes back needs feedback"


def _says_what_is_missing(route: Route) -> bool:
    return bool(route.get("feedback") or route.get("instructions"))


def _judge_worker(turn: SupervisorTurn, route: Route) -> Iterator[Problem]:
    worker, role = route.get("next_worker"), _ROLES.get(route["action"])
    if worker and role is not None:
        names = [each["name"] for each in turn.state["members"] if each["role"] == role]
        if worker not in names:
            message = f"{worker!r} is no {role} of the team; there are {', '.join(names)}"
            yield "supervisor.roster", message


def _judge_ids(turn: SupervisorTurn, route: Route) -> Iterator[Problem]:
    known = {task[name] for task in turn.state["tasks"] for name in ("teamTaskId", "subtaskId")}
    named = [route.get("parent_task_id")]
    if route["action"] in ("review", "approve"):
        named.append(route.get("subtask_id"))
    for name in named:
        if name is not None and name not in known:
            yield "supervisor.ids", f"{name!r} names no work of the run"


def _judge_situation(turn: SupervisorTurn, route: Route) -> Iterator[Problem]:
    """What only one state asks for."""
    refusal = object_at(turn.state["lastRefusal"])
    if refusal is not None and _is_same(route, refusal["decision"]):
        yield "supervisor.refusal", "the decision that was refused is given again"
    if turn.state["limits"]["assignmentsLeft"] == 0 and _assigns(route):
        message = f"no assignment and no budget is left, and {route['action']} gives somebody work"
        yield "supervisor.limits", message
    approved = [task["approved"] for task in turn.state["tasks"]]
    if approved and all(approved) and (route["action"] != "finish" or route.get("blocked_reason")):
        message = f"all work is approved; expected finish, got {route['action']}"
        yield "supervisor.finish", message


_COMPARED: Final = ("action", "next_worker", "instructions", "approved", "feedback", "subtask_id")


def _is_same(route: Route, other: Route) -> bool:
    return all(route.get(name) == other.get(name) for name in _COMPARED)


# How a supervisor is tried


class _Trial:
    """The turns of one agent, as they come; `current` is the one that is under way."""

    def __init__(self, make: Make, seconds: float) -> None:
        self.make = make
        self.seconds = seconds
        self.turns: list[SupervisorTurn] = []
        self.current = ""

    async def hold_turn(self, stage: TrialRuntime, name: str, state: dict[str, Any]) -> Route:
        """Hold a turn; the decision, or a sample of one where there is none to go on with."""
        self.current, turn_id = name, f"trn_supervisor_{name}"
        options = {OUTPUT_SCHEMA: route_decision_schema(), "teamState": state}
        prompt = _PROMPT + msgspec.json.encode(state).decode()
        await stage.submit(turn_id, prompt, options)
        await stage.wait_for_end(turn_id)
        account = stage.witness.account(turn_id)
        turn = SupervisorTurn(name=name, state=state, account=account)
        self.turns.append(turn)
        route = turn.route
        is_work = route is not None and route["action"] == "delegate" and not find_problems(turn)
        return route if route is not None and is_work else _SAMPLE


async def _play_run(trial: _Trial, place: TrialStorage, witness: RecordingProvider) -> None:
    """A run from its beginning to the approval of its work; its first decision is refused once."""
    async with place.open_runtime(witness) as stage:
        work = await trial.hold_turn(stage, "begin", build_state())
        detail = "the same member was given the same instructions three times"
        refusal = {"code": "route_repeated", "detail": detail, "decision": work}
        await trial.hold_turn(stage, "refused", build_state(lastRefusal=refusal))
        state = build_state(work)
        await trial.hold_turn(stage, "worked", state)
        [task] = state["tasks"]
        done = {**state, "tasks": [{**task, "approved": True}]}
        await trial.hold_turn(stage, "approved", done)


async def _play_spent(trial: _Trial, place: TrialStorage, witness: RecordingProvider) -> None:
    """A run that has used up all that it may."""
    spent = {**_BUDGET, "usedTokens": _BUDGET["tokens"]}
    limits = {**_LIMITS, "assignmentsLeft": 0}
    async with place.open_runtime(witness) as stage:
        state = build_state(_SAMPLE, budget=spent, limits=limits)
        await trial.hold_turn(stage, "spent", state)


async def _play_restarted(trial: _Trial, place: TrialStorage, witness: RecordingProvider) -> None:
    """A run whose runtime stops; another one, with the agent made anew, goes on in its thread."""
    async with place.open_runtime(witness) as stage:
        work = await trial.hold_turn(stage, "before-restart", build_state())
    async with place.open_runtime(RecordingProvider(trial.make())) as stage:
        await trial.hold_turn(stage, _RESTARTED, build_state(work))


_RESTARTED: Final = "restarted"
_Course = Callable[[_Trial, TrialStorage, RecordingProvider], Coroutine[Any, Any, None]]
_COURSES: Final[tuple[_Course, ...]] = (_play_run, _play_spent, _play_restarted)


async def _play_course(course: _Course, trial: _Trial, witness: RecordingProvider) -> None:
    async with open_storage(trial.seconds) as place:
        await course(trial, place, witness)


def supervisor_results(make: Make, seconds: float) -> list[Result]:
    """Every requirement of supervisors, tried on one agent; `make` makes it anew, as a restart
    does.
    """
    provider = make()
    reason = _describe_absence(provider.manifest)
    if reason is not None:
        return [_build_result(rule, [], reason) for rule in RULES]
    trial, stopped = _Trial(make, seconds), list[Finding]()
    with LoopThread() as loop:
        for course in _COURSES:
            stopped += _run_course(course, trial, RecordingProvider(provider), loop)
    findings = [*stopped, *_judge_turns(trial.turns, {each.requirement for each in stopped})]
    return [_build_result(rule, findings, None) for rule in RULES]


def _describe_absence(manifest: CapabilityManifest) -> str | None:
    if manifest.structured_output == "no":
        return "the manifest says structuredOutput: no"
    return None


def _run_course(
    course: _Course, trial: _Trial, witness: RecordingProvider, loop: LoopThread
) -> Iterator[Finding]:
    """Play a course; what keeps it from its end."""
    try:
        loop.run(lambda: _play_course(course, trial, witness), trial.seconds)
    except OutOfTime as error:
        message = f"{trial.current}: the agent {error}"
    except Exception as error:  # noqa: BLE001 - whatever an agent does to its trial is a finding
        message = f"{trial.current}: {type(error).__name__}: {error}"
    else:
        return
    rule = "supervisor.restart" if trial.current == _RESTARTED else "supervisor.ends"
    yield build_finding(rule, message, level="supervisor")


def _judge_turns(turns: list[SupervisorTurn], broken: set[str]) -> Iterator[Finding]:
    """What is wrong with turns. What goes wrong only after the restart is the restart's fault."""
    for turn in sorted(turns, key=lambda each: each.name == _RESTARTED):
        for rule, message in find_problems(turn):
            is_new = turn.name == _RESTARTED and rule not in broken
            named = "supervisor.restart" if is_new else rule
            text = f"{turn.name}: {message}"
            yield build_finding(named, text, level="supervisor", fact=turn.end)
            broken.add(named)


def _build_result(rule: str, findings: list[Finding], reason: str | None) -> Result:
    own = [finding for finding in findings if finding.requirement == rule]
    return build_result(rule, RULES[rule], "supervisor", (rule,), own, reason=reason)
