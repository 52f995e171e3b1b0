"""Texts: answers and reasoning, piece by piece and whole.

In the runtime view a text is known by its message; in the conversation view it is an item. A fact
that brings no text is told as no text.
"""

from typing import Final, Literal

from factwire.facts import Fact
from factwire.facts.resources import Item, ItemContent
from factwire.serving.envelopes import (
    EventMapping,
    EventPayload,
    MappingTable,
    TypedPayload,
    ViewMappings,
    item_id_of,
    map_both_views,
    message_id_of,
    part_id_of,
    run_id_of,
    sent_at,
    speaker_of,
    thread_id_of,
)


class MessageDelta(EventPayload, frozen=True):
    """The next piece of an item's text."""

    item_id: str
    delta: str
    thread_id: str | None = None
    run_id: str | None = None
    subagent_id: str | None = None


class AgentText(EventPayload, frozen=True):
    """Text of an answer: a delta is the next piece, a block the whole text so far."""

    message_id: str
    content: str
    part_id: str | None = None
    subagent_id: str | None = None


class AgentThinking(EventPayload, frozen=True):
    """Reasoning that may be shown folded; `form` says if `content` is a piece, a summary or all."""

    message_id: str
    content: str
    form: Literal["delta", "summary", "whole"]
    part_id: str | None = None
    subagent_id: str | None = None


def _to_text_delta(fact: Fact) -> TypedPayload | None:
    delta = fact.payload.get("delta")
    if type(delta) is not str:
        return _to_text_block(fact)
    return "run.agent.text_delta", _build_agent_text(fact, delta)


def _to_text_block(fact: Fact) -> TypedPayload | None:
    text = fact.payload.get("text")
    return (
        None if type(text) is not str else ("run.agent.text_block", _build_agent_text(fact, text))
    )


def _build_agent_text(fact: Fact, content: str) -> AgentText:
    return AgentText(
        message_id=message_id_of(fact),
        content=content,
        part_id=part_id_of(fact),
        subagent_id=speaker_of(fact),
    )


def _to_message_delta(fact: Fact) -> TypedPayload | None:
    delta = fact.payload.get("delta")
    if type(delta) is not str:
        has_text = type(fact.payload.get("text")) is str
        return _to_text_item(fact, "item.updated", "in_progress") if has_text else None
    if len(fact.payload) > 1 and fact.payload.get("first") is True:
        return _to_text_item(fact, "item.created", "in_progress", delta)
    return "message.delta", MessageDelta(
        item_id=item_id_of(fact),
        delta=delta,
        thread_id=thread_id_of(fact),
        run_id=run_id_of(fact),
        subagent_id=speaker_of(fact),
    )


def _to_final_message(fact: Fact) -> TypedPayload | None:
    return _to_text_item(fact, "message.created", "completed")


def _to_text_item(fact: Fact, name: str, status: str, beginning: str | None = None) -> TypedPayload:
    text = fact.payload.get("text") if beginning is None else beginning
    time = sent_at(fact.created_at)
    return name, Item(
        item_id=item_id_of(fact),
        type="agent_message",
        role="assistant",
        status=status,
        project_id=fact.project_id,
        thread_id=thread_id_of(fact),
        run_id=run_id_of(fact),
        content=ItemContent(text=text) if type(text) is str else None,
        subagent_id=speaker_of(fact),
        created_at=None if name == "item.updated" else time,
        updated_at=time,
    )


_FORMS: Final[dict[str, Literal["delta", "summary", "whole"]]] = {
    "delta": "delta",
    "summary": "summary",
    "text": "whole",
}


def _to_thinking(fact: Fact) -> TypedPayload | None:
    for name, form in _FORMS.items():
        content = fact.payload.get(name)
        if type(content) is str and content:
            return "run.agent.thinking", AgentThinking(
                message_id=message_id_of(fact),
                content=content,
                form=form,
                part_id=part_id_of(fact),
                subagent_id=speaker_of(fact),
            )
    return None


_GROWS: Final = ViewMappings(
    EventMapping(_to_text_delta, ("run.agent.text_delta", "run.agent.text_block")),
    EventMapping(_to_message_delta, ("message.delta", "item.created", "item.updated")),
)
_ENDS: Final = ViewMappings(
    EventMapping(_to_text_block, ("run.agent.text_block",)),
    EventMapping(_to_final_message, ("message.created",)),
)
_THINKS: Final = map_both_views(_to_thinking, "run.agent.thinking")

TEXT_EVENTS: Final[MappingTable] = {
    "model.delta": _GROWS,
    "text.delta": _GROWS,
    "model.completed": _ENDS,
    "text.final": _ENDS,
    "reasoning.delta": _THINKS,
    "reasoning.summary": _THINKS,
    "reasoning.completed": _THINKS,
}
