"""Boundary rules of the seeds: facts and states know no components and no provider."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest

import factwire.projection
from factwire.facts import Fact
from factwire.projection import ProjectionState

FOLDER = Path(factwire.projection.__file__).parent
COMPONENTS = re.compile(
    r"component|props|jsx|html|css|style|class[_]?name|children|render|callback|on[_]?click"
    r"|collapsed|expanded|focus|selected|tab\b",
    re.IGNORECASE,
)


def names(kind: object, seen: set[object]) -> Iterator[str]:
    """Every field name of a type and of all types in it."""
    if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct):
        for inner in get_args(kind):
            yield from names(inner, seen)
    elif kind not in seen:
        seen.add(kind)
        for field in msgspec.structs.fields(kind):
            yield field.name
            yield from names(field.type, seen)


@pytest.mark.requirement("seed.boundary.no-components")
@pytest.mark.parametrize("kind", [Fact, ProjectionState])
def test_neither_facts_nor_states_have_a_place_for_components(kind: type):
    found = set(names(kind, set()))
    assert len(found) > 50
    assert [name for name in found if COMPONENTS.search(name)] == []


def list_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.requirement("seed.boundary.imports")
def test_a_projection_imports_facts_and_nothing_of_any_provider():
    allowed = ("factwire.facts", "factwire.projection", "msgspec")
    found = {name for path in FOLDER.rglob("*.py") for name in list_imports(path)}
    others = {
        name
        for name in found
        if not name.startswith(allowed) and name.partition(".")[0] not in sys.stdlib_module_names
    }
    assert others == set()
