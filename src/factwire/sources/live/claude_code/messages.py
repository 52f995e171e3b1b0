"""The lines that are written to Claude Code."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from factwire.projection.reading import listed, table, word
from factwire.runtime.provider import Decision
from factwire.sources.claude_code.control import QUESTIONS
from factwire.sources.live.attachments import Picture

Line = dict[str, Any]

POLICY: Final = "factwire-policy"
"""The name under which the policy is asked about each call."""

_NO_ANSWER: Final = "No answer was given."


def initialize() -> Line:
    """Before every call the policy is asked; without its word nothing is done."""
    hook = {"matcher": None, "hookCallbackIds": [POLICY], "onFailure": "block"}
    return request("initialize", hooks={"PreToolUse": [hook]})


def request(subtype: str, **more: Any) -> Line:
    """Something that is asked of Claude Code."""
    asked = {"subtype": subtype, **more}
    return {"type": "control_request", "request_id": f"factwire-{uuid4()}", "request": asked}


def prompt(given: str | Sequence[str | Picture]) -> Line:
    """What a person says; its uuid is by what Claude Code says that it has taken it up."""
    content = given if isinstance(given, str) else [_block(part) for part in given]
    message = {"role": "user", "content": content}
    return {"type": "user", "message": message, "parent_tool_use_id": None, "uuid": str(uuid4())}


def _block(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    data = b64encode(part.data).decode()
    source = {"type": "base64", "media_type": part.media_type, "data": data}
    return {"type": "image", "source": source}


def response(request_id: str, said: dict[str, Any]) -> Line:
    answer = {"subtype": "success", "request_id": request_id, "response": said}
    return {"type": "control_response", "response": answer}


def refusal(request_id: str, why: str) -> Line:
    answer = {"subtype": "error", "request_id": request_id, "error": why}
    return {"type": "control_response", "response": answer}


def hooked(decision: str | None, why: str) -> dict[str, Any]:
    """What the policy says before a call; None leaves it to Claude Code's own settings."""
    if decision is None:
        return {}
    said = {"permissionDecision": decision, "permissionDecisionReason": why}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}}


def allowed(asked: dict[str, Any]) -> dict[str, Any]:
    return {"behavior": "allow", "updatedInput": table(asked.get("input")) or {}}


def denied(why: str) -> dict[str, Any]:
    return {"behavior": "deny", "message": why}


def decided(asked: dict[str, Any], decision: Decision) -> dict[str, Any]:
    """What Claude Code is told of a decision, in its own words."""
    if word(asked, "subtype") == "elicitation":
        content = table(decision.response) or {}
        yes = {"action": "accept", "content": content}
        return yes if decision.allowed else {"action": "decline"}
    if not decision.allowed:
        return denied(decision.reason or f"The answer was no ({decision.decision}).")
    if QUESTIONS.get(word(asked, "tool_name") or "") == "structured_input":
        return _answered(asked, decision.response)
    lasting = _lasting(asked, decision.response)
    return allowed(asked) | ({"updatedPermissions": lasting} if lasting else {})


def _answered(asked: dict[str, Any], said: Any) -> dict[str, Any]:
    """Answers under their questions; one question alone may be answered by a text."""
    rows = map(table, listed((table(asked.get("input")) or {}).get("questions")) or ())
    questions = [text for row in rows if (text := word(row or {}, "question"))]
    given = table(said)
    if given is None and said is not None and len(questions) == 1:
        given = {questions[0]: said}
    inner = table((given or {}).get("answers")) or given or {}
    answers = {text: _text(inner[text]) for text in questions if inner.get(text) is not None}
    if not answers:
        return denied(_NO_ANSWER)
    yes = allowed(asked)
    return {**yes, "updatedInput": {**yes["updatedInput"], "answers": answers}}


def _text(value: Any) -> str:
    rows = listed(value)
    return ", ".join(map(str, rows)) if rows is not None else str(value)


def _lasting(asked: dict[str, Any], said: Any) -> list[Any]:
    """Which of the changes that Claude Code offered to its own rules were taken; no others."""
    offered = listed(asked.get("permission_suggestions")) or []
    wanted = listed((table(said) or {}).get("updatedPermissions")) or []
    return [change for change in wanted if change in offered]
