"""What a command changed in its workspace: told with diffs where small, and never at any price."""

from pathlib import Path

import pytest

from factwire.runtime.policy import Policy
from factwire.runtime.toolbox import run_tool
from factwire.runtime.toolbox.run_tool import changes, look_at_workspace
from factwire.runtime.toolbox.workspace_files import WorkspaceFiles
from tests.runtime.toolboxes import FREE, Kept, Used, use

pytestmark = pytest.mark.requirement("runtime.toolbox.run-changes")


def changes_of(used: Used) -> dict[str, str]:
    return {
        fact.payload["path"]: fact.payload["change"] for fact in used.facts_of_class("file.changed")
    }


@pytest.mark.asyncio
async def test_files_that_a_command_changed_are_told_with_their_diffs(tmp_path: Path):
    kept = Kept(tmp_path, Policy.of("acceptEdits", allow=["Bash"]))
    for name in ("kept", "changed", "gone"):
        (kept.workspace / name).write_text(f"{name}\n")
    (kept.workspace / "work.sh").write_text(
        "echo new > made; echo more >> changed; rm gone; mkdir -p deep/er; echo x > deep/er/file\n"
        "touch kept; mkdir node_modules; echo x > node_modules/passed-over\n"
    )
    used = await use(kept, ("run", {"command": ["sh", "work.sh"]}))

    assert changes_of(used) == {
        "made": "created",
        "changed": "modified",
        "gone": "deleted",
        "deep/er/file": "created",
    }
    facts = {fact.payload["path"]: fact for fact in used.facts_of_class("file.changed")}
    diff = (await kept.content(facts["changed"].payload["diffRef"])).decode()
    assert diff == "--- a/changed\n+++ b/changed\n@@ -1 +1,2 @@\n changed\n+more\n"
    assert await kept.content(facts["made"].payload["contentRef"]) == b"new\n"
    assert (facts["gone"].payload["removedLines"], "contentRef" in facts["gone"].payload) == (
        1,
        False,
    )
    assert used.outcome.data["changedFiles"] == 4
    assert used.state.coding.files["changed"].added_lines == 1


@pytest.mark.asyncio
async def test_the_content_of_a_file_that_may_not_be_read_is_not_kept(tmp_path: Path):
    policy = Policy.of("acceptEdits", allow=["Bash"], deny=["Read(hidden)"])
    kept = Kept(tmp_path, policy)
    (kept.workspace / "work.sh").write_text("echo private > hidden\n")
    used = await use(kept, ("run", {"command": ["sh", "work.sh"]}))

    [fact] = used.facts_of_class("file.changed")
    assert fact.payload["path"] == "hidden"
    assert {"contentRef", "diffRef"}.isdisjoint(fact.payload)


@pytest.mark.asyncio
async def test_a_workspace_with_too_many_files_is_not_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run_tool, "WATCHED_FILES", 20)
    kept = Kept(tmp_path, FREE)
    for number in range(30):
        (kept.workspace / f"file{number}").touch()
    used = await use(kept, ("run", {"command": ["touch", "made"]}))

    assert changes_of(used) == {}
    assert used.outcome.data["filesWatched"] is False


@pytest.mark.asyncio
async def test_of_many_changes_only_so_many_are_told_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run_tool, "CHANGED_FILES", 3)
    kept = Kept(tmp_path, FREE)
    names = [f"f{number}" for number in range(10)]
    used = await use(kept, ("run", {"command": ["touch", *names]}))

    assert len(changes_of(used)) == 3
    assert used.outcome.data["changedFiles"] == 10


def test_links_are_not_followed_and_big_files_have_no_text(tmp_path: Path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("x")
    (inside / "link").symlink_to(outside)
    (inside / "alias").symlink_to(outside / "secret")
    (inside / "big").write_text("x" * 70_000)
    (inside / "bytes").write_bytes(b"\0\1")
    files = WorkspaceFiles(inside)
    before = look_at_workspace(files, keep=True)
    (outside / "secret").write_text("changed")
    (inside / "big").write_text("y" * 70_001)
    (inside / "bytes").write_bytes(b"\0\2\3")
    after = look_at_workspace(files, keep=False)

    assert before is not None
    assert after is not None
    assert set(before.marks) == {"big", "bytes"}
    assert before.texts == {}
    found = changes(files, before, after)
    assert [(each.path, each.kind, each.diff) for each in found] == [
        ("big", "modified", None),
        ("bytes", "modified", None),
    ]


def test_what_the_runtime_writes_itself_is_no_work_of_a_command(tmp_path: Path):
    (tmp_path / "data").mkdir()
    files, own = WorkspaceFiles(tmp_path), (f"{tmp_path}/data/", f"{tmp_path}/runs.db")
    before = look_at_workspace(files, own, keep=True)
    for name in ("data/log", "runs.db", "runs.db-wal", "runs-of-others", "database"):
        (tmp_path / name).write_text(name)
    after = look_at_workspace(files, own, keep=False)

    assert before is not None
    assert after is not None
    assert [each.path for each in changes(files, before, after)] == ["database", "runs-of-others"]
