"""Texts: answers and reasoning, piece by piece and whole.

In the runtime view a text is known by its message; in the conversation view it is an item. A fact
that brings no text is told as no text.
"""

from typing import Final, Literal

from factwire.edge.events.agent_payloads import AgentText, AgentThinking
from factwire.edge.events.ids import (
    item_id_of,
    message_id_of,
    part_id_of,
    run_id_of,
    sent_at,
    speaker_of,
    thread_id_of,
)
from factwire.edge.events.run_payloads import MessageDelta
from factwire.edge.events.thing_payloads import Item, ItemContent
from factwire.edge.events.word import Said, Table, Word, Words, alike
from factwire.facts import Fact


def _piece(fact: Fact) -> Said | None:
    delta = fact.payload.get("delta")
    if type(delta) is not str:
        return _block(fact)
    return "run.agent.text_delta", _text(fact, delta)


def _block(fact: Fact) -> Said | None:
    text = fact.payload.get("text")
    return None if type(text) is not str else ("run.agent.text_block", _text(fact, text))


def _text(fact: Fact, content: str) -> AgentText:
    return AgentText(
        message_id=message_id_of(fact),
        content=content,
        part_id=part_id_of(fact),
        subagent_id=speaker_of(fact),
    )


def _delta(fact: Fact) -> Said | None:
    delta = fact.payload.get("delta")
    if type(delta) is not str:
        return _item(fact, "in_progress") if type(fact.payload.get("text")) is str else None
    return "message.delta", MessageDelta(
        item_id=item_id_of(fact),
        delta=delta,
        thread_id=thread_id_of(fact),
        run_id=run_id_of(fact),
        subagent_id=speaker_of(fact),
    )


def _whole(fact: Fact) -> Said | None:
    return _item(fact, "completed")


def _item(fact: Fact, status: str) -> Said:
    text = fact.payload.get("text")
    return "item.updated", Item(
        item_id=item_id_of(fact),
        type="agent_message",
        role="assistant",
        status=status,
        project_id=fact.project_id,
        thread_id=thread_id_of(fact),
        run_id=run_id_of(fact),
        content=ItemContent(text=text) if type(text) is str else None,
        subagent_id=speaker_of(fact),
        updated_at=sent_at(fact.created_at),
    )


_FORMS: Final[dict[str, Literal["delta", "summary", "whole"]]] = {
    "delta": "delta",
    "summary": "summary",
    "text": "whole",
}


def _thinking(fact: Fact) -> Said | None:
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


_GROWS: Final = Words(
    Word(_piece, ("run.agent.text_delta", "run.agent.text_block")),
    Word(_delta, ("message.delta", "item.updated")),
)
_ENDS: Final = Words(Word(_block, ("run.agent.text_block",)), Word(_whole, ("item.updated",)))
_THINKS: Final = alike(_thinking, "run.agent.thinking")

TEXT_WORDS: Final[Table] = {
    "model.delta": _GROWS,
    "text.delta": _GROWS,
    "model.completed": _ENDS,
    "text.final": _ENDS,
    "reasoning.delta": _THINKS,
    "reasoning.summary": _THINKS,
    "reasoning.completed": _THINKS,
}
