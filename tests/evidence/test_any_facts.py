"""Whatever facts say, they can be packed, verified, derived again and checked."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from factwire.evidence import CaseProblem, check_cases, open_pack, read_cases, verify_pack
from factwire.facts import KNOWN_CLASSES, Fact
from tests.evidence.sample_packs import pack_facts
from tests.projection.fact_maker import FactMaker

KEYS = (
    *("kind", "status", "title", "verdict", "result", "summary", "path", "decision", "model"),
    *("toolCallId", "tool_call_id", "actionId", "reviewId", "evidenceRefs", "artifactRefs"),
    *("testRunId", "commandId", "patchId", "diffRef", "args", "assertions", "messageId", "delta"),
    *("text", "subagentId", "childThreadId", "queuedTurns", "totalCostUsd", "inputTokens"),
)
IDS = ("turnId", "toolCallId", "actionId", "taskId", "subagentId", "artifactId", "evidenceId")


def value(chosen: Random, depth: int = 2) -> Any:
    kinds: list[Any] = [None, True, 0, -1, 1.5, 2**53, "", "x", "replay", "verification", "a/b~c"]
    if depth and chosen.random() < 0.3:
        inside = [value(chosen, depth - 1) for _ in range(chosen.randint(0, 3))]
        return inside if chosen.random() < 0.5 else {f"k{at}": it for at, it in enumerate(inside)}
    return chosen.choice(kinds)


def any_facts(seed: int) -> list[Fact]:
    chosen = Random(seed)
    classes = [*sorted(KNOWN_CLASSES), "nobody.knows"]
    tell, facts = FactMaker(first=chosen.randint(1, 5)), list[Fact]()
    for _ in range(40):
        payload = {key: value(chosen) for key in chosen.sample(KEYS, 6)}
        ids = {name: chosen.choice("abc") for name in chosen.sample(IDS, 3)}
        tell.next += chosen.choice((0, 0, 0, 0, 1))
        facts.append(tell(chosen.choice(classes), payload=payload, **ids))
    return facts


@pytest.mark.fuzz
@pytest.mark.requirement("evidence.pack.facts")
def test_whatever_facts_say_their_pack_verifies(tmp_path: Path):
    path = tmp_path / "p.zip"
    for seed in range(150):
        facts = any_facts(seed)
        pack_facts(path, facts)
        report = verify_pack(path)
        assert (report.findings, report.derived_again) == ((), True), seed
        with open_pack(path) as pack:
            assert sum(1 for _ in pack.facts()) == len(facts)
            try:
                cases = read_cases(pack)
            except CaseProblem:
                continue
            assert all(result.found for result in check_cases(pack.facts(), cases, kept=False))
