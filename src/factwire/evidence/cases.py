"""The cases that a pack carries: in its facts, and added when it was exported.

A case in a fact is an `evidence.changed` of kind `replay` with `payload.assertions`. A later fact
about the same evidence replaces it.
"""

from typing import Any, cast

import msgspec

from factwire.evidence.assertions import ReplayCase, read_assertions
from factwire.evidence.errors import CaseProblem
from factwire.evidence.manifest import CASES
from factwire.evidence.reading import Pack
from factwire.facts import Fact
from factwire.projection.evidence import evidence_ids


def cases_in(pack: Pack) -> list[ReplayCase]:
    """Every case of a pack, those in facts first; raises `CaseProblem` for a malformed one."""
    found: dict[str, ReplayCase] = {}
    for fact in pack.facts():
        case = _case_of(fact)
        if case is not None:
            found.pop(case.name, None)
            found[case.name] = case
    return [*found.values(), *(_added(line) for line in pack.rows(CASES))]


def _case_of(fact: Fact) -> ReplayCase | None:
    if fact.event_class != "evidence.changed" or fact.payload.get("kind") != "replay":
        return None
    given = fact.payload.get("assertions")
    if given is None:
        return None
    where = f"fact {fact.id}"
    if not isinstance(given, list):
        raise CaseProblem("case_malformed", f"{where}: expected a list of assertions")
    name = next(iter(evidence_ids(fact)), fact.id)
    assertions = read_assertions(cast("list[Any]", given), where)
    return ReplayCase(name=name, assertions=assertions, fact_id=fact.id)


def _added(line: bytes) -> ReplayCase:
    try:
        return msgspec.json.decode(line, type=ReplayCase)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CaseProblem("case_malformed", f"{CASES}: {error}") from error
