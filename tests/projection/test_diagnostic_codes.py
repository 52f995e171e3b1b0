"""Every remark of a projection has a code that is listed, and every listed code is used."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import factwire.projection
from factwire.projection import DIAGNOSTIC_CODES, DiagnosticCode

FOLDER = Path(factwire.projection.__file__).parent


def texts(node: ast.AST) -> set[str]:
    return {
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }


def find_remark_codes(function: ast.FunctionDef) -> Iterator[set[str]]:
    """The codes of each `remark(…)` in a function: written there, or in what it is assigned."""
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name(id="add_remark"), args=[_, _, ast.Name(id=name), *_]):
                yield set[str]().union(
                    *(
                        texts(choice)
                        for assignment in ast.walk(function)
                        if isinstance(assignment, ast.Assign)
                        and name in {ast.unparse(target) for target in assignment.targets}
                        for choice in outcomes(assignment.value)
                    )
                )
            case ast.Call(func=ast.Name(id="add_remark"), args=[_, _, code, *_]):
                yield texts(code)
            case _:
                pass


def outcomes(value: ast.expr) -> list[ast.expr]:
    return [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]


def all_remarks() -> list[set[str]]:
    trees = [ast.parse(path.read_text("utf-8")) for path in sorted(FOLDER.rglob("*.py"))]
    functions = (
        node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    )
    return [codes for function in functions for codes in find_remark_codes(function)]


@pytest.mark.requirement("projection.diagnostics.codes")
def test_every_remark_has_a_listed_code():
    remarks = all_remarks()
    assert all(remarks)
    assert set[str]().union(*remarks) == set(DIAGNOSTIC_CODES)


@pytest.mark.requirement("projection.diagnostics.codes")
def test_every_code_has_its_sentence():
    assert tuple(DIAGNOSTIC_CODES) == get_args(DiagnosticCode)
    assert all(DIAGNOSTIC_CODES.values())
