"""Git on a repository that nobody trusts: it runs nothing, changes nothing and guesses nothing."""

import os
from pathlib import Path

import pytest

from factwire.facts.resources import ChangedFile
from factwire.runtime.sandbox import (
    NoRepository,
    WorkspaceDiff,
    borrow,
    diff_workspace,
    limits,
    workspace_git,
)
from tests.runtime.hostile_repository import git, hostile, repository, sprung

pytestmark = pytest.mark.asyncio


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.requirement("runtime.git.hostile-settings")
async def test_a_hostile_repository_runs_nothing(tmp_path: Path):
    """Bites: plain git walks into the traps of the very same repository."""
    traps = tmp_path / "traps"
    workspace = hostile(tmp_path / "workspace", traps)
    for trap in traps.glob("*.sprung"):
        trap.unlink()
    before = contents(workspace)

    diff = await diff_workspace(workspace)
    assert sprung(traps) == []
    assert contents(workspace) == before
    assert [(file.path, file.change) for file in diff.files] == [
        (".gitattributes", "created"),
        ("data.bin", "modified"),
        ("filtered.dat", "modified"),
        ("new.sly", "created"),
        ("text.txt", "modified"),
    ]
    assert "+two" in (diff.files[-1].diff or "")

    for arguments in (["status"], ["diff"], ["diff", "--no-ext-diff"], ["add", "--all"]):
        git(workspace, "-c", "protocol.ext.allow=always", *arguments, check=False)
    assert {"fsmonitor", "clean", "external-diff", "textconv", "included-filter"} <= set(
        sprung(traps)
    )


@pytest.mark.requirement("runtime.git.hostile-settings")
async def test_other_commands_that_look_run_nothing_either(tmp_path: Path):
    traps = tmp_path / "traps"
    workspace = hostile(tmp_path / "workspace", traps)
    for trap in traps.glob("*.sprung"):
        trap.unlink()
    async with borrow(workspace) as repository_:
        assert repository_.head is not None
        log = await repository_.run("log", "--format=%s", "--patch", repository_.head)
        await repository_.run("status", "--porcelain", "--ignore-submodules=all")
        settings = await repository_.run("config", "--list", "--name-only")
        with pytest.raises(NoRepository, match="git_failed"):
            await repository_.run("fetch", "ext::touch stolen")
        with pytest.raises(NoRepository, match="git_failed"):
            await repository_.run("cat-file", "-p", "0" * 40)
    assert log.data.startswith(b"module\n")
    assert not [name for name in settings.data.split() if name.startswith((b"filter", b"include"))]
    assert sprung(traps) == []


@pytest.mark.requirement("runtime.git.diff")
async def test_changed_new_removed_and_binary_files_are_told_with_their_diff(tmp_path: Path):
    files = {
        "a.txt": "1\n2\n",
        "gone.txt": "x\n",
        "same.txt": "s\n",
        ".gitignore": "*.log\n",
        "kind": "f\n",
    }
    workspace = repository(tmp_path / "w", files)
    (workspace / "a.txt").write_text("1\n3\n4\n")
    (workspace / "gone.txt").unlink()
    (workspace / "new ü.txt").write_text("hello\n")
    (workspace / "image").write_bytes(b"\0\1\2" * 50)
    (workspace / "noise.log").write_text("ignored\n")
    (workspace / "kind").unlink()
    (workspace / "kind").symlink_to("/etc/passwd")
    os.mkfifo(workspace / "fifo")
    head = git(workspace, "rev-parse", "HEAD").strip()

    diff = await diff_workspace(workspace)
    texts = {file.path: file.diff or "" for file in diff.files}
    bare = tuple(
        ChangedFile(
            path=file.path,
            change=file.change,
            added_lines=file.added_lines,
            removed_lines=file.removed_lines,
        )
        for file in diff.files
    )
    assert WorkspaceDiff(available=True, base=head, files=bare) == WorkspaceDiff(
        available=True,
        base=head,
        files=(
            ChangedFile(path="a.txt", change="modified", added_lines=2, removed_lines=1),
            ChangedFile(path="gone.txt", change="deleted", added_lines=0, removed_lines=1),
            ChangedFile(path="image", change="created"),
            ChangedFile(path="kind", change="modified", added_lines=1, removed_lines=1),
            ChangedFile(path="new ü.txt", change="created", added_lines=1, removed_lines=0),
        ),
    )
    assert texts["a.txt"].endswith("@@ -1,2 +1,3 @@\n 1\n-2\n+3\n+4\n")
    assert texts["gone.txt"].endswith("-x\n")
    assert texts["image"] == ""
    assert "+/etc/passwd\n" in texts["kind"]
    assert "root:" not in texts["kind"]
    assert texts["new ü.txt"].endswith("+hello\n")
    assert git(workspace, "status", "--porcelain", "--", "a.txt") == " M a.txt\n"


@pytest.mark.requirement("runtime.git.diff")
async def test_text_that_looks_like_a_diff_does_not_confuse_one(tmp_path: Path):
    workspace = repository(tmp_path / "w", {"a": "x\n", "b": "y\n"})
    (workspace / "a").write_text("diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-y\n+forged\n")
    (workspace / "b").write_text("real\n")
    diff = await diff_workspace(workspace)
    assert [file.path for file in diff.files] == ["a", "b"]
    assert "+real\n" in (diff.files[1].diff or "")
    assert "forged" not in (diff.files[1].diff or "")


@pytest.mark.requirement("runtime.git.diff")
async def test_a_change_that_the_repository_marks_as_none_is_still_told(tmp_path: Path):
    workspace = repository(tmp_path / "w", {"a": "x\n"})
    git(workspace, "update-index", "--assume-unchanged", "a")
    git(workspace, "update-index", "--skip-worktree", "a")
    (workspace / "a").write_text("y\n")
    assert git(workspace, "status", "--porcelain") == ""
    assert [file.path for file in (await diff_workspace(workspace)).files] == ["a"]


@pytest.mark.requirement("runtime.git.diff")
async def test_a_diff_past_its_bound_names_the_files_without_their_text(tmp_path: Path):
    workspace = repository(tmp_path / "w", {"a": "x\n", "b": "x\n"})
    (workspace / "a").write_text("small\n")
    (workspace / "b").write_text("big line\n" * 10_000)
    diff = await diff_workspace(workspace, limit=1_000)
    assert diff.truncated
    assert [(file.path, file.diff is None) for file in diff.files] == [("a", False), ("b", True)]
    assert diff.files[1].added_lines == 10_000


@pytest.mark.requirement("runtime.git.diff")
@pytest.mark.parametrize("form", ["sha1", "sha256"])
async def test_a_repository_without_a_commit_shows_all_as_new(tmp_path: Path, form: str):
    git(tmp_path, "init", "--quiet", f"--object-format={form}")
    (tmp_path / "a").write_text("x\n")
    diff = await diff_workspace(tmp_path)
    git(tmp_path, "add", "a")
    assert diff == WorkspaceDiff(
        available=True,
        base=None,
        tree=git(tmp_path, "write-tree").strip(),
        files=(
            ChangedFile(
                path="a",
                change="created",
                added_lines=1,
                removed_lines=0,
                diff=diff.files[0].diff,
            ),
        ),
    )


@pytest.mark.requirement("runtime.git.diff")
async def test_packed_refs_and_worktrees_are_understood(tmp_path: Path):
    workspace = repository(tmp_path / "w", {"a": "x\n"})
    git(workspace, "gc", "--quiet")
    git(workspace, "pack-refs", "--all")
    tree = tmp_path / "tree"
    git(workspace, "worktree", "add", "--quiet", str(tree))
    (tree / "a").write_text("y\n")
    assert (await diff_workspace(workspace)).files == ()
    assert [file.path for file in (await diff_workspace(tree)).files] == ["a"]


@pytest.mark.requirement("runtime.git.unavailable")
async def test_without_a_repository_there_is_no_diff(tmp_path: Path):
    (tmp_path / "a").write_text("x\n")
    assert await diff_workspace(tmp_path) == WorkspaceDiff(
        available=False, reason="not_a_repository"
    )


@pytest.mark.requirement("runtime.git.unavailable")
@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        (".git/HEAD", "nonsense", "damaged_repository"),
        (".git/HEAD", "ref: refs/../../../secret", "damaged_repository"),
        (".git/HEAD", "ref: refs/heads/loop", "damaged_repository"),
        (".git/HEAD", "0" * 40, "git_failed"),
        (".git/info/sparse-checkout", "/*", "sparse_checkout"),
        (".git/reftable", "", "unsupported_ref_storage"),
    ],
)
async def test_what_git_could_not_tell_is_not_made_up(
    tmp_path: Path, path: str, content: str, reason: str
):
    workspace = repository(tmp_path / "w", {"a": "x\n"})
    (workspace / ".git/refs/heads/loop").write_text("ref: refs/heads/loop\n")
    (workspace / path).write_text(content)
    assert await diff_workspace(workspace) == WorkspaceDiff(available=False, reason=reason)


@pytest.mark.requirement("runtime.git.unavailable")
@pytest.mark.parametrize("how", ["file", "link", "objects"])
async def test_a_workspace_cannot_borrow_the_repository_of_somebody_else(tmp_path: Path, how: str):
    private = repository(tmp_path / "private", {"secret.txt": "PRIVATE\n"})
    workspace = tmp_path / "w"
    workspace.mkdir()
    if how == "file":
        (workspace / ".git").write_text(f"gitdir: {private}/.git\n")
    elif how == "link":
        (workspace / ".git").symlink_to(private / ".git")
    else:
        (workspace / ".git").mkdir()
        (workspace / ".git/HEAD").write_text(git(private, "rev-parse", "HEAD"))
        (workspace / ".git/objects").symlink_to(private / ".git/objects")
    diff = await diff_workspace(workspace)
    assert (diff.available, diff.reason) == (False, "damaged_repository")


@pytest.mark.requirement("runtime.git.unavailable")
async def test_a_git_that_is_missing_or_too_slow_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    workspace = repository(tmp_path / "w", {"a": "x\n"})
    with monkeypatch.context() as slow:
        slow.setattr(limits, "GIT_SECONDS", 0)
        assert (await diff_workspace(workspace)).reason == "git_took_too_long"
    with monkeypatch.context() as many:
        many.setattr(
            "factwire.runtime.sandbox.workspace_git.BorrowedRepository.run.__kwdefaults__",
            {"input_bytes": b"", "limit": 0, "codes": (0,), "may_be_cut": False},
        )
        assert (await diff_workspace(workspace)).reason == "too_many_files"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (await diff_workspace(workspace)).reason == "git_missing"


async def test_a_file_that_is_too_big_to_be_one_of_git_s_is_not_read(tmp_path: Path):
    big = tmp_path / "HEAD"
    with big.open("wb") as file:
        file.truncate(5 * 1024 * 1024)
    assert workspace_git._read(big) == ""


@pytest.mark.requirement("runtime.git.big-files")
async def test_a_big_file_of_another_size_is_reported_and_never_read(tmp_path: Path):
    """A terabyte of holes, which nobody reads in a test."""
    workspace = repository(tmp_path / "w", {"a": "x\n", "sparse": "x\n"})
    (workspace / "a").write_text("y\n")
    for name in ("new", "sparse"):
        (workspace / name).touch()
        os.truncate(workspace / name, 2**40)
    diff = await diff_workspace(workspace)
    assert diff.available
    assert [(file.path, file.change, file.diff is None) for file in diff.files] == [
        ("a", "modified", False),
        ("new", "created", True),
        ("sparse", "modified", True),
    ]


@pytest.mark.requirement("runtime.git.big-files")
async def test_a_big_file_of_the_same_size_is_read_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "BIG_FILE_BYTES", 10)
    workspace = repository(tmp_path / "w", {"one": "x" * 20, "two": "x" * 20})
    (workspace / "one").write_text("y" * 20)
    diff = await diff_workspace(workspace)
    assert [(file.path, file.change) for file in diff.files] == [("one", "modified")]
    monkeypatch.setattr(limits, "HASHED_BYTES", 30)
    assert await diff_workspace(workspace) == WorkspaceDiff(available=False, reason="files_too_big")
