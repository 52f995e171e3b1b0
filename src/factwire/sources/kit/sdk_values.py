"""Values and errors of an SDK's program as JSON, whatever they are.

None of it may raise here, go round in circles or become more than a fact could hold; what has
no form of its own is shown by its `repr`. Errors are recognised by the names of their types and
by the status of the answer, so that nothing has to be imported for it; the reason is often the
cause of the error that arrives. Categories never change.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, Final, cast

from factwire.sources.kit.limits import VALUE_CHARACTERS, VALUE_DEPTH, VALUE_ITEMS

_SMALLEST: Final = -(2**63)
_GREATEST: Final = 2**63 - 1
_SCALARS: Final = (str, int, float)


def to_json(value: object) -> Any:
    """The value as JSON can hold it."""
    return _to_json(value, ())


def _to_json(value: object, within: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, _SCALARS):
        return _to_json_scalar(value)
    if id(value) in within or len(within) >= VALUE_DEPTH:
        return short_repr(value)
    within = (*within, id(value))
    if isinstance(value, Mapping):
        return _to_json_object(cast("Mapping[object, object]", value), within)
    if isinstance(value, list | tuple | set | frozenset):
        return _to_json_list(cast("Iterable[object]", value), within)
    fields = _read_fields(value)
    return short_repr(value) if fields is None else _to_json_object(fields, within)


def _to_json_scalar(value: str | float) -> Any:
    if isinstance(value, str):
        return _to_json_text(value)
    if isinstance(value, int):
        return int(value) if _SMALLEST <= value <= _GREATEST else str(value)
    return float(value) if isfinite(value) else str(value)


def _to_json_text(value: str) -> str:
    """Half a surrogate pair is no text that JSON could carry."""
    text = str.__str__(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _to_json_object(value: Mapping[object, object], within: tuple[int, ...]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for key, each in value.items():
        if len(named) >= VALUE_ITEMS:
            break
        named[_to_json_text(key) if isinstance(key, str) else short_repr(key)] = _to_json(
            each, within
        )
    return named


def _to_json_list(value: Iterable[object], within: tuple[int, ...]) -> list[Any]:
    found: list[Any] = []
    for each in value:
        if len(found) >= VALUE_ITEMS:
            break
        found.append(_to_json(each, within))
    return found


def _read_fields(value: object) -> Mapping[object, object] | None:
    """What an object says that it holds: a model of pydantic's, or a dataclass."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return {name: getattr(value, name, None) for name in names}
    dump = getattr(value, "model_dump", None)
    if dump is None:
        return None
    try:
        dumped: object = dump(mode="json", warnings=False, fallback=short_repr)
    except Exception:  # noqa: BLE001 - a model that cannot be dumped is told by its repr
        return None
    return cast("Mapping[object, object]", dumped) if isinstance(dumped, Mapping) else None


def short_repr(value: object) -> str:
    """An object by its `repr`, cut to a glance."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a repr is the program's own, and may fail
        text = f"<{type(value).__name__}>"
    return _to_json_text(text[:VALUE_CHARACTERS])


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
    "InvalidOutput": "invalid_output",
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
        "message": _error_message(error),
        "category": failure_category(error) or "agent_error",
    }


def failure_category(error: BaseException) -> str | None:
    """The first category that the error, or one behind it, is known by."""
    for each in _error_chain(error):
        category = _category_by_status(each) or _category_by_name(each)
        if category is not None:
            return category
    return None


def _error_chain(error: BaseException) -> Iterator[BaseException]:
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


def _category_by_status(error: BaseException) -> str | None:
    status = getattr(error, "status_code", None)
    if type(status) is not int:
        return None
    if status == _RATE:
        return "rate_limited"
    if status in _KEYS:
        return "unauthorized"
    return "provider_unavailable" if status >= _SERVER else None


def _category_by_name(error: BaseException) -> str | None:
    return next(
        (_NAMES[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _NAMES), None
    )


def _error_message(error: BaseException) -> str:
    """The error's own words."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the words are the program's own, and may fail
        text = short_repr(error)
    return text or type(error).__name__
