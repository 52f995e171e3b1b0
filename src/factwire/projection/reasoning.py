"""Reasoning and plans: part of the process, never of the answer.

A raw chain of thought is counted and not kept; only what the model gave as a summary is shown.
"""

from typing import TYPE_CHECKING, Any, Final, Literal, cast

from factwire.facts.fact import Fact
from factwire.facts.payloads import TextPiece
from factwire.projection.messages import add_part, known_part, latest_part, message_of
from factwire.projection.parts import PartHandle, ReasoningPart
from factwire.projection.pointers import escaped
from factwire.projection.reading import listed, other_id, read, subagent_of, turn_of, word
from factwire.projection.text import Text
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PLANS: Final = "/plans"
_SUMMARY: Final = "summary"
_OPENERS: Final = ("reasoning.started", "reasoning.delta")


class Plan(View):
    """The plan of one turn; `decision` is what a person said to it, by the action that asked."""

    plan_id: str
    text: Text
    state: Literal["streaming", "final", "stale"]
    turn_id: str | None = None
    subagent_id: str | None = None
    steps: list[Any] | None = None
    action_id: str | None = None
    decision: str | None = None


def started(canvas: "Canvas", fact: Fact) -> None:
    canvas.part = _handle(canvas, fact)


def delta(canvas: "Canvas", fact: Fact) -> None:
    """A piece of raw reasoning is counted; a piece of a summary is shown."""
    canvas.part = handle = _handle(canvas, fact)
    part, payload = cast("ReasoningPart", handle.part), fact.payload
    piece, summary = payload.get("delta"), payload.get(_SUMMARY)
    if type(summary) is str:
        canvas.grow(part.summary, f"{handle.path}/summary", summary)
    elif type(piece) is str and payload.get("kind") == _SUMMARY:
        canvas.grow(part.summary, f"{handle.path}/summary", piece)
    elif type(piece) is str:
        canvas.put(part, handle.path, "characters", part.characters + len(piece))


def summarised(canvas: "Canvas", fact: Fact) -> None:
    """The summary, whole or by a piece."""
    canvas.part = handle = _handle(canvas, fact)
    said = read(fact, TextPiece)
    part = cast("ReasoningPart", handle.part)
    whole = said.summary if said.summary is not None else said.text
    if whole is not None:
        canvas.rewrite(part, handle.path, _SUMMARY, whole)
    elif said.delta is not None:
        canvas.grow(part.summary, f"{handle.path}/summary", said.delta)
    canvas.fill(part, handle.path, encrypted_ref=said.encrypted_ref)


def completed(canvas: "Canvas", fact: Fact) -> None:
    canvas.part = handle = _handle(canvas, fact)
    said = read(fact, TextPiece)
    part = cast("ReasoningPart", handle.part)
    if said.summary is not None:
        canvas.rewrite(part, handle.path, _SUMMARY, said.summary)
    if said.text is not None:
        canvas.put(part, handle.path, "characters", len(said.text))
    canvas.fill(part, handle.path, encrypted_ref=said.encrypted_ref)
    if part.state != "stale" or said.summary is not None:
        canvas.put(part, handle.path, "state", "final")


def _handle(canvas: "Canvas", fact: Fact) -> PartHandle:
    message_id = message_of(canvas, fact)
    named = other_id(fact, "partId", "part_id")
    if named is not None:
        known = known_part(canvas, fact, message_id, named, "reasoning")
    else:
        known = latest_part(canvas, fact, message_id, "reasoning")
    own = named or f"{message_id}:reasoning"
    if known is not None:
        ended = cast("ReasoningPart", known.part).state not in ("streaming", "stale")
        if named is not None or not ended or fact.event_class not in _OPENERS:
            return known
        own = f"{own}:{len(known.message.parts)}"
    part = ReasoningPart(
        part_id=own, message_id=message_id, summary=Text(), characters=0, state="streaming"
    )
    return add_part(canvas, fact, part)


def plan_delta(canvas: "Canvas", fact: Fact) -> None:
    plan, path = _plan(canvas, fact)
    said = read(fact, TextPiece)
    if plan.state == "final":
        _plan_anew(canvas, plan, path)
    if said.delta is not None:
        canvas.grow(plan.text, f"{path}/text", said.delta)
    elif said.text is not None:
        canvas.rewrite(plan, path, "text", said.text)


def plan_final(canvas: "Canvas", fact: Fact) -> None:
    plan, path = _plan(canvas, fact)
    whole = word(fact.payload, "text", "plan", _SUMMARY)
    if whole is not None:
        canvas.rewrite(plan, path, "text", whole)
    canvas.fill(plan, path, steps=listed(fact.payload.get("steps")))
    if plan.state != "stale" or whole is not None:
        canvas.put(plan, path, "state", "final")


def _plan_anew(canvas: "Canvas", plan: Plan, path: str) -> None:
    """A piece behind a finished plan begins another, on which nobody has decided."""
    canvas.rewrite(plan, path, "text", "")
    canvas.put(plan, path, "state", "streaming")
    for field in ("steps", "action_id", "decision"):
        canvas.put(plan, path, field, None)
    canvas.opened = True


def _plan(canvas: "Canvas", fact: Fact) -> tuple[Plan, str]:
    turn, speaker = turn_of(fact), subagent_of(fact)
    named = other_id(fact, "partId", "part_id") or word(fact.payload, "planId")
    key = named or ":".join(filter(None, (turn or "thread", speaker, "plan")))
    plans = canvas.state.plans
    if key not in plans:
        plan = Plan(plan_id=key, text=Text(), state="streaming", turn_id=turn, subagent_id=speaker)
        canvas.create(plans, PLANS, key, plan)
    return plans[key], f"{PLANS}/{escaped(key)}"
