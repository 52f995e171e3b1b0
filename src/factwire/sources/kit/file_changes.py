"""Changes of files as unified diffs, from whatever an agent states of them.

Agents state a change as texts before and after, as hunks without a header, as the text of a new
file, or as a diff of their own. A page shows one form, so a source brings each into it here.
Nothing is guessed: where an agent states neither texts nor lines, there is no diff.
"""

import re
from typing import Any, Final

from factwire.facts.json_values import list_at, objects_of
from factwire.runtime.toolbox.workspace_files import FileRevision, build_diff
from factwire.sources.kit.fact_builder import FactBuilder

_HUNK: Final = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", re.MULTILINE)
_NO_FILE: Final = "/dev/null"


def add_file_change(
    builder: FactBuilder,
    path: str,
    change: str,
    diff: str | None,
    *,
    call_id: str | None = None,
    subagent_id: str | None = None,
    **extra_fields: Any,
) -> None:
    """A file was changed. What a call made of it is a version, so that the diff of each call stays
    with it.
    """
    payload: dict[str, Any] = {"path": path, "change": change, "diff": diff or None}
    if diff:
        added, removed = count_changed_lines(diff)
        payload |= {"addedLines": added, "removedLines": removed, "versionId": call_id}
    ids = {"tool_call_id": call_id, "artifact_id": f"file:{path}"}
    if subagent_id is None:
        builder.add_fact("file.changed", payload | extra_fields, **ids)
    else:
        builder.add_subagent_fact(subagent_id, "file.changed", payload | extra_fields, **ids)


def diff_texts(path: str, before: str | None, after: str | None) -> str:
    """The diff of two texts of a file; None stands for no file."""
    if after is None:
        return _join_header(path, "deleted", _removal(before or ""))
    revision = FileRevision(path=_header_path(path), before=before, after=after)
    return build_diff(revision).text


def diff_hunks(path: str, change: str, hunks: object) -> str | None:
    """The diff of hunks as the JavaScript library `diff` has them: numbers, and marked lines."""
    pieces: list[str] = []
    for hunk in objects_of(hunks):
        lines = [line for line in list_at(hunk.get("lines")) or () if isinstance(line, str)]
        ranges = [_whole(hunk, name) for name in ("oldStart", "oldLines", "newStart", "newLines")]
        pieces.append("@@ -{},{} +{},{} @@\n".format(*ranges))
        pieces.extend(f"{line}\n" for line in lines)
    return _join_header(path, change, "".join(pieces)) if pieces else None


def complete_diff(
    path: str, change: str, diff: str | None, moved_to: str | None = None
) -> str | None:
    """A diff with the header that an agent leaves out, or None for a text without a hunk."""
    if not diff or not _HUNK.search(diff):
        return None
    if _HUNK.match(diff) is None:
        return diff
    return _join_header(path, change, diff if diff.endswith("\n") else f"{diff}\n", moved_to)


def count_changed_lines(diff: str) -> tuple[int, int]:
    """How many lines a unified diff adds and removes, by the lengths that its hunks state."""
    added = removed = old = new = 0
    for line in diff.split("\n"):
        if old <= 0 and new <= 0:
            match = _HUNK.match(line)
            old, new = (int(count or 1) for count in match.groups()) if match else (0, 0)
        elif line.startswith("+"):
            added, new = added + 1, new - 1
        elif line.startswith("-"):
            removed, old = removed + 1, old - 1
        elif not line.startswith("\\"):
            old, new = old - 1, new - 1
    return added, removed


def _join_header(path: str, change: str, hunks: str, moved_to: str | None = None) -> str:
    old = _NO_FILE if change == "created" else f"a/{_header_path(path)}"
    new = _NO_FILE if change == "deleted" else f"b/{_header_path(moved_to or path)}"
    return f"--- {old}\n+++ {new}\n{hunks}" if hunks else ""


def _removal(text: str) -> str:
    """A hunk that removes every line of a text."""
    lines = text.split("\n")
    end = "" if lines[-1] == "" else "\n\\ No newline at end of file"
    if not end:
        lines.pop()
    removed = "\n".join(f"-{line}" for line in lines)
    return f"@@ -1,{len(lines)} +0,0 @@\n{removed}{end}\n" if lines else ""


def _header_path(path: str) -> str:
    return path.lstrip("/").replace("\n", " ")


def _whole(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    return value if type(value) is int and value >= 0 else 0
