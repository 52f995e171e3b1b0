"""`codexErrorInfo`: the protocol's names of errors, as categories that are ours."""

from typing import Any, Final

from factwire.projection.reading import table
from factwire.sources.codex_app_server.session import named

_CATEGORIES: Final = {
    "contextWindowExceeded": "context_limit",
    "sessionBudgetExceeded": "budget_limit",
    "usageLimitExceeded": "rate_limited",
    "rateLimitExceeded": "rate_limited",
    "serverOverloaded": "provider_unavailable",
    "internalServerError": "provider_unavailable",
    "httpConnectionFailed": "provider_unavailable",
    "responseStreamConnectionFailed": "provider_unavailable",
    "responseStreamDisconnected": "provider_unavailable",
    "responseTooManyFailedAttempts": "provider_unavailable",
    "unauthorized": "unauthorized",
    "badRequest": "provider_error",
    "sandboxError": "sandbox_error",
    "cyberPolicy": "policy_refused",
    "misalignmentPolicyViolation": "policy_refused",
    "tooManyDenials": "permission_denied",
}
_HINTS: Final = {
    "context_limit": "Compact the thread, then retry the turn.",
    "rate_limited": "Wait until the limit resets, then retry the turn.",
    "unauthorized": "Sign in again, then retry the turn.",
}
_TOO_MANY: Final = 429


def category_of(info: Any) -> str:
    """The category of an error; an HTTP status that says more than the name goes first."""
    name = named(info) or ""
    detail = table((table(info) or {}).get(name)) or {}
    if detail.get("httpStatusCode") == _TOO_MANY:
        return "rate_limited"
    return _CATEGORIES.get(name, "provider_error")


def hint_of(category: str) -> str | None:
    return _HINTS.get(category)
