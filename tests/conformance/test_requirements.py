"""Nothing is claimed without a test, and nothing is tested without a claim."""

import ast
import gc
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from factwire.conformance import KNOWN_GAPS, REQUIREMENTS
from factwire.conformance.requirements import LEVEL_OF_AREA, NOT_JUDGEABLE

TESTS = Path(__file__).resolve().parent.parent
ID = re.compile(r"[a-z]+(\.[a-z0-9_-]+)+")


def marked_ids(tree: ast.AST) -> Iterator[str]:
    """The ids in every `….mark.requirement("…")` call, wherever it stands in a file."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "requirement"
        ):
            for argument in node.args:
                assert isinstance(argument, ast.Constant), "a requirement's id is written out"
                yield str(argument.value)


@cache
def proven() -> dict[str, str]:
    """Id → one file that proves it. Read from source, so that every worker sees all tests."""
    found: dict[str, str] = {}
    for path in sorted(TESTS.rglob("*.py")):
        if "node_modules" not in path.parts:
            for name in marked_ids(parse_source(path.read_text("utf-8"))):
                found.setdefault(name, path.relative_to(TESTS).as_posix())
    return found


def parse_source(source: str) -> ast.AST:
    """A tree of some source. CPython 3.11 counts its own depth wrongly where objects that other
    tests left are collected while it makes one (a SystemError), so nothing is collected then.
    """
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.enable()


def test_every_requirement_has_a_test():
    assert sorted(set(REQUIREMENTS) - set(proven()) - set(KNOWN_GAPS)) == []


def test_every_test_proves_a_requirement_that_is_claimed():
    unknown = {name: path for name, path in proven().items() if name not in REQUIREMENTS}
    assert unknown == {}


def test_a_known_gap_is_a_requirement_with_a_reason():
    assert sorted(set(KNOWN_GAPS) - set(REQUIREMENTS)) == []
    assert all(reason.endswith(".") for reason in KNOWN_GAPS.values())


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_a_requirement_has_an_id_a_source_and_a_sentence(name: str):
    requirement = REQUIREMENTS[name]
    assert ID.fullmatch(requirement.id)
    assert requirement.id == name
    assert requirement.source
    assert requirement.sentence[0].isupper()
    assert requirement.sentence.endswith(".")


@pytest.mark.requirement("conformance.coverage")
def test_every_area_has_a_level_and_every_reason_names_tests_that_exist():
    areas = {name.partition(".")[0] for name in REQUIREMENTS}
    assert areas == set(LEVEL_OF_AREA)
    assert set(NOT_JUDGEABLE) <= areas
    for area, reason in NOT_JUDGEABLE.items():
        folders = re.findall(r"tests/(\w+)", reason)
        assert folders, area
        assert all((TESTS / folder).is_dir() for folder in folders), area


def test_no_id_is_claimed_twice():
    from factwire.conformance.requirements import _AREAS

    ids = [requirement.id for area in _AREAS for requirement in area]
    assert len(ids) == len(set(ids))


def test_marks_are_found_on_functions_classes_and_parameters():
    source = """
@pytest.mark.requirement("a.function")
def test_one(): ...

pytestmark = pytest.mark.requirement("a.module")

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.requirement("a.parameter"))])
def test_two(x): ...
"""
    assert sorted(marked_ids(ast.parse(source))) == ["a.function", "a.module", "a.parameter"]


def test_a_computed_id_is_refused():
    with pytest.raises(AssertionError, match="written out"):
        list(marked_ids(ast.parse("pytest.mark.requirement(name)")))
