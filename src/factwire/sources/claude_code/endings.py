"""`result`: how a turn ended. One process has as many as it had turns.

`subtype` alone does not say it: an answer of the API that was an error is a `success` with
`is_error`, and a stop is an error whose `terminal_reason` says that it was aborted.
"""

from typing import Any, Final

from factwire.projection.reading import listed, number, table, word, words
from factwire.sources.claude_code.results import deny
from factwire.sources.claude_code.session import Session

_CATEGORIES: Final = {
    "error_max_turns": "turn_limit",
    "error_max_budget_usd": "budget_limit",
    "error_max_structured_output_retries": "invalid_output",
}
_ERRORS: Final = {"authentication_failed": "unauthorized"}
"""What the CLI says in the model's place where no API was asked."""

_HINTS: Final = {
    "turn_limit": "Go on with another turn, or allow more rounds.",
    "budget_limit": "Allow a larger budget, then go on.",
    "rate_limited": "Wait until the limit resets, then retry the turn.",
    "unauthorized": "Set the key, or sign in again; then retry the turn.",
    "request_rejected": "Look at the message; the model or an attachment may not be had.",
    "provider_unavailable": "Retry the turn later; the model's server did not do its part.",
}
_TOO_MANY, _SERVER = 429, 500
_UNAUTHORIZED: Final = (401, 403)


def result(session: Session, item: dict[str, Any]) -> None:
    if not session.tell.is_open:
        session.go_on()
    for row in map(table, listed(item.get("permission_denials")) or ()):
        call_id = word(row or {}, "tool_use_id")
        if call_id is not None and call_id not in session.denied:
            deny(session, call_id, None, None, name=word(row or {}, "tool_name"))
    _note_usage(session, item)
    _end(session, item)
    session.ended = True
    session.renew()


def _end(session: Session, item: dict[str, Any]) -> None:
    said = {"durationMs": number(item, "duration_ms")}
    reason = word(item, "terminal_reason") or ""
    failed = item.get("is_error") is True or (word(item, "subtype") or "").startswith("error")
    if reason.startswith("aborted") or (failed and session.stopping):
        session.tell.cancel(reason or "requested", **said)
    elif failed:
        category = _category(session, item)
        message = word(item, "result") or "\n".join(words(item.get("errors"))) or category
        session.tell.fail(category, message, _HINTS.get(category), **said)
    else:
        session.tell.complete(**said)


def _category(session: Session, item: dict[str, Any]) -> str:
    known = _CATEGORIES.get(word(item, "subtype") or "")
    status = item.get("api_error_status")
    if known is not None or type(status) is not int:
        return known or _ERRORS.get(session.error or "", "provider_error")
    if status == _TOO_MANY:
        return "rate_limited"
    if status in _UNAUTHORIZED:
        return "unauthorized"
    return "provider_unavailable" if status >= _SERVER else "request_rejected"


def _note_usage(session: Session, item: dict[str, Any]) -> None:
    """What this turn used; cost is the sum of the process so far, less the sum before."""
    usage, total = table(item.get("usage")) or {}, number(item, "total_cost_usd")
    spent = None
    if total is not None:
        spent = total - session.cost if total >= session.cost else total
        session.cost = total
    session.tell.usage = {
        "inputTokens": _tokens(usage, "input_tokens"),
        "outputTokens": _tokens(usage, "output_tokens"),
    }
    session.tell.fact("cost.recorded", {**session.tell.usage, "totalCostUsd": spent})


def _tokens(usage: dict[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if type(value) is int else 0
