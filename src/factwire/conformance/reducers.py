"""Reducers: whatever makes a state document of facts, in this process or in a program of its own.

Expectations are written against the JSON of a state, so that an implementation in any language can
be held to them. Facts go in as shape A, maybe on top of a read model, maybe followed by a newer
one; one JSON document comes out.
"""

import subprocess
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, Final, Protocol, cast

import msgspec

from factwire.conformance.case import Projector, factwire_projector
from factwire.conformance.errors import ConformanceError
from factwire.conformance.limits import CASE_SECONDS
from factwire.facts import read_fact
from factwire.projection import encode_state, read_thread_model

Wire = dict[str, Any]
Reducer = Callable[[Sequence[Wire], Wire | None], Wire]
"""Facts in the order in which they arrive, maybe after a read model, to a state document. One that
has a third parameter is given a newer read model in it, which comes after the facts.
"""

_SHOWN: Final = 400
_WITHOUT_REPAIR: Final = 2


class _Repairing(Protocol):
    """A projector or a reducer that takes a newer read model behind the facts."""

    def __call__(self, facts: Any, model: Any, repair: Any, /) -> Any: ...


class BrokenReducer(ConformanceError):
    """A program that should reduce facts did not answer with a state document."""

    code = "broken_reducer"


class NoRepair(BrokenReducer):
    """A reducer that has no place for a read model behind the facts."""

    code = "no_repair"


def to_reducer(projector: Projector) -> Reducer:
    """A projector of Python objects, as a reducer of documents."""

    def reduce(events: Sequence[Wire], model: Wire | None, repair: Wire | None = None) -> Wire:
        facts = [read_fact(event, "facts") for event in events]
        known = None if model is None else read_thread_model(model)
        if repair is None:
            state = projector(facts, known)
        else:
            state = reduce_with_repair(projector, facts, known, read_thread_model(repair))
        return msgspec.json.decode(encode_state(state))

    return reduce


def reduce_with_repair(reduce: Callable[..., Any], facts: Any, model: Any, repair: Any) -> Any:
    """What comes of facts and a newer read model behind them; an error where it cannot be given."""
    if len(signature(reduce).parameters) <= _WITHOUT_REPAIR:
        raise NoRepair("expected a third parameter, for a read model that comes after facts")
    return cast("_Repairing", reduce)(facts, model, repair)


factwire_reducer: Final = to_reducer(factwire_projector)
"""Factwire's own projection."""


def program_reducer(command: Sequence[str], seconds: float = CASE_SECONDS) -> Reducer:
    """A program that reads `{"events": […], "readModel": …, "repair": …}` and writes the state
    document.
    """

    def reduce(events: Sequence[Wire], model: Wire | None, repair: Wire | None = None) -> Wire:
        request = msgspec.json.encode({"events": events, "readModel": model, "repair": repair})
        try:
            done = subprocess.run(  # noqa: S603 - the caller's own program
                command, input=request, capture_output=True, timeout=seconds, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BrokenReducer(f"expected {command[0]} to answer: {error}") from error
        if done.returncode:
            stderr = done.stderr[-_SHOWN:].decode("utf-8", "replace")
            raise BrokenReducer(
                f"expected {command[0]} to succeed, got {done.returncode}: {stderr}"
            )
        return _decode_document(done.stdout)

    return reduce


def _decode_document(text: bytes) -> Wire:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise BrokenReducer(f"expected a state document on standard output: {error}") from error
    if not isinstance(found, dict):
        raise BrokenReducer(f"expected a state document, got {type(found).__name__}")
    return cast("Wire", found)
