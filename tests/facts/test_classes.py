"""One row defines a class: everything that looks something up by class knows it from there."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import factwire
from factwire.facts.classes.class_tables import KNOWN_CLASSES, join_classes, join_families
from factwire.facts.classes.specification import Family, row
from factwire.projection.reducers import _BY_CLASS, _BY_FAMILY

ROW = """    row("tool.paused", "tool tool_call waiting tool_ui transcript", "tool.progress",
        move=uses("tool", "tool_paused_without_start")),
"""
BEFORE = '    row("tool.result",'

LOOK = """
from factwire.facts import (
    KNOWN_CLASSES, PAYLOAD_TYPES, VIOLATION_CODES, Fact, class_issues, kind_of, to_ui_events, verify
)
from factwire.facts.schemas import schema_files
from factwire.projection import Projection
from factwire.runtime import GateRefused, Gates

def build(**fields):
    return Fact(
        id="f1", kind="tool", status="pending", title="Paused", sequence=1,
        event_class="tool.paused", created_at="2026-06-10T00:00:00Z", schema_version="1",
        runtime_id="r", thread_id="t", turn_id="u", **fields,
    )

paused = build(tool_call_id="c")
assert class_issues(paused) == []
assert [issue.code for issue in class_issues(build())] == ["missing_scope_id"]
wrong = build(tool_call_id="c", payload={"toolName": 5})
assert [issue.code for issue in class_issues(wrong)] == ["schema_mismatch"]
assert [violation.code for violation in verify([paused])] == ["tool_paused_without_start"]
assert "tool_paused_without_start" in VIOLATION_CODES
try:
    Gates().feed(paused)
except GateRefused as refused:
    assert refused.code == "tool_not_open"
else:
    raise AssertionError("the gates do not know it")
assert kind_of("tool.paused") == "tool"
assert [event.event_class for event in to_ui_events(paused)] == ["tool.progress"]
files = schema_files()
assert '"tool.paused": ToolCallPayload;' in files["factwire.d.ts"]
assert "tool.paused" in files["fact.schema.json"]
assert "tool.paused" in files["runtime-event.schema.json"]
projection = Projection()
projection.apply(paused)
assert [entry.event_class for entry in projection.state.timeline] == ["tool.paused"]
"""


def test_a_new_class_is_one_row(tmp_path: Path):
    source = Path(factwire.__file__).parent
    ignore = shutil.ignore_patterns("__pycache__", "workbench", "cli", "edge", "sources")
    shutil.copytree(source, tmp_path / "factwire", ignore=ignore)
    table = tmp_path / "factwire/facts/classes/runtime_classes.py"
    text = table.read_text()
    assert text.count(BEFORE) == 1
    table.write_text(text.replace(BEFORE, ROW + BEFORE))
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{LOOK}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_class_says_what_it_changes_on_screen():
    missing = [
        name
        for name in KNOWN_CLASSES
        if name not in _BY_CLASS and name.partition(".")[0] not in _BY_FAMILY
    ]
    assert missing == []


FAMILIES = {"a": Family("a")}
ROW_OF_A = row("a.b", "runtime run unknown unknown snapshot")


def test_a_class_has_one_row():
    again = row("a.b", "runtime run failed unknown snapshot")
    with pytest.raises(ValueError, match=r"a\.b: this class has two rows"):
        join_classes([ROW_OF_A, again], FAMILIES)


def test_a_class_is_of_a_declared_family():
    with pytest.raises(ValueError, match="no family 'a' is declared"):
        join_classes([ROW_OF_A], {})


def test_a_family_is_declared_once():
    with pytest.raises(ValueError, match="a: this family is declared twice"):
        join_families([Family("a"), Family("a", kind="tool")])
