"""`demo`: needs no key and no network, and really does what it shows. A word of the prompt
chooses the theme.

A turn that is told the state of a team supervises it, and decides from that alone, so that it could
be the first one: it remembers nothing and reads no prose. The first route names somebody who is not
in the team; once that is refused, the next one is right. Work is sent back once, which shows both
ends of a review.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import msgspec

from factwire.facts import CapabilityManifest, Fact, Streaming
from factwire.facts.classes.payloads import RouteDecision
from factwire.projection import ThreadReadModel
from factwire.runtime.agents import demo_scenes
from factwire.runtime.agents.demo_scenes import (
    FOLDER,
    DemoStage,
    DemoStopped,
    Sleep,
    answer_steers,
    describe_outcome,
)
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import (
    CancelTurn,
    ReadThread,
    RespondAction,
    StartTurn,
    read_from_facts,
)
from factwire.runtime.toolbox import Toolbox

Beat = Callable[[DemoStage], Awaitable[None]]

_WORD: Final = re.compile(r"[a-z]+")


TEAM_STATE: Final = "teamState"
STRANGER: Final = "somebody-else"
WORK: Final = "greeting"

_BUILD: Final = "demo: build a file with a greeting"
_REVIEW: Final = "demo: review the greeting"
_REWORK: Final = "demo: rework the greeting, so that it says who it is for"
_RECHECK: Final = "demo: recheck the greeting after the change"
_MOST_FAILURES: Final = 2


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of the state; what else it holds is not needed here."""


class _Member(_Part, frozen=True):
    name: str
    role: str


class _Task(_Part, frozen=True):
    team_task_id: str | None = None
    subtask_id: str | None = None
    kind: str = "work"
    approved: bool | None = None


class _Assignment(_Part, frozen=True):
    worker: str
    status: str


class _Refusal(_Part, frozen=True):
    code: str
    detail: str = ""
    decision: dict[str, Any] = {}


class _Budget(_Part, frozen=True):
    tokens: int
    used_tokens: int = 0


class _Limits(_Part, frozen=True):
    assignments_left: int | None = None


class _TeamState(_Part, frozen=True):
    """What a supervisor is told in each turn."""

    goal: str
    members: tuple[_Member, ...]
    tasks: tuple[_Task, ...] = ()
    assignments: tuple[_Assignment, ...] = ()
    last_refusal: _Refusal | None = None
    budget: _Budget | None = None
    limits: _Limits = _Limits()

    @property
    def is_spent(self) -> bool:
        """Whether nobody can be given work any more."""
        budget = self.budget
        is_used = budget is not None and budget.used_tokens >= budget.tokens
        return is_used or self.limits.assignments_left == 0

    @property
    def work(self) -> str | None:
        """The work of the run, by the name or id that the run has for it."""
        found = [task for task in self.tasks if task.kind == "work"]
        return found[0].subtask_id or found[0].team_task_id if found else None

    def names_of(self, role: str) -> list[str]:
        return [member.name for member in self.members if member.role == role]

    def count(self, role: str, *statuses: str) -> int:
        """How many assignments of members with a role have one of these statuses."""
        names = self.names_of(role)
        return sum(each.worker in names and each.status in statuses for each in self.assignments)


def decide_route(state: object, *, mistake: bool = True) -> RouteDecision:
    """What comes next in a run, by its state; raises `TurnFailed` for what is none. With `mistake`,
    the first route is one that is refused.
    """
    try:
        team = msgspec.convert(state, _TeamState)
    except msgspec.ValidationError as error:
        raise TurnFailed("invalid_options", f"the option {TEAM_STATE}: {error}") from error
    if mistake and not team.assignments and team.last_refusal is None:
        return _delegate(STRANGER, "A route to somebody outside the team shows a guardrail.")
    return _find_end(team) or _find_step(team)


def _find_end(team: _TeamState) -> RouteDecision | None:
    """The end of a run that is done, or that cannot go on."""
    if any(task.approved for task in team.tasks):
        return RouteDecision(
            action="finish",
            summary=f"Done: {team.goal}. The greeting was reviewed twice and approved.",
            reasoning="The work is approved, so nothing is left to do.",
        )
    refusal = team.last_refusal
    if refusal is not None and refusal.decision.get("next_worker") != STRANGER:
        return _give_up(f"a route was refused: {refusal.code}: {refusal.detail}")
    if team.is_spent:
        return _give_up("the budget of the run is spent")
    if not team.names_of("executor"):
        return _give_up("the team has no executor")
    if _count_failures(team) >= _MOST_FAILURES:
        return _give_up("the work failed twice")
    return None


def _count_failures(team: _TeamState) -> int:
    roles = ("executor", "reviewer")
    return sum(team.count(role, "failed", "cancelled") for role in roles)


def _give_up(reason: str) -> RouteDecision:
    return RouteDecision(action="finish", blocked_reason=reason, reasoning="This cannot go on.")


def _find_step(team: _TeamState) -> RouteDecision:
    executor, reviewers = team.names_of("executor")[0], team.names_of("reviewer")
    built, reviewed = team.count("executor", "completed"), team.count("reviewer", "completed")
    if not built:
        return _delegate(executor, "The goal starts with a piece of work for an executor.")
    if reviewers and reviewed < built:
        return RouteDecision(
            action="review",
            next_worker=reviewers[0],
            instructions=_RECHECK if reviewed else _REVIEW,
            subtask_id=team.work,
            reasoning="Work that has changed is looked at by a reviewer.",
        )
    if reviewers and built == 1:
        return RouteDecision(
            action="approve",
            approved=False,
            feedback=_REWORK,
            subtask_id=team.work,
            reasoning="The first review found something, so the work goes back.",
        )
    return RouteDecision(
        action="approve",
        approved=True,
        subtask_id=team.work,
        reasoning="The work is done and nothing was found any more.",
    )


def _delegate(worker: str, reasoning: str) -> RouteDecision:
    return RouteDecision(
        action="delegate",
        next_worker=worker,
        instructions=_BUILD,
        subtask_id=WORK,
        reasoning=reasoning,
    )


async def supervise(stage: DemoStage) -> None:
    """Decide about the run that the turn's options describe, as its structured output."""
    route = decide_route(stage.turn.options[TEAM_STATE], mistake=stage.mistake)
    stage.think(route.reasoning or "")
    stage.result = {"structuredOutput": msgspec.to_builtins(route)}
    await stage.say(_describe_route(route))


def _describe_route(route: RouteDecision) -> str:
    sent_back = route.action == "approve" and not route.approved
    described = {
        "delegate": f"I give this to {route.next_worker}.",
        "review": f"I ask {route.next_worker} for a review.",
        "approve": "I send this back once." if sent_back else "I approve this.",
        "finish": route.summary or f"I stop here: {route.blocked_reason}.",
    }
    return described[route.action]


def _greeting_path(stage: DemoStage) -> str:
    return f"{FOLDER}/greeting-{stage.turn.thread_id}.md"


async def build_greeting(stage: DemoStage) -> None:
    args = {"path": _greeting_path(stage), "content": "# Greeting\n\nHello.\n"}
    outcome = await stage.call("write", args)
    await stage.say(describe_outcome(outcome, f"I wrote `{_greeting_path(stage)}`."))


async def count_greeting(stage: DemoStage) -> None:
    """The command that a person is asked about."""
    args = {"command": ["wc", "-w", _greeting_path(stage)]}
    outcome = await stage.call("run", args, always_ask=True)
    await stage.say(describe_outcome(outcome, f"With your approval: `{outcome.text.strip()}`."))


async def rework_greeting(stage: DemoStage) -> None:
    content = "# Greeting\n\nHello, and welcome to everybody who reads this.\n"
    outcome = await stage.call("write", {"path": _greeting_path(stage), "content": content})
    await stage.say(describe_outcome(outcome, "Now the greeting says who it is for."))


async def review_greeting(stage: DemoStage) -> None:
    stage.think("A first look at the greeting.")
    await stage.say("One thing to improve: the greeting does not say who it is for.")


async def recheck_greeting(stage: DemoStage) -> None:
    stage.think("A second look, after the change.")
    await stage.say("Nothing to improve: the greeting says who it is for.")


class Theme(msgspec.Struct, frozen=True, kw_only=True):
    """`words` choose it, `about` says what is to be seen."""

    name: str
    words: frozenset[str]
    about: str
    beats: tuple[Beat, ...]


async def _help(stage: DemoStage) -> None:
    await stage.say(help_text())


_TEAM: Final[tuple[Beat, ...]] = (
    demo_scenes.gather_team,
    demo_scenes.reader_works,
    demo_scenes.hand_over,
    demo_scenes.writer_works,
    demo_scenes.dismiss_team,
)

_ROWS: Final = (
    Theme(
        name="help",
        words=frozenset({"help", "themes"}),
        about="this list",
        beats=(_help,),
    ),
    Theme(
        name="approve",
        words=frozenset({"approve", "approval", "ask", "permission"}),
        about="a command that waits for your approval",
        beats=(
            demo_scenes.greet,
            demo_scenes.write_notes,
            demo_scenes.ask_first,
            demo_scenes.close,
        ),
    ),
    Theme(
        name="build",
        words=frozenset({"build"}),
        about="an executor's work in a team: a file, and a command that waits for your approval",
        beats=(build_greeting, count_greeting),
    ),
    Theme(
        name="fail",
        words=frozenset({"fail", "failure", "error", "break"}),
        about="a turn that fails, with a category and a hint",
        beats=(demo_scenes.greet, demo_scenes.break_down),
    ),
    Theme(
        name="files",
        words=frozenset({"files", "file", "diff", "patch", "write"}),
        about="files that are written, patched and read, with their diffs",
        beats=(
            demo_scenes.greet,
            demo_scenes.write_notes,
            demo_scenes.edit_notes,
            demo_scenes.read_notes,
            demo_scenes.close,
        ),
    ),
    Theme(
        name="long",
        words=frozenset({"long", "output", "big"}),
        about="five megabytes of output, most of it behind a ref",
        beats=(demo_scenes.greet, demo_scenes.say_a_lot, demo_scenes.close),
    ),
    Theme(
        name="plan",
        words=frozenset({"plan", "planning"}),
        about="a plan for you to approve, and then its steps",
        beats=(
            demo_scenes.greet,
            demo_scenes.show_plan,
            demo_scenes.ask_about_plan,
            demo_scenes.write_notes,
            demo_scenes.edit_notes,
            demo_scenes.check,
            demo_scenes.close,
        ),
    ),
    Theme(
        name="recheck",
        words=frozenset({"recheck"}),
        about="a reviewer's second look, which finds nothing",
        beats=(recheck_greeting,),
    ),
    Theme(
        name="review",
        words=frozenset({"review"}),
        about="a reviewer's first look, which finds something",
        beats=(review_greeting,),
    ),
    Theme(
        name="rework",
        words=frozenset({"rework"}),
        about="an executor's work after a review",
        beats=(rework_greeting,),
    ),
    Theme(
        name="slow",
        words=frozenset({"slow", "wait", "cancel", "stop"}),
        about="a slow command to watch or stop",
        beats=(demo_scenes.greet, demo_scenes.take_long, demo_scenes.close),
    ),
    Theme(
        name="team",
        words=frozenset({"team", "subagents", "subagent", "handoff", "agents"}),
        about="two subagents with work of their own, and a handoff",
        beats=(demo_scenes.greet, demo_scenes.write_notes, *_TEAM, demo_scenes.close),
    ),
    Theme(
        name="tour",
        words=frozenset({"tour"}),
        about="a bit of everything; also the default",
        beats=(
            demo_scenes.greet,
            demo_scenes.show_plan,
            demo_scenes.write_notes,
            demo_scenes.edit_notes,
            demo_scenes.run_command,
            demo_scenes.ask_first,
            *_TEAM,
            demo_scenes.check,
            demo_scenes.make_artifact,
            demo_scenes.close,
        ),
    ),
)

THEMES: Final[dict[str, Theme]] = {theme.name: theme for theme in _ROWS}


def theme_of(prompt: str) -> Theme:
    """The theme whose word comes first in a prompt; without one, the tour."""
    for word in _WORD.findall(prompt.lower()):
        for theme in THEMES.values():
            if word in theme.words:
                return theme
    return THEMES["tour"]


_SUPERVISOR: Final = Theme(
    name="supervisor",
    words=frozenset(),
    about="a supervisor's decision",
    beats=(supervise,),
)
"""What is played in a turn that is told the state of a team."""


def help_text() -> str:
    rows = (f"- `demo: {theme.name}`: {theme.about}" for theme in THEMES.values())
    return "I can show:\n\n" + "\n".join(rows)


MANIFEST: Final = CapabilityManifest(
    agent_id="demo",
    title=f"Demo: {', '.join(THEMES)}",
    version="1",
    streaming=Streaming(text="yes", reasoning="no", tool_args="no", tool_output="yes"),
    approvals="inline",
    action_types=("tool_approval", "delegated_permission", "plan_decision"),
    controls=("send", "queue", "steer", "stop", "approve", "reject", "retry"),
    topologies=("solo_run", "coordinator_team", "specialist_handoff"),
    cancel="yes",
    steer="yes",
    queue="yes",
    resume="yes",
    subagents="yes",
    artifacts="yes",
    evidence="yes",
    sandbox="yes",
    cost="yes",
    structured_output="yes",
)


class DemoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`pace` is how many seconds a word takes; with `mistake`, the first route of a supervisor is
    one that a guardrail refuses.
    """

    pace: float = 0.004
    mistake: bool = True


class DemoAgent:
    """Plays the theme that a prompt names."""

    def __init__(self, options: DemoOptions | None = None, *, sleep: Sleep = asyncio.sleep) -> None:
        self.manifest = MANIFEST
        self._options = options or DemoOptions()
        self._sleep = sleep
        self._running: dict[str, Toolbox] = {}

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        toolbox = self._running[turn.turn_id] = Toolbox(turn.host)
        options = self._options
        stage = DemoStage(
            turn, toolbox, pace=options.pace, sleep=self._sleep, mistake=options.mistake
        )
        try:
            await _play(stage)
        except DemoStopped:
            # The runtime knows that it was told to stop, and ends the turn so.
            return
        finally:
            del self._running[turn.turn_id]
        yield stage.end()

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        toolbox = self._running.get(cancel.turn_id)
        if toolbox is not None:
            await toolbox.stop()
        return None

    async def respond_action(self, respond: RespondAction) -> Fact | None:  # noqa: ARG002
        return None

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        return read_from_facts(read)


async def _play(stage: DemoStage) -> None:
    leads = TEAM_STATE in stage.turn.options
    theme, first = _SUPERVISOR if leads else theme_of(stage.turn.prompt), stage.first
    for number, beat in enumerate(theme.beats):
        if number < first:
            continue
        stage.enter(theme.name, number)
        await answer_steers(stage)
        if not stage.is_over:
            await beat(stage)
    await answer_steers(stage)
