"""Minting: how a runtime makes facts.

The one place in a runtime where ids and times come from. Ids are ULIDs, so that they sort by the
time they were made at; the time is only told, it orders nothing.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from ulid import ULID

from factwire.facts import Fact, kind_of, status_of

SCHEMA_VERSION: Final = "factwire-fact/v1"


class FactScope(msgspec.Struct, frozen=True, kw_only=True):
    """Whose facts these are: the ids that every fact of a turn, task or subagent carries."""

    session_id: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    turn_id: str | None = None
    step_id: str | None = None
    task_id: str | None = None
    parent_task_id: str | None = None
    agent_id: str | None = None
    subagent_id: str | None = None
    parent_thread_id: str | None = None
    project_id: str | None = None
    trace_id: str | None = None

    def within(self, **ids: str | None) -> "FactScope":
        """The same scope, narrowed by these ids."""
        return msgspec.structs.replace(self, **ids)


def utc_now() -> str:
    """The time as facts state it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id(prefix: str) -> str:
    """A fresh id: `prefix_` and a ULID."""
    return f"{prefix}_{ULID()}"


def run_of(turn_id: str) -> str:
    """The run that a turn is: `trn_X` is `run_X`, any other has `run_` before it."""
    return f"run_{turn_id.removeprefix('trn_')}"


class Mint:
    """Makes the facts of one runtime. Clock and ids can be replaced, so that a run can be repeated
    exactly.
    """

    def __init__(
        self,
        runtime_id: str,
        *,
        clock: Callable[[], str] = utc_now,
        ids: Callable[[str], str] = new_id,
    ) -> None:
        self.runtime_id = runtime_id
        self.clock = clock
        self.ids = ids

    def fact(
        self,
        scope: FactScope,
        event_class: str,
        payload: dict[str, Any] | None = None,
        **fields: Any,
    ) -> Fact:
        """A fact of this class in this scope; `fields` are further fields of `Fact`."""
        return msgspec.structs.replace(
            _template(scope, event_class),
            id=self.ids("evt"),
            created_at=self.clock(),
            runtime_id=self.runtime_id,
            payload=payload or {},
            **fields,
        )


@lru_cache(maxsize=1_024)
def _template(scope: FactScope, event_class: str) -> Fact:
    """A fact of a class in a scope, without what is its own; to copy it is much quicker than to
    make it.
    """
    common = {**_of_class(event_class), **_of_scope(scope)}
    return Fact(id="", created_at="", runtime_id="", **common)  # pyright: ignore[reportArgumentType] - all of them are texts


def _of_class(event_class: str) -> dict[str, str]:
    """What all facts of a class have in common."""
    return {
        "kind": kind_of(event_class),
        "status": status_of(event_class),
        "title": event_class,
        "schema_version": SCHEMA_VERSION,
        "event_class": event_class,
    }


def _of_scope(scope: FactScope) -> dict[str, str]:
    """What all facts of a scope have in common."""
    ids = msgspec.structs.asdict(scope)
    return {name: value for name, value in ids.items() if value is not None}
