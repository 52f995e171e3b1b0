"""What is done in a story: calls, questions to people, other agents at work, shared state."""

from collections.abc import Callable
from typing import Final

from factwire.facts import Fact, id_of
from factwire.outlets.calls import UNNAMED_TOOL, Call, Question, answer_of, failure_of, result_of
from factwire.outlets.story import Story
from factwire.projection.reading import word


def _tool_started(story: Story, fact: Fact) -> None:
    call_id = id_of(fact, "toolCallId")
    if call_id is None:
        return
    if call_id in story.calls:
        _tool_args(story, fact)
        return
    story.acts(fact)
    call = story.calls[call_id] = Call(
        call_id=call_id,
        name=word(fact.payload, "toolName") or UNNAMED_TOOL,
        title=word(fact.payload, "title"),
        args=fact.payload.get("args"),
        speaker=fact.subagent_id,
    )
    story.wire.tool(fact, call)
    if call.args:  # An empty object may only stand for arguments that are still to come.
        story.wire.tool_args(fact, call)
        call.is_whole = True


def _call(story: Story, fact: Fact) -> Call | None:
    """The call of a fact; one that nobody saw begin begins here."""
    call_id = id_of(fact, "toolCallId")
    if call_id is not None and call_id not in story.calls:
        _tool_started(story, fact)
    story.open(fact)
    return story.calls.get(call_id or "")


def _tool_args_piece(story: Story, fact: Fact) -> None:
    call, delta = _call(story, fact), word(fact.payload, "delta")
    if call is not None and delta is not None and not call.is_whole:
        story.wire.tool_args_piece(fact, call, delta)


def _tool_args(story: Story, fact: Fact) -> None:
    call, args = _call(story, fact), fact.payload.get("args")
    if call is None or args is None or (call.is_whole and args == call.args):
        return
    call.args, call.name = args, word(fact.payload, "toolName") or call.name
    story.wire.tool_args(fact, call)
    call.is_whole = True


def _settle(story: Story, fact: Fact, call: Call) -> None:
    """Something follows the arguments of a call, so they are what they were said to be."""
    if not call.is_whole and call.args is not None:
        story.wire.tool_args(fact, call)
    call.is_whole = call.is_whole or call.args is not None


def _tool_news(story: Story, fact: Fact) -> None:
    call = _call(story, fact)
    if call is not None:
        _settle(story, fact, call)
        story.wire.tool_news(fact, call)


def _tool_result(story: Story, fact: Fact) -> None:
    call = _call(story, fact)
    if call is not None:
        _settle(story, fact, call)
        del story.calls[call.call_id]
        story.wire.tool_result(fact, call, result_of(fact))


def _tool_failed(story: Story, fact: Fact) -> None:
    call = _call(story, fact)
    if call is not None:
        _settle(story, fact, call)
        del story.calls[call.call_id]
        story.wire.tool_failed(fact, call, *failure_of(fact))


def _required(story: Story, fact: Fact) -> None:
    action_id = id_of(fact, "actionId")
    if action_id is None or action_id in story.questions:
        return
    story.acts(fact)
    call = story.calls.get(id_of(fact, "toolCallId") or "")
    if call is not None:
        _settle(story, fact, call)
    question = story.questions[action_id] = Question(
        action_id=action_id,
        call_id=id_of(fact, "toolCallId"),
        speaker=fact.subagent_id,
        said=fact.payload,
    )
    story.wire.ask(fact, question, call)


def _resolved(story: Story, fact: Fact) -> None:
    question = story.questions.pop(id_of(fact, "actionId") or "", None)
    if question is None:
        return
    story.open(fact)
    answer = answer_of(fact)
    call = story.calls.get(question.call_id or "")
    if call is not None and answer.is_approval is False:
        call.is_denied = True
    story.wire.answered(fact, question, answer)


def _subagent(story: Story, fact: Fact) -> None:
    subagent_id = fact.subagent_id
    if subagent_id is not None and subagent_id not in story.subagents:
        story.open(fact)
        story.subagents[subagent_id] = fact.turn_id
        story.wire.subagent(fact, subagent_id)


def _subagent_end(story: Story, fact: Fact) -> None:
    subagent_id = fact.subagent_id
    if subagent_id is None:
        return
    _subagent(story, fact)
    story.close(fact)
    story.subagents.pop(subagent_id, None)
    story.wire.subagent_end(fact, subagent_id)


def _state(story: Story, fact: Fact) -> None:
    story.open(fact)
    story.wire.state(fact)


WORK: Final[dict[str, Callable[[Story, Fact], None]]] = {
    "tool.started": _tool_started,
    "tool.args.delta": _tool_args_piece,
    "tool.args": _tool_args,
    "tool.progress": _tool_news,
    "tool.output.delta": _tool_news,
    "tool.result": _tool_result,
    "tool.failed": _tool_failed,
    "action.required": _required,
    "action.resolved": _resolved,
    "action.cancelled": _resolved,
    "action.canceled": _resolved,
    "action.expired": _resolved,
    "subagent.spawned": _subagent,
    "subagent.started": _subagent,
    "subagent.completed": _subagent_end,
    "subagent.failed": _subagent_end,
    "subagent.closed": _subagent_end,
    "state.snapshot": _state,
    "state.delta": _state,
}
