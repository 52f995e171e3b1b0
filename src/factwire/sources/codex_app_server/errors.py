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
    "unauthorized": "Set the key, or sign in again; then retry the turn.",
}
_STATUSES: Final = {401: "unauthorized", 403: "unauthorized", 429: "rate_limited"}
"""HTTP statuses that say more than the name of the error does."""


def category_of(info: Any) -> str:
    """The category of an error; an HTTP status that says more than the name goes first."""
    name = named(info) or ""
    detail = table((table(info) or {}).get(name)) or {}
    status = detail.get("httpStatusCode")
    known = _STATUSES.get(status) if type(status) is int else None
    return known or _CATEGORIES.get(name, "provider_error")


def hint_of(category: str) -> str | None:
    return _HINTS.get(category)
