"""Merging what a run changed: what is begun is brought to its end, and nothing else is told."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from factwire.edge.operations.run_changes import report_changes
from factwire.edge.operations.run_operations import find_run
from factwire.runtime.sandbox import limits, worktree_merge
from tests.edge.edges import RunningEdge, running_edge
from tests.edge.test_paths_worktrees import place_of, run_change, with_repository
from tests.runtime.hostile_repository import git
from tests.runtime.test_worktree_merge import Killed, release_nothing

pytestmark = pytest.mark.asyncio

SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" * 2


async def merge(edge: RunningEdge, run: dict[str, Any], **body: Any) -> httpx.Response:
    return await edge.http.post(f"/v1/runs/{run['runId']}:merge", json=body)


def tell(answer: httpx.Response) -> tuple[int, str]:
    found = answer.json()
    return answer.status_code, found.get("code") or found["status"]


@pytest.mark.requirement("edge.worktree.killed")
async def test_a_merge_whose_files_cannot_follow_is_finished_by_whoever_asks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    configuration = with_repository(tmp_path)
    workspace = tmp_path / "workspace"
    lock = workspace / ".git/index.lock"
    move = worktree_merge._move_ref

    def move_and_lose_a_folder(*arguments: Any) -> None:
        move(*arguments)
        (workspace / ".git/objects").rename(workspace / ".git/lost")

    async with running_edge(tmp_path, configuration=configuration) as edge:
        run = await run_change(edge, worktree=True)
        with monkeypatch.context() as patch:
            patch.setattr(worktree_merge, "_move_ref", move_and_lose_a_folder)
            assert tell(await merge(edge, run)) == (409, "merge_unfinished")
        (workspace / ".git/lost").rename(workspace / ".git/objects")
        head = git(workspace, "rev-parse", "main").strip()
        notes = list(edge.machine.worktrees.glob("*.merging"))
        kept = [note.read_bytes() for note in notes]
        lock.touch()
        assert tell(await merge(edge, run)) == (409, "merge_target_busy")
    # An index that is busy keeps no Edge from starting.
    async with running_edge(tmp_path, configuration=configuration) as edge:
        assert [note.read_bytes() for note in notes] == kept
        assert (workspace / "a.txt").read_text() == "1\n"
        lock.unlink()
        merged = await merge(edge, run)
        assert tell(merged) == (200, "merged")
        assert merged.json()["commit"] == head
        assert git(workspace, "rev-parse", "main").strip() == head
        assert git(workspace, "status", "--porcelain") == ""
        assert (workspace / "a.txt").read_text() == "changed\n"
        assert not any(note.exists() for note in notes)
        assert not place_of(run).exists()
        assert (await merge(edge, run)).json() == merged.json()


@pytest.mark.requirement("edge.worktree.merge")
async def test_only_what_was_looked_at_is_merged_and_no_secret_is_in_its_message(tmp_path: Path):
    async with running_edge(tmp_path, configuration=with_repository(tmp_path)) as edge:
        run = await run_change(edge, worktree=True)
        tree = (await edge.get(f"/v1/runs/{run['runId']}/diff"))["tree"]
        late = place_of(run) / "late.txt"
        late.write_text("unseen\n")
        assert tell(await merge(edge, run, tree=tree)) == (409, "work_changed")
        late.unlink()
        message = f"Use {SECRET} there"
        assert tell(await merge(edge, run, tree=tree, message=message)) == (200, "merged")
        text = git(tmp_path / "workspace", "log", "-1", "--format=%B")
        assert text == f"Use [redacted] there\n\nRun: {run['runId']}\n\n"
        assert git(tmp_path / "workspace", "rev-parse", "main^{tree}").strip() == tree


@pytest.mark.requirement("edge.worktree.run")
async def test_that_nothing_was_changed_is_recorded_and_that_git_could_not_tell_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with running_edge(tmp_path, configuration=with_repository(tmp_path)) as edge:
        started = await edge.start("echo nothing", agent="shell", worktree=True)
        done = await edge.allow_all(started["runId"])
        run = find_run(edge.machine, done["runId"])
        with monkeypatch.context() as patch:
            patch.setattr(limits, "GIT_SECONDS", 0)
            unknown, _ = await report_changes(edge.machine, run)
        assert (unknown.available, unknown.reason) == (False, "git_took_too_long")
        assert unknown.describe_absence() == "git could not tell (git_took_too_long)"
        nothing, diff = await report_changes(edge.machine, run)
        assert (nothing.available, nothing.file_count, nothing.diff_ref) == (True, 0, None)
        assert diff == ""
        (place_of(done) / "late.txt").write_text("late\n")
        assert await report_changes(edge.machine, run) == (nothing, "")


@pytest.mark.requirement("edge.worktree.killed")
async def test_locks_of_a_merge_that_was_killed_keep_no_other_run_from_merging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    configuration = with_repository(tmp_path)
    workspace = tmp_path / "workspace"

    def die(*_: object) -> None:
        raise Killed

    async with running_edge(tmp_path, configuration=configuration) as edge:
        killed = await run_change(edge, worktree=True)
        other = await run_change(edge, worktree=True)
        with monkeypatch.context() as patch:
            patch.setattr(worktree_merge, "_ensure_unmoved", die)
            patch.setattr(worktree_merge, "_release_lock", release_nothing)
            assert (await merge(edge, killed)).status_code == 500
    locks = {path.name for path in (workspace / ".git").rglob("*.lock")}
    assert locks == {"index.lock", "main.lock"}
    async with running_edge(tmp_path, configuration=configuration) as edge:
        assert tell(await merge(edge, other)) == (200, "merged")
    assert not list((workspace / ".git").rglob("*.lock"))
