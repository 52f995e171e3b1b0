"""Beats in which something is said: reasoning, a plan, a decision about it."""

import re
from typing import Any, Final

from factwire.runtime.agents.demo.stage import Stage, Stopped
from factwire.runtime.policy import (
    Request,
    denial_fact,
    evaluate_asking,
    evaluation_fact,
    with_remedy,
)
from factwire.runtime.provider import ActionAsked
from factwire.runtime.recording.shown import shown_hash

STEPS: Final = ("Write some notes", "Change one word of them", "Check the result")
PLAN: Final = "\n".join(f"{number}. {step}" for number, step in enumerate(STEPS, 1))
_TOOL: Final = "submit_plan"
_ENOUGH: Final = frozenset({"enough", "finish", "stop"})
_WORD: Final = re.compile(r"[a-z]+")


async def greet(stage: Stage) -> None:
    stage.think("The prompt asks for a demo. No model is needed, only real work to look at.")
    await stage.say("Hello. What I say is scripted; what I do is not, and you can look at it all.")


async def show_plan(stage: Stage) -> None:
    for step in PLAN.splitlines(keepends=True):
        stage.put("plan.delta", {"delta": step})
    steps = [{"title": step, "status": "pending"} for step in STEPS]
    stage.put("plan.final", {"text": PLAN, "steps": steps})


async def ask_about_plan(stage: Stage) -> None:
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
    decision = await stage.toolbox.decided(asking)
    if decision is None:
        raise Stopped
    if decision.decided_by is not None:
        await stage.host.applied(decision)
    if decision.allowed:
        stage.put("tool.result", {"summary": "the plan was approved"}, tool_call_id=call)
        await stage.say("Then I begin.")
        return
    await _leave_it(stage, call, decision.decision)


async def _leave_it(stage: Stage, call: str, why: str) -> None:
    failure: dict[str, Any] = {"failureCategory": "permission_denied", "message": why}
    stage.put("tool.failed", failure, tool_call_id=call)
    stage.is_over = True
    await stage.say("Then I leave it at the plan.")


def _denial(stage: Stage, call_id: str) -> str | None:
    """Why nobody can be asked about the plan; None where somebody can."""
    policy = stage.host.means.policy
    if policy.mode != "dontAsk":
        # Other modes say what may be done; a plan does nothing.
        return None
    request = Request(tool=_TOOL, workspace=str(stage.host.workspace))
    found = evaluate_asking(policy, request)
    evaluation = with_remedy(policy, request, found, always_ask=True)
    mint, scope = stage.host.mint, stage.host.scope
    for tell in (evaluation_fact, denial_fact):
        stage.host.emit(tell(mint, scope, request, evaluation, tool_call_id=call_id))
    return evaluation.message


def _question(call_id: str) -> ActionAsked:
    shown, digest = shown_hash("Shall I do this?", PLAN)
    return ActionAsked(
        action_type="plan_decision",
        prompt="Shall I do this?",
        shown=shown,
        args_hash=digest,
        severity="low",
        tool_call_id=call_id,
        tool_name=_TOOL,
    )


async def heed(stage: Stage) -> None:
    """Say what was heard of a person meanwhile; a word that ends it ends the script."""
    for steer in await stage.host.take_steers():
        if _ENOUGH.intersection(_WORD.findall(steer.text.lower())):
            stage.is_over = True
            await stage.say(f"I heard you: “{steer.text}”. Then I stop here.")
        else:
            await stage.say(f"I heard you: “{steer.text}”. My script stays as it is.")


async def close(stage: Stage) -> None:
    await stage.say("That was all. Ask for `demo: help` to see what else there is.")
