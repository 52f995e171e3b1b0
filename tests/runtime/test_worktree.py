"""A worktree of a repository that nobody trusts: real to git, and made without running anything."""

import os
from pathlib import Path
from unittest.mock import patch

import pytest

from factwire.runtime.sandbox import (
    WorktreeUnavailable,
    add_worktree,
    diff_workspace,
    remove_worktree,
    workspace_git,
)
from tests.runtime.hostile_repository import git, hostile, repository, sprung

pytestmark = pytest.mark.asyncio


@pytest.mark.requirement("runtime.worktree.real")
@pytest.mark.parametrize("form", ["sha1", "sha256"])
async def test_a_worktree_begins_as_the_last_commit_and_is_one_to_git(tmp_path: Path, form: str):
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "--quiet", "--initial-branch=main", f"--object-format={form}")
    repository(source, {"a.txt": "1\n", "deep/run.sh": "#!/bin/sh\n"})
    (source / "deep/run.sh").chmod(0o755)
    (source / "link").symlink_to("a.txt")
    git(source, "add", "--all")
    git(source, "commit", "--quiet", "--message=second")
    (source / "a.txt").write_text("not committed\n")

    made = await add_worktree(source, tmp_path / "trees" / "run_1")

    tree = Path(made.path)
    assert made.repository == str(source)
    assert made.base == git(source, "rev-parse", "HEAD").strip()
    assert (tree / "a.txt").read_text() == "1\n"
    assert os.access(tree / "deep/run.sh", os.X_OK)
    assert (tree / "link").readlink() == Path("a.txt")
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "rev-parse", "HEAD").strip() == made.base
    assert str(tree) in git(source, "worktree", "list")
    assert git(source, "fsck", "--no-progress") == ""


@pytest.mark.requirement("runtime.worktree.diff")
async def test_the_diff_of_a_worktree_is_what_was_done_there_commits_included(tmp_path: Path):
    source = repository(tmp_path / "source", {"a.txt": "1\n", "b.txt": "1\n", "c.txt": "1\n"})
    made = await add_worktree(source, tmp_path / "tree")
    tree = Path(made.path)
    (tree / "a.txt").write_text("2\n")
    git(tree, "commit", "--quiet", "--all", "--message=by the agent")
    (tree / "new.txt").write_text("new\n")
    (tree / "b.txt").unlink()
    (source / "c.txt").write_text("somebody else's\n")
    git(source, "commit", "--quiet", "--all", "--message=meanwhile")

    found = await diff_workspace(tree, repository=made.repository, base=made.base)

    assert found.base == made.base
    assert {file.path: file.change for file in found.files} == {
        "a.txt": "modified",
        "b.txt": "deleted",
        "new.txt": "created",
    }


@pytest.mark.requirement("runtime.worktree.diff")
async def test_a_worktree_that_was_turned_against_its_diff_does_not_lead_it_astray(tmp_path: Path):
    """What the agent makes of `.git` in its own folder is not looked at."""
    private = repository(tmp_path / "private", {"secret.txt": "PRIVATE\n"})
    source = repository(tmp_path / "source", {"a.txt": "1\n"})
    made = await add_worktree(source, tmp_path / "tree")
    tree = Path(made.path)
    (tree / "a.txt").write_text("2\n")
    (tree / ".git").unlink()
    (tree / ".git").symlink_to(private / ".git")
    found = await diff_workspace(tree, repository=made.repository, base=made.base)
    assert [(file.path, file.change) for file in found.files] == [("a.txt", "modified")]


@pytest.mark.fault
@pytest.mark.requirement("runtime.worktree.hostile")
async def test_a_hostile_repository_runs_nothing_while_a_worktree_is_made_and_looked_at(
    tmp_path: Path,
):
    traps = tmp_path / "traps"
    source = hostile(tmp_path / "source", traps)
    commit(source)
    made = await add_worktree(source, tmp_path / "tree")
    (Path(made.path) / "text.txt").write_text("three\n")
    found = await diff_workspace(made.path, repository=made.repository, base=made.base)
    await remove_worktree(source, Path(made.path))
    assert [file.path for file in found.files] == ["text.txt"]
    assert sprung(traps) == []


@pytest.mark.fault
@pytest.mark.requirement("runtime.worktree.hostile")
async def test_plain_git_would_have_sprung_the_traps(tmp_path: Path):
    traps = tmp_path / "traps"
    source = hostile(tmp_path / "source", traps)
    commit(source)
    for mark in traps.glob("*.sprung"):
        mark.unlink()
    git(source, "worktree", "add", "--quiet", str(tmp_path / "tree"), check=False)
    assert {"hook-post-checkout", "smudge"} <= set(sprung(traps))


def commit(source: Path) -> None:
    """Bring the attributes that name filters into the last commit, without running those."""
    calm = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    off = ("-c", "filter.evil.clean=", "-c", "filter.evil.required=false")
    git(source, *calm, *off, "add", ".gitattributes", "text.txt", "filtered.dat")
    git(source, *calm, *off, "commit", "--quiet", "--message=attributes")


@pytest.mark.requirement("runtime.worktree.unavailable")
async def test_what_is_no_repository_with_a_commit_has_no_worktree(tmp_path: Path):
    plain, empty = tmp_path / "plain", tmp_path / "empty"
    plain.mkdir()
    empty.mkdir()
    git(empty, "init", "--quiet")
    for source, reason in ((plain, "not_a_repository"), (empty, "no_commit")):
        with pytest.raises(WorktreeUnavailable) as caught:
            await add_worktree(source, tmp_path / "tree")
        assert (caught.value.code, caught.value.reason) == ("worktree_unavailable", reason)
        assert not (tmp_path / "tree").exists()


@pytest.mark.requirement("runtime.worktree.unavailable")
async def test_a_folder_that_is_there_already_is_left_as_it_is(tmp_path: Path):
    source = repository(tmp_path / "source", {"a.txt": "1\n"})
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "mine").write_text("mine")
    with pytest.raises(WorktreeUnavailable) as caught:
        await add_worktree(source, tmp_path / "tree")
    assert caught.value.reason == "folder_exists"
    assert (tmp_path / "tree" / "mine").read_text() == "mine"


@pytest.mark.fault
@pytest.mark.requirement("runtime.worktree.hostile")
@pytest.mark.parametrize("link", ["worktrees", "worktrees/tree"])
async def test_a_link_in_the_repository_leads_nothing_elsewhere(tmp_path: Path, link: str):
    source = repository(tmp_path / "source", {"a.txt": "1\n"})
    outside = tmp_path / "outside"
    outside.mkdir()
    (source / ".git" / link).parent.mkdir(exist_ok=True)
    (source / ".git" / link).symlink_to(outside)
    with pytest.raises(WorktreeUnavailable) as caught:
        await add_worktree(source, tmp_path / "tree")
    assert caught.value.reason == "not_writable"
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "tree").exists()


@pytest.mark.requirement("runtime.worktree.removed")
async def test_a_worktree_that_is_removed_leaves_nothing_and_others_alone(tmp_path: Path):
    source = repository(tmp_path / "source", {"a.txt": "1\n"})
    first = await add_worktree(source, tmp_path / "one")
    second = await add_worktree(source, tmp_path / "two")
    git(source, "worktree", "add", "--quiet", str(tmp_path / "elsewhere" / "three"))
    await remove_worktree(source, Path(first.path))
    await remove_worktree(source, Path(first.path))
    await remove_worktree(source, tmp_path / "three")
    listed = git(source, "worktree", "list", "--porcelain")
    assert "one" not in listed
    assert second.path in listed
    assert "three" in listed
    assert not (tmp_path / "one").exists()


@pytest.mark.requirement("runtime.worktree.removed")
async def test_a_folder_that_was_locked_goes_with_its_worktree_and_what_a_link_names_stays(
    tmp_path: Path,
):
    source = repository(tmp_path / "source", {"a.txt": "1\n"})
    made = await add_worktree(source, tmp_path / "tree")
    outside = tmp_path / "outside"
    outside.mkdir(0o500)
    locked = tmp_path / "tree" / "store" / "package"
    locked.mkdir(parents=True)
    (locked / "file").write_text("x")
    (tmp_path / "tree" / "store" / "link").symlink_to(outside)
    locked.chmod(0o500)
    await remove_worktree(source, Path(made.path))
    assert not (tmp_path / "tree").exists()
    assert outside.stat().st_mode & 0o777 == 0o500


@pytest.mark.fault
@pytest.mark.requirement("runtime.git.unavailable")
@pytest.mark.parametrize("protected", [True, False])
async def test_a_made_up_worktree_cannot_borrow_the_repository_of_somebody_else(
    tmp_path: Path, protected: bool
):
    private = repository(tmp_path / "private", {"secret.txt": "PRIVATE\n"})
    workspace = tmp_path / "w"
    (workspace / "made-up").mkdir(parents=True)
    (workspace / ".git").write_text("gitdir: made-up\n")
    (workspace / "made-up/gitdir").write_text(f"{workspace}/.git\n")
    (workspace / "made-up/commondir").write_text(f"{private}/.git\n")
    (workspace / "made-up/HEAD").write_text("ref: refs/heads/main\n")
    if protected:
        found = await diff_workspace(workspace)
        assert (found.available, found.reason) == (False, "damaged_repository")
    else:
        with patch.object(workspace_git, "_common_folder", return_value=private / ".git"):
            found = await diff_workspace(workspace)
        assert "-PRIVATE\n" in (found.files[-1].diff or "")


@pytest.mark.fault
@pytest.mark.requirement("runtime.worktree.hostile")
async def test_with_the_repository_s_own_settings_the_checkout_runs_programs(tmp_path: Path):
    """The same way of making a worktree, with settings taken over, is what we keep from."""
    traps = tmp_path / "traps"
    source = hostile(tmp_path / "source", traps)
    commit(source)
    for mark in traps.glob("*.sprung"):
        mark.unlink()
    careless = (source / ".git/config").read_text()
    with patch.object(workspace_git, "_as_config", return_value=careless):
        await add_worktree(source, tmp_path / "tree")
    assert "smudge" in sprung(traps)
