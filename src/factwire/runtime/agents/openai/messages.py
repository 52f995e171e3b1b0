"""The past as the library's messages: prompts, answers, calls, and results right behind them."""

from collections.abc import Iterator, Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from factwire.runtime.agents.openai.past import PastTurn, Round


def past_messages(turns: Sequence[PastTurn]) -> list[ModelMessage]:
    """Turns that have ended."""
    return [message for turn in turns for message in _turn(turn)]


def asked(content: str | Sequence[UserContent]) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(content=content)])


def round_messages(each: Round) -> Iterator[ModelMessage]:
    """What a model said, and what came of its calls."""
    parts: list[ModelResponsePart] = [TextPart(content=each.text)] if each.text else []
    parts += [
        ToolCallPart(tool_name=call.name, args=call.args, tool_call_id=call.call_id)
        for call in each.calls
    ]
    yield ModelResponse(parts=parts)
    if each.calls:
        yield ModelRequest(
            parts=[
                ToolReturnPart(tool_name=call.name, content=call.result, tool_call_id=call.call_id)
                for call in each.calls
            ]
        )


def _turn(turn: PastTurn) -> Iterator[ModelMessage]:
    if turn.prompt:
        yield asked(turn.prompt)
    for each in turn.rounds:
        yield from round_messages(each)
