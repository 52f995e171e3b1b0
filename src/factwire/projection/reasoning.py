"""Reasoning and plans: part of the process, never of the answer.

A raw chain of thought is counted and not kept; only what the model gave as a summary is shown.
"""

from typing import TYPE_CHECKING, Any, Final, Literal, cast

from factwire.facts.classes.payloads import TextPayload
from factwire.facts.fact import Fact
from factwire.facts.json_patch import escape_key
from factwire.facts.json_values import list_at, text_at
from factwire.facts.outcomes import bad_end
from factwire.projection.messages import (
    PartHandle,
    ReasoningPart,
    add_part,
    find_streamed_part,
    is_another_text,
    message_of,
    state_at_end,
)
from factwire.projection.payload_fields import (
    other_id,
    outcome_of,
    read_payload,
    subagent_of,
    turn_of,
)
from factwire.projection.turns import is_in_ended_turn
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
    aliases: list[str] | None = None


def start_reasoning(draft: "StateDraft", fact: Fact) -> None:
    draft.part = _ensure_reasoning_part(draft, fact)


def add_reasoning(draft: "StateDraft", fact: Fact) -> None:
    """A piece of raw reasoning is counted; a piece of a summary is shown."""
    draft.part = handle = _ensure_reasoning_part(draft, fact)
    part, payload = cast("ReasoningPart", handle.part), fact.payload
    piece, summary = payload.get("delta"), payload.get(_SUMMARY_FIELD)
    if type(summary) is str:
        draft.grow(part.summary, f"{handle.path}/summary", summary)
    elif type(piece) is str and payload.get("kind") == _SUMMARY_FIELD:
        draft.grow(part.summary, f"{handle.path}/summary", piece)
    elif type(piece) is str:
        draft.put(part, handle.path, "characters", part.characters + len(piece))


def summarize_reasoning(draft: "StateDraft", fact: Fact) -> None:
    """The summary, whole or by a piece."""
    draft.part = handle = _ensure_reasoning_part(draft, fact)
    payload = read_payload(fact, TextPayload)
    part = cast("ReasoningPart", handle.part)
    whole = payload.summary if payload.summary is not None else payload.text
    if whole is not None:
        draft.rewrite(part, handle.path, _SUMMARY_FIELD, whole)
    elif payload.delta is not None:
        draft.grow(part.summary, f"{handle.path}/summary", payload.delta)
    draft.fill(part, handle.path, encrypted_ref=payload.encrypted_ref)


def complete_reasoning(draft: "StateDraft", fact: Fact) -> None:
    draft.part = handle = _ensure_reasoning_part(draft, fact)
    payload = read_payload(fact, TextPayload)
    part = cast("ReasoningPart", handle.part)
    if payload.summary is not None:
        draft.rewrite(part, handle.path, _SUMMARY_FIELD, payload.summary)
    if payload.text is not None:
        draft.put(part, handle.path, "characters", len(payload.text))
    draft.fill(part, handle.path, encrypted_ref=payload.encrypted_ref)
    if part.state != "stale" or payload.summary is not None:
        draft.put(part, handle.path, "state", state_at_end(fact))


def _ensure_reasoning_part(draft: "StateDraft", fact: Fact) -> PartHandle:
    message_id = message_of(draft, fact)
    named = other_id(fact, "partId", "part_id")
    ends = fact.event_class not in _OPENING_CLASSES
    existing = find_streamed_part(draft, fact, message_id, "reasoning", ends=ends)
    own = named or f"{message_id}:reasoning"
    if existing is not None:
        ended = cast("ReasoningPart", existing.part).state not in ("streaming", "stale")
        is_end = fact.event_class == "reasoning.completed"
        begins = fact.event_class in _OPENING_CLASSES or (
            is_end and is_another_text(draft, fact, existing)
        )
        if named is not None or not ended or not begins:
            return existing
        own = f"{own}:{len(existing.message.parts)}"
    part = ReasoningPart(
        part_id=own, message_id=message_id, summary=Text(), characters=0, state="streaming"
    )
    return add_part(draft, fact, part)


def add_plan_text(draft: "StateDraft", fact: Fact) -> None:
    plan, path = _ensure_plan(draft, fact, ends=False)
    payload = read_payload(fact, TextPayload)
    if plan.state == "final":
        _restart_plan(draft, plan, path)
    if payload.delta is not None:
        draft.grow(plan.text, f"{path}/text", payload.delta)
    elif payload.text is not None:
        draft.rewrite(plan, path, "text", payload.text)


def finish_plan(draft: "StateDraft", fact: Fact) -> None:
    plan, path = _ensure_plan(draft, fact, ends=True)
    whole = text_at(fact.payload, "text", "plan", _SUMMARY_FIELD)
    if whole is not None:
        draft.rewrite(plan, path, "text", whole)
    elif type(rest := fact.payload.get("delta")) is str:
        draft.grow(plan.text, f"{path}/text", rest)
    draft.fill(plan, path, steps=list_at(fact.payload.get("steps")))
    if plan.state != "stale" or whole is not None:
        draft.put(plan, path, "state", "final" if bad_end(fact) is None else "stale")


def end_turn_plans(draft: "StateDraft", fact: Fact) -> None:
    """A plan of a turn that is over is as whole as it gets; one that was cut off may lack more."""
    state = "final" if outcome_of(fact) == "completed" else "stale"
    for key, plan in draft.state.plans.items():
        if plan.state == "streaming" and is_in_ended_turn(
            draft, fact, plan.turn_id, plan.subagent_id
        ):
            draft.put(plan, f"{PLANS_PATH}/{escape_key(key)}", "state", state)


def _restart_plan(draft: "StateDraft", plan: Plan, path: str) -> None:
    """A piece behind a finished plan begins another, on which nobody has decided."""
    draft.rewrite(plan, path, "text", "")
    draft.put(plan, path, "state", "streaming")
    for field in ("steps", "action_id", "decision"):
        draft.put(plan, path, field, None)
    draft.opened = True


def _ensure_plan(draft: "StateDraft", fact: Fact, *, ends: bool) -> tuple[Plan, str]:
    turn, speaker = turn_of(fact), subagent_of(fact)
    named = other_id(fact, "partId", "part_id") or text_at(fact.payload, "planId")
    own = ":".join(filter(None, (turn or "thread", speaker, "plan")))
    plans = draft.state.plans
    key = _match_plan(draft, fact, named, own, ends=ends) or named or own
    if key not in plans:
        plan = Plan(plan_id=key, text=Text(), state="streaming", turn_id=turn, subagent_id=speaker)
        draft.create(plans, PLANS_PATH, key, plan)
    return plans[key], f"{PLANS_PATH}/{escape_key(key)}"


def _match_plan(
    draft: "StateDraft", fact: Fact, named: str | None, own: str, *, ends: bool
) -> str | None:
    """The plan that a fact means: by its name, else the only one that is open in its turn."""
    plans, turn, speaker = draft.state.plans, turn_of(fact), subagent_of(fact)
    if named in plans:
        return named
    key = draft.memory.plans_by_alias.find(named)
    if key is not None or not ends:
        return key
    pool = [
        plan
        for plan in map(plans.__getitem__, draft.memory.plans_by_state.list_keys(["streaming"]))
        if (plan.turn_id, plan.subagent_id) == (turn, speaker)
    ]
    if named is None and any(plan.plan_id == own for plan in pool):
        return own
    found = [plan for plan in pool if named is None or (plan.plan_id == own and not plan.aliases)]
    if len(pool) > 1 and found:
        draft.ambiguous = True
    if len(pool) != 1 or not found:
        return None
    if named is not None:
        draft.put(found[0], f"{PLANS_PATH}/{escape_key(own)}", "aliases", [named])
    return found[0].plan_id
