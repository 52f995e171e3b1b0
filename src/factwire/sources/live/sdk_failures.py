"""What went wrong in a run of an SDK, in categories that never change.

SDKs and the libraries beneath them raise errors of their own types; they are known by their names
and by the status of the answer, so that nothing has to be imported for it. The reason is often the
cause of the error that arrives.
"""

from collections.abc import Iterator
from typing import Any, Final

from factwire.sources.live.sdk_values import shown

_LONGEST: Final = 16
"""Errors behind an error that are looked at."""

_NAMES: Final = {
    "RateLimitError": "rate_limited",
    "ModelRateLimitError": "rate_limited",
    "AuthenticationError": "unauthorized",
    "PermissionDeniedError": "unauthorized",
    "ModelAuthenticationError": "unauthorized",
    "InternalServerError": "provider_unavailable",
    "ModelUnavailableError": "provider_unavailable",
    "APIConnectionError": "connection_lost",
    "ModelConnectionError": "connection_lost",
    "ModelTimeoutError": "connection_lost",
    "TransportError": "connection_lost",
    "MaxTurnsExceeded": "step_limit_reached",
    "UsageLimitExceeded": "step_limit_reached",
    "GraphRecursionError": "step_limit_reached",
    "InputGuardrailTripwireTriggered": "guardrail_tripped",
    "OutputGuardrailTripwireTriggered": "guardrail_tripped",
    "ToolInputGuardrailTripwireTriggered": "guardrail_tripped",
    "ToolOutputGuardrailTripwireTriggered": "guardrail_tripped",
}
"""Name of a type → category; that of the OpenAI and httpx libraries, and of the three SDKs."""

_RATE: Final = 429
_KEYS: Final = (401, 403)
_SERVER: Final = 500


def failed_line(error: BaseException) -> dict[str, Any]:
    """The line that closes a run which raised."""
    return {
        "type": "run.failed",
        "error": type(error).__name__,
        "message": _said(error),
        "category": category_of(error) or "agent_error",
    }


def category_of(error: BaseException) -> str | None:
    """The first category that the error, or one behind it, is known by."""
    for each in _behind(error):
        category = _by_status(each) or _by_name(each)
        if category is not None:
            return category
    return None


def _behind(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it came from."""
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < _LONGEST:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        members: tuple[BaseException, ...] = getattr(each, "exceptions", ())
        context = None if each.__suppress_context__ else each.__context__
        behind = (*members, each.__cause__, context)
        waiting += [one for one in behind if isinstance(one, BaseException)]


def _by_status(error: BaseException) -> str | None:
    status = getattr(error, "status_code", None)
    if type(status) is not int:
        return None
    if status == _RATE:
        return "rate_limited"
    if status in _KEYS:
        return "unauthorized"
    return "provider_unavailable" if status >= _SERVER else None


def _by_name(error: BaseException) -> str | None:
    return next(
        (_NAMES[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _NAMES), None
    )


def _said(error: BaseException) -> str:
    """The error's own words."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - the words are the program's own, and may fail
        said = shown(error)
    return said or type(error).__name__
