"""What a fake model answers, and when: fixtures of aimock, made by functions with names.

The first fixture that matches answers. A match is given by keywords: `user_message` (a part of
the last thing the user said), `has_tool_result` (whether a tool has answered in this turn),
`tool_call_id`, `tool_result_contains`, `tool_name`, `system_message`, `model`, `turn_index`,
`sequence_index`, `endpoint`. Without any, everything matches.
"""

from collections.abc import Mapping
from typing import Any

Reply = dict[str, Any]


def says(text: str, *, reasoning: str | None = None, **match: Any) -> Reply:
    """A text, after some reasoning if there is any."""
    thought = {} if reasoning is None else {"reasoning": reasoning}
    return _reply({"content": text, **thought}, match)


def calls(
    name: str,
    arguments: Mapping[str, Any],
    *,
    call_id: str = "call_1",
    text: str | None = None,
    reasoning: str | None = None,
    **match: Any,
) -> Reply:
    """A call of a tool, after a text if there is one."""
    call = {"id": call_id, "name": name, "arguments": dict(arguments)}
    payloads = {"content": text, "reasoning": reasoning}
    return _reply(
        {"toolCalls": [call], **{key: value for key, value in payloads.items() if value}}, match
    )


def blocks(*parts: Mapping[str, Any], **match: Any) -> Reply:
    """Texts and calls in any order: `{"type": "text", "text"}`, `{"type": "toolCall", "name",
    "arguments", "id"}`.
    """
    return _reply({"blocks": [dict(part) for part in parts]}, match)


def costing(reply: Reply, *, tokens_in: int, tokens_out: int) -> Reply:
    """The same answer, with the tokens that it took."""
    usage = {"input_tokens": tokens_in, "output_tokens": tokens_out}
    return {**reply, "response": {**reply["response"], "usage": usage}}


def refuses(status: int, message: str, kind: str = "server_error", **match: Any) -> Reply:
    """An error of the model's server; 429 says to come back after a second."""
    return _reply({"error": {"message": message, "type": kind}, "status": status}, match)


def slowly(reply: Reply, *, milliseconds: int = 250, characters: int = 4) -> Reply:
    """The same answer in small pieces, with a pause before each."""
    return {**reply, "latency": milliseconds, "chunkSize": characters}


def cut_reply(reply: Reply, *, after: int = 3, characters: int = 4) -> Reply:
    """The same answer, whose connection breaks after some pieces."""
    return {**reply, "truncateAfterChunks": after, "chunkSize": characters}


def _reply(response: dict[str, Any], match: Mapping[str, Any]) -> Reply:
    return {"match": {_camel(name): value for name, value in match.items()}, "response": response}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
