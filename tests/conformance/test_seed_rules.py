"""Every rule of the seeds is kept by something that is tested, or says why it is not."""

import re
from collections import Counter
from pathlib import Path

import pytest

from factwire.conformance.requirements import KNOWN_GAPS, REQUIREMENTS
from factwire.conformance.suite_requirements import SEED_REQUIREMENTS
from tests.conformance.seed_rules import SEED_RULES, SeedRule
from tests.conformance.test_requirements import proven

ID = re.compile(r"S00[0-3]-[A-Z]+-\d\d")

SECTIONS = {
    "S000": "FAM 11 ENV 8 TURN 8 TOOL 9 REF 3 TEAM 7 SNAP 4 VAL 5 BND 4",
    "S001": "OUT 11 ADP 10 EXE 10 API 5 SRC 7 ACC 5 FIX 12 SUB 3",
    "S002": "ADP 8 PRO 11 MAP 25 PROJ 13 ID 27 MISS 5 ACC 12",
    "S003": "PART 14 FIN 3 IN 4 WRK 2 NOT 4",
}
"""How many rules each section of a seed states; a row that goes missing is noticed."""

ABOUT_THE_SUITE = {
    *("seed.fixtures.current", "seed.fixtures.expected", "seed.fixtures.bite", "seed.rules"),
    *("seed.scenarios.complete", "seed.scenarios.exact", "seed.reducers.program"),
    "seed.provider.retry",
}
"""Requirements of the suite itself, and the one minimum that only the specification states."""

every_rule = pytest.mark.parametrize("rule", SEED_RULES, ids=lambda rule: rule.id)


@every_rule
@pytest.mark.requirement("seed.rules")
def test_a_rule_is_kept_by_requirements_that_have_tests_or_says_why_not(rule: SeedRule):
    assert bool(rule.covered_by) != bool(rule.aside)
    assert [name for name in rule.covered_by if name not in REQUIREMENTS] == []
    assert [name for name in rule.covered_by if name not in proven()] == []
    assert not set(rule.covered_by) & set(KNOWN_GAPS)


@every_rule
def test_a_rule_has_an_id_a_source_and_words(rule: SeedRule):
    assert ID.fullmatch(rule.id)
    assert rule.source.startswith(f"seed {rule.id[1:4]}, ")
    for words in (rule.text, rule.aside, rule.gap):
        assert words is None or (words[0].isupper() and words.endswith("."))
    assert len(set(rule.covered_by)) == len(rule.covered_by)


@pytest.mark.requirement("seed.rules")
def test_no_rule_is_stated_twice():
    assert [
        name for name, times in Counter(rule.id for rule in SEED_RULES).items() if times > 1
    ] == []
    texts = Counter((rule.id[:4], rule.text) for rule in SEED_RULES)
    assert [text for text, times in texts.items() if times > 1] == []


@pytest.mark.requirement("seed.rules")
def test_every_section_states_as_many_rules_as_its_seed():
    for seed, stated in SECTIONS.items():
        counted = Counter(rule.id.split("-")[1] for rule in SEED_RULES if rule.id.startswith(seed))
        assert " ".join(f"{name} {count}" for name, count in counted.items()) == stated
    assert {rule.id[:4] for rule in SEED_RULES} == set(SECTIONS)


@pytest.mark.requirement("seed.rules")
def test_every_requirement_of_the_seeds_is_asked_for_by_a_rule():
    covered = {name for rule in SEED_RULES for name in rule.covered_by}
    own = {requirement.id for requirement in SEED_REQUIREMENTS}
    assert own - covered == ABOUT_THE_SUITE


def test_the_page_about_fixtures_says_what_does_not_wholly_hold_yet():
    docs = Path(__file__).resolve().parents[2] / "docs"
    page = (docs / "conformance-fixtures.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| S00")]
    assert rows == [f"| {r.id} | {r.text} | {r.gap} |" for r in SEED_RULES if r.gap]
