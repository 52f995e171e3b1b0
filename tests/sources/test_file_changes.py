"""Changes of files: whatever form an agent states them in, facts and screen have a unified diff."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import Fact, plan_spill
from factwire.projection import ProjectionState, project
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.kit.file_changes import (
    add_file_change,
    complete_diff,
    count_changed_lines,
    diff_hunks,
    diff_texts,
)
from tests.sources.recordings import FOLDER, facts_of
from tests.sources.streams import facts_from

A, NOTES = "/home/dev/project/a.txt", "/home/dev/project/notes.md"
EDITED = "--- a{0}\n+++ b{0}\n@@ -1{1} +1{1} @@\n-one\n+two\n"
WHOLE = "--- a{0}\n+++ b{0}\n@@ -1,2 +1,2 @@\n # Notes\n-one\n+two\n"
NO_END = "\\ No newline at end of file\n"
OPENCODE = f"Index: {NOTES}\n{'=' * 67}\n--- {NOTES}\n+++ {NOTES}\n"

RECORDED: list[tuple[str, dict[str, list[str]]]] = [
    (
        "claude-code/edit.jsonl",
        {
            A: [EDITED.format(A, ",1")],
            NOTES: [f"--- /dev/null\n+++ b{NOTES}\n@@ -0,0 +1,3 @@\n+# Notes\n+\n+first\n"],
        },
    ),
    (
        "codex-app-server/patch.jsonl",
        {
            A: [EDITED.format(A, "")],
            NOTES: [f"--- /dev/null\n+++ b{NOTES}\n@@ -0,0 +1 @@\n+# Notes\n"],
        },
    ),
    (
        "acp/edit.jsonl",
        {
            NOTES: [
                WHOLE.format(NOTES),
                f"--- a{NOTES}\n+++ b{NOTES}\n@@ -1 +1 @@\n-one\n{NO_END}+two\n{NO_END}",
            ]
        },
    ),
    (
        "acp/write.jsonl",
        {NOTES: [f"--- a{NOTES}\n+++ b{NOTES}\n@@ -0,0 +1,2 @@\n+# Notes\n+one\n"]},
    ),
    (
        "opencode/edit.sse",
        {NOTES: [f"{OPENCODE}@@ -1,2 +1,2 @@\n # Notes\n-one\n+two\n"]},
    ),
    (
        "opencode/write-allowed-always.sse",
        {NOTES: [f"{OPENCODE}@@ -0,0 +1,2 @@\n+# Notes\n+one\n"]},
    ),
    ("codex-exec/patch.jsonl", {}),
]


def shown_diffs(state: ProjectionState) -> dict[str, list[str]]:
    """The diffs that the page can show of each file, oldest first."""
    found: dict[str, list[str]] = {}
    for made in state.artifacts.values():
        diffs = [made.diff, *(version.diff for version in made.versions)]
        if made.path is not None and any(diffs):
            found[made.path] = [diff for diff in diffs if diff]
    return found


@pytest.mark.requirement("sources.diffs")
@pytest.mark.parametrize(("name", "expected"), RECORDED, ids=[name for name, _ in RECORDED])
def test_a_recorded_change_is_a_unified_diff_on_the_screen(
    name: str, expected: dict[str, list[str]]
):
    state = project(facts_of(FOLDER / name))
    assert shown_diffs(state) == expected
    for path, diffs in expected.items():
        assert state.coding.files[path].diff == diffs[-1]


def changed_by_claude(**result: Any) -> list[str]:
    """The diffs of an edit whose result Claude Code states like this."""
    call: dict[str, Any] = {"type": "tool_use", "id": "call", "name": "Edit", "input": {}}
    message: dict[str, Any] = {"id": "m", "role": "assistant", "model": "model", "content": [call]}
    answer = {"type": "tool_result", "tool_use_id": "call", "content": "done"}
    facts = facts_from(
        "claude-code",
        {"type": "assistant", "session_id": "s", "message": message},
        {
            "type": "user",
            "session_id": "s",
            "message": {"role": "user", "content": [answer]},
            "tool_use_result": {"filePath": "a", **result},
        },
    )
    return shown_diffs(project(facts)).get("a", [])


HUNKS = [
    {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 2, "lines": ["-a", "+b", "+c"]},
    {"oldStart": 9, "oldLines": 2, "newStart": 10, "newLines": 1, "lines": [" x", "-y"]},
]
HEADER = "--- a/a\n+++ b/a\n"


@pytest.mark.requirement("sources.diffs")
@pytest.mark.parametrize(
    ("result", "diffs"),
    [
        (
            {"structuredPatch": HUNKS},
            [f"{HEADER}@@ -1,1 +1,2 @@\n-a\n+b\n+c\n@@ -9,2 +10,1 @@\n x\n-y\n"],
        ),
        (
            {"oldString": "a", "newString": "b", "originalFile": "a\nc\na\n"},
            [f"{HEADER}@@ -1,3 +1,3 @@\n-a\n+b\n c\n a\n"],
        ),
        (
            {"oldString": "a", "newString": "b", "originalFile": "a\na\n", "replaceAll": True},
            [f"{HEADER}@@ -1,2 +1,2 @@\n-a\n-a\n+b\n+b\n"],
        ),
        (
            {"oldString": "a\n", "newString": "b\n"},
            [f"{HEADER}@@ -1 +1 @@\n-a\n+b\n"],
        ),
        (
            {"structuredPatch": [], "content": "b\n", "originalFile": "a\n", "type": "update"},
            [f"{HEADER}@@ -1 +1 @@\n-a\n+b\n"],
        ),
        ({"structuredPatch": [], "content": "b\n", "originalFile": None, "type": "update"}, []),
        ({"structuredPatch": [], "content": "a\n", "originalFile": "a\n"}, []),
        ({"structuredPatch": "odd"}, []),
    ],
)
def test_an_edit_of_claude_code_has_a_diff_from_what_its_result_states(
    result: dict[str, Any], diffs: list[str]
):
    assert changed_by_claude(**result) == diffs


@pytest.mark.requirement("sources.diffs")
def test_each_call_that_changes_a_file_has_a_version_with_its_own_diff():
    builder = FactBuilder("agent", thread_id="thread")
    builder.begin_turn("go")
    for number, (before, after) in enumerate([("a\n", "b\n"), ("b\n", "c\n")]):
        diff = diff_texts("a", before, after)
        add_file_change(builder, "a", "modified", diff, call_id=f"call-{number}")
    add_file_change(builder, "a", "modified", None, call_id="call-2")
    state = project(builder.drain())
    versions = state.artifacts["file:a"].versions
    assert [(version.version_id, version.diff) for version in versions] == [
        ("call-0", f"{HEADER}@@ -1 +1 @@\n-a\n+b\n"),
        ("call-1", f"{HEADER}@@ -1 +1 @@\n-b\n+c\n"),
    ]
    file = state.coding.files["a"]
    assert (file.changes, file.added_lines, file.removed_lines) == (3, 2, 2)


@pytest.mark.requirement("sources.diffs")
def test_a_big_diff_is_spilled_and_its_version_has_the_ref():
    builder = FactBuilder("agent", thread_id="thread")
    builder.begin_turn("go")
    diff = diff_texts("a", None, "a line of text\n" * 5_000)
    add_file_change(builder, "a", "created", diff, call_id="call")
    facts: list[Fact] = []
    for fact in builder.drain():
        spill = plan_spill(fact)
        facts.append(spill.fact if spill else fact)
        if spill is not None:
            assert [blob.content.decode() for blob in spill.blobs] == [diff]
    [version] = project(facts).artifacts["file:a"].versions
    assert version.diff is None
    assert (version.diff_ref or "").startswith("output:sha256:")


LINES = st.lists(st.sampled_from(["a", "b", "", "- c", "+ d", "@@ -1 +1 @@", "-- e"]), max_size=12)
TEXTS = st.tuples(LINES, st.sampled_from(["", "\n"])).map(lambda pair: "\n".join(pair[0]) + pair[1])


def apply_diff(before: str, diff: str) -> str:
    """What a unified diff makes of a text."""
    old, new, at = before.split("\n"), list[str](), 0
    rows, row = diff.split("\n"), 2
    while row < len(rows) and (hunk := re.match(r"@@ -(\d+)(?:,(\d+))? \+", rows[row])):
        start, count = int(hunk[1]), int(hunk[2] or 1)
        start = start if count == 0 else start - 1
        new, at, row = [*new, *old[at:start]], start, row + 1
        while row < len(rows) and rows[row][:1] in ("+", "-", " ", "\\") and rows[row]:
            sign, text = rows[row][0], rows[row][1:]
            if sign in " -":
                assert old[at] == text
                at += 1
            if sign in " +":
                new.append(text)
            row += 1
    return "\n".join([*new, *old[at:]])


@pytest.mark.requirement("sources.diffs")
@given(TEXTS, TEXTS)
def test_a_diff_of_two_texts_makes_the_one_of_the_other(before: str, after: str):
    diff = diff_texts("a", before, after)
    assert (diff == "") is (before == after)
    if diff:
        assert apply_diff(before, diff).strip("\n") == after.strip("\n")


@pytest.mark.requirement("sources.diffs")
@given(TEXTS)
def test_a_file_that_is_new_or_gone_is_all_added_or_all_removed(text: str):
    count = len(text.removesuffix("\n").split("\n")) if text else 0
    assert count_changed_lines(diff_texts("a", None, text)) == (count, 0)
    assert count_changed_lines(diff_texts("a", text, None)) == (0, count)


@pytest.mark.requirement("sources.diffs")
def test_only_a_text_with_a_hunk_is_a_diff():
    hunk = "@@ -1 +1 @@\n-a\n+b"
    assert complete_diff("a", "modified", hunk, "c") == f"--- a/a\n+++ b/c\n{hunk}\n"
    whole = f"diff --git a/a b/a\n--- a/a\n+++ b/a\n{hunk}\n"
    assert complete_diff("a", "modified", whole) == whole
    assert [complete_diff("a", "modified", text) for text in (None, "", "+a", "a text")] == [
        None
    ] * 4
    assert diff_hunks("a", "modified", [None, 3]) is None
