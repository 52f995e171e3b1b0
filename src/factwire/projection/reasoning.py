"""Reasoning and plans: part of the process, never of the answer.

A raw chain of thought is counted and not kept; only what the model gave as a summary is shown.
"""

from typing import TYPE_CHECKING, Any, Final, Literal, cast

from factwire.facts.classes.payloads import TextPiece
from factwire.facts.fact import Fact
from factwire.facts.json_patch import escape_key
from factwire.projection.messages import (
    PartHandle,
    ReasoningPart,
    add_part,
    find_latest_part,
    find_part,
    message_of,
)
from factwire.projection.payload_fields import (
    list_at,
    other_id,
    read_payload,
    subagent_of,
    text_at,
    turn_of,
)
from factwire.projection.views import Text, View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft

PLANS_PATH: Final = "/plans"
_SUMMARY_FIELD: Final = "summary"
_OPENING_CLASSES: Final = ("reasoning.started", "reasoning.delta")


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


def start_reasoning(canvas: "StateDraft", fact: Fact) -> None:
    canvas.part = _ensure_reasoning_part(canvas, fact)


def add_reasoning(canvas: "StateDraft", fact: Fact) -> None:
    """A piece of raw reasoning is counted; a piece of a summary is shown."""
    canvas.part = handle = _ensure_reasoning_part(canvas, fact)
    part, payload = cast("ReasoningPart", handle.part), fact.payload
    piece, summary = payload.get("delta"), payload.get(_SUMMARY_FIELD)
    if type(summary) is str:
        canvas.grow(part.summary, f"{handle.path}/summary", summary)
    elif type(piece) is str and payload.get("kind") == _SUMMARY_FIELD:
        canvas.grow(part.summary, f"{handle.path}/summary", piece)
    elif type(piece) is str:
        canvas.put(part, handle.path, "characters", part.characters + len(piece))


def summarize_reasoning(canvas: "StateDraft", fact: Fact) -> None:
    """The summary, whole or by a piece."""
    canvas.part = handle = _ensure_reasoning_part(canvas, fact)
    payload = read_payload(fact, TextPiece)
    part = cast("ReasoningPart", handle.part)
    whole = payload.summary if payload.summary is not None else payload.text
    if whole is not None:
        canvas.rewrite(part, handle.path, _SUMMARY_FIELD, whole)
    elif payload.delta is not None:
        canvas.grow(part.summary, f"{handle.path}/summary", payload.delta)
    canvas.fill(part, handle.path, encrypted_ref=payload.encrypted_ref)


def complete_reasoning(canvas: "StateDraft", fact: Fact) -> None:
    canvas.part = handle = _ensure_reasoning_part(canvas, fact)
    payload = read_payload(fact, TextPiece)
    part = cast("ReasoningPart", handle.part)
    if payload.summary is not None:
        canvas.rewrite(part, handle.path, _SUMMARY_FIELD, payload.summary)
    if payload.text is not None:
        canvas.put(part, handle.path, "characters", len(payload.text))
    canvas.fill(part, handle.path, encrypted_ref=payload.encrypted_ref)
    if part.state != "stale" or payload.summary is not None:
        canvas.put(part, handle.path, "state", "final")


def _ensure_reasoning_part(canvas: "StateDraft", fact: Fact) -> PartHandle:
    message_id = message_of(canvas, fact)
    named = other_id(fact, "partId", "part_id")
    if named is not None:
        existing = find_part(canvas, fact, message_id, named, "reasoning")
    else:
        existing = find_latest_part(canvas, fact, message_id, "reasoning")
    own = named or f"{message_id}:reasoning"
    if existing is not None:
        ended = cast("ReasoningPart", existing.part).state not in ("streaming", "stale")
        if named is not None or not ended or fact.event_class not in _OPENING_CLASSES:
            return existing
        own = f"{own}:{len(existing.message.parts)}"
    part = ReasoningPart(
        part_id=own, message_id=message_id, summary=Text(), characters=0, state="streaming"
    )
    return add_part(canvas, fact, part)


def add_plan_text(canvas: "StateDraft", fact: Fact) -> None:
    plan, path = _ensure_plan(canvas, fact)
    payload = read_payload(fact, TextPiece)
    if plan.state == "final":
        _restart_plan(canvas, plan, path)
    if payload.delta is not None:
        canvas.grow(plan.text, f"{path}/text", payload.delta)
    elif payload.text is not None:
        canvas.rewrite(plan, path, "text", payload.text)


def finish_plan(canvas: "StateDraft", fact: Fact) -> None:
    plan, path = _ensure_plan(canvas, fact)
    whole = text_at(fact.payload, "text", "plan", _SUMMARY_FIELD)
    if whole is not None:
        canvas.rewrite(plan, path, "text", whole)
    canvas.fill(plan, path, steps=list_at(fact.payload.get("steps")))
    if plan.state != "stale" or whole is not None:
        canvas.put(plan, path, "state", "final")


def _restart_plan(canvas: "StateDraft", plan: Plan, path: str) -> None:
    """A piece behind a finished plan begins another, on which nobody has decided."""
    canvas.rewrite(plan, path, "text", "")
    canvas.put(plan, path, "state", "streaming")
    for field in ("steps", "action_id", "decision"):
        canvas.put(plan, path, field, None)
    canvas.opened = True


def _ensure_plan(canvas: "StateDraft", fact: Fact) -> tuple[Plan, str]:
    turn, speaker = turn_of(fact), subagent_of(fact)
    named = other_id(fact, "partId", "part_id") or text_at(fact.payload, "planId")
    key = named or ":".join(filter(None, (turn or "thread", speaker, "plan")))
    plans = canvas.state.plans
    if key not in plans:
        plan = Plan(plan_id=key, text=Text(), state="streaming", turn_id=turn, subagent_id=speaker)
        canvas.create(plans, PLANS_PATH, key, plan)
    return plans[key], f"{PLANS_PATH}/{escape_key(key)}"
