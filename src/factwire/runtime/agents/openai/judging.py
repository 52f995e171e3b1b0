"""What went wrong with a model, in categories that never change.

The library says by the type of its error what an endpoint meant. What is repeated of an endpoint's
own words is short and holds no key, even where the endpoint repeats it.
"""

from collections.abc import Iterator
from typing import Any, Final, cast

import httpx2
from pydantic_ai import exceptions as ai

from factwire.facts import redact_text
from factwire.runtime.agents.openai.failures import FAILINGS
from factwire.runtime.agents.openai.limits import MESSAGE_CHARACTERS
from factwire.runtime.errors import TurnFailed

_CATEGORIES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (ai.ModelAuthenticationError, "unauthorized"),
    (ai.ModelNotFoundError, "model_not_found"),
    (ai.ModelContextWindowExceededError, "context_too_long"),
    (ai.ModelQuotaExceededError, "quota_exceeded"),
    (ai.ModelRateLimitError, "rate_limited"),
    (ai.ModelRequestRejectedError, "request_rejected"),
    (ai.ModelUnavailableError, "endpoint_error"),
    (ai.ModelServerError, "endpoint_error"),
    (ai.ModelTimeoutError, "endpoint_silent"),
    (ai.ModelConnectionError, "endpoint_unreachable"),
    (httpx2.TimeoutException, "endpoint_silent"),
    (httpx2.TransportError, "endpoint_unreachable"),
    (ai.ModelHTTPError, "endpoint_error"),
    (ai.ContentFilterError, "content_filtered"),
    (ai.UsageLimitExceeded, "step_limit_reached"),
    (ai.ModelAPIError, "invalid_response"),
    (ai.UnexpectedModelBehavior, "invalid_response"),
)
"""The first type that fits counts."""

_BROKEN: Final = ("endpoint_unreachable", "endpoint_silent", "invalid_response")
"""What, once an answer has begun, means that it broke off."""

JUDGED: Final[tuple[type[Exception], ...]] = tuple(kind for kind, _ in _CATEGORIES)


def judged(error: Exception, *, begun: bool, key: str | None) -> TurnFailed:
    """How a turn fails by an error; `begun` is whether an answer was under way."""
    fitting = (name for kind, name in _CATEGORIES if isinstance(error, kind))
    category = next(fitting, "invalid_response")
    if begun and category in _BROKEN and isinstance(error, _BREAKS):
        category = "stream_interrupted"
    failing = FAILINGS[category]
    said = _harmless(_said(error), key)
    message = f"{failing.meaning}: {said}" if said else failing.meaning
    return TurnFailed(category, message, failing.hint)


_BREAKS: Final = (ai.ModelAPIError, httpx2.TransportError)


def _said(error: Exception) -> str:
    if isinstance(error, ai.ModelHTTPError):
        words = next(_words(error.body), "")
        return f"{error.status_code} {words}".strip()
    return str(error) if isinstance(error, JUDGED) and str(error) else type(error).__name__


def _words(body: object) -> Iterator[str]:
    """The sentence in an error's body, wherever an endpoint puts it."""
    if isinstance(body, str):
        yield body
    elif isinstance(body, dict):
        fields = cast("dict[str, Any]", body)
        for name in ("message", "detail", "error"):
            yield from _words(fields.get(name))


def _harmless(text: str, key: str | None) -> str:
    if key:
        text = text.replace(key, "[redacted]")
    clean, _ = redact_text(" ".join(text.split()))
    return clean if len(clean) <= MESSAGE_CHARACTERS else f"{clean[:MESSAGE_CHARACTERS]}…"
