"""Refs: what is named by a fact can be reached from the screen.

A ref is all that is left of something big; a screen that loses it has lost the thing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from factwire.conformance.case import Finding, broken
from factwire.conformance.screens.differences import plain
from factwire.facts import REF_KINDS, Fact
from factwire.projection import ProjectionState

_OWN: Final = re.compile(rf"(?:{'|'.join(REF_KINDS)}):sha256:[0-9a-f]{{64}}")

_SAID: Final = ("turn.submitted", "model.")
_REPLACING: Final = frozenset({"messages.snapshot", "history.rollback.completed"})
_TAKING_BACK: Final = frozenset({"messages", "retractedMessageIds", "supersedes"})


def refs_of(fact: Fact) -> Iterator[tuple[str, str]]:
    """Every ref that a fact states, with its path: in its lists, and in the payload under names
    that end in `ref` or `refs`.
    """
    lists = {
        "refIds": fact.ref_ids,
        "artifactRefs": fact.artifact_refs,
        "evidenceRefs": fact.evidence_refs,
    }
    for name, refs in lists.items():
        yield from ((ref, f"$.{name}[{index}]") for index, ref in enumerate(refs))
    yield from _in_payload(fact.payload, "$.payload")


def lost_refs(facts: Sequence[Fact], state: ProjectionState) -> Iterator[Finding]:
    """Refs that facts state and a state does not. Notes about output are about other facts; what a
    gap holds back, and what was said in messages that were taken back since, is not lost.
    """
    shown = frozenset(_strings(plain(state)))
    told: set[str] = set()
    replaced = max((place for place, fact in enumerate(facts) if _takes_back(fact)), default=-1)
    for place, fact in enumerate(facts):
        is_said = place < replaced and (fact.event_class or "").startswith(_SAID)
        if is_said or _is_held(fact, state) or (fact.event_class or "").startswith("output."):
            continue
        for ref, path in refs_of(fact):
            if ref not in shown and ref not in told:
                told.add(ref)
                message = f"{ref[:120]} is nowhere on the screen"
                yield broken("screen.refs", message, level="projection", fact=fact, path=path)


def _takes_back(fact: Fact) -> bool:
    """Whether a fact can replace messages, or take some back."""
    return fact.event_class in _REPLACING or not _TAKING_BACK.isdisjoint(fact.payload)


def _is_held(fact: Fact, state: ProjectionState) -> bool:
    cursor, own = state.hydration.cursor, fact.thread_id in (None, state.thread_id)
    return own and None not in (fact.sequence, cursor) and (fact.sequence or 0) > (cursor or 0)


def own_refs(facts: Sequence[Fact]) -> Iterator[str]:
    """Refs of Factwire's own form, each once: what they name must be kept somewhere."""
    told: set[str] = set()
    for fact in facts:
        for ref, _ in refs_of(fact):
            if ref not in told and _OWN.fullmatch(ref):
                told.add(ref)
                yield ref


def _in_payload(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _in_payload(item, f"{path}[{index}]")
    if not isinstance(value, Mapping):
        return
    for key, item in cast("Mapping[str, Any]", value).items():
        here = f"{path}.{key}"
        if key.lower().endswith(("ref", "refs")):
            yield from _named(item, here)
        else:
            yield from _in_payload(item, here)


def _named(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and value:
        yield value, path
    elif isinstance(value, Mapping):
        yield from _named(cast("Mapping[str, Any]", value).get("ref"), f"{path}.ref")
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _named(item, f"{path}[{index}]")


def _strings(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            waiting += cast("list[object]", item)
        elif isinstance(item, dict):
            fields = cast("dict[str, object]", item)
            yield from fields
            waiting += fields.values()
