"""Merging a worktree into a branch: what moves, what stays, and what a kill leaves to be done."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factwire.runtime.sandbox import (
    BorrowedRepository,
    GitOutput,
    MergeAuthor,
    MergeConflicts,
    MergePlan,
    MergeRefused,
    MergeUnfinished,
    NoRepository,
    Worktree,
    add_worktree,
    complete_merge,
    merge_worktree,
    worktree_merge,
)
from factwire.runtime.sandbox.workspace_git import find_layout
from tests.runtime.hostile_repository import git, hostile, repository, sprung

pytestmark = pytest.mark.asyncio

FILES = {"a.txt": "1\n2\n3\n4\n5\n6\n", "b.txt": "b\n", "gone.txt": "x\n", "deep/c.txt": "c\n"}
AUTHOR = MergeAuthor(name="Ada <x>\n", email="ada@example.org", at=1_700_000_000)


async def begin(folder: Path) -> tuple[Path, Worktree]:
    """A repository, and a worktree of it in which something was changed."""
    made = repository(folder / "repository", FILES)
    worktree = await add_worktree(made, folder / "worktree")
    place = Path(worktree.path)
    (place / "a.txt").write_text("1\n2\n3\n4\n5\nsix\n")
    (place / "gone.txt").unlink()
    (place / "deep/new.txt").write_text("new\n")
    (place / "fresh").mkdir()
    (place / "fresh/d.txt").write_text("d\n")
    return made, worktree


async def keep_nothing(_: MergePlan) -> None:
    return


async def merge(worktree: Worktree, into: str | None = None) -> MergePlan | MergeConflicts:
    return await merge_worktree(worktree, into, AUTHOR, "Do it", keep_nothing)


def show(folder: Path) -> dict[str, str]:
    names = git(folder, "ls-files").split()
    return {name: (folder / name).read_text() for name in names}


AFTER = {
    "a.txt": "1\n2\n3\n4\n5\nsix\n",
    "b.txt": "b\n",
    "deep/c.txt": "c\n",
    "deep/new.txt": "new\n",
    "fresh/d.txt": "d\n",
}


@pytest.mark.requirement("edge.worktree.merge")
async def test_a_branch_that_is_shown_moves_with_its_files_and_stays_clean(tmp_path: Path):
    made, worktree = await begin(tmp_path)
    plan = await merge(worktree)
    assert isinstance(plan, MergePlan)
    assert (plan.branch, plan.before) == ("main", worktree.base)
    assert git(made, "rev-parse", "main").strip() == plan.after
    assert git(made, "status", "--porcelain") == ""
    assert show(made) == AFTER
    assert not (made / "gone.txt").exists()
    assert git(made, "log", "-1", "--format=%an|%ae|%at|%s|%P") == (
        f"Ada x|ada@example.org|1700000000|Do it|{worktree.base}\n"
    )
    for name in ("main", "HEAD"):
        assert git(made, "reflog", "-1", "--format=%H|%gn|%gs", name) == (
            f"{plan.after}|Ada x|merge: by Factwire\n"
        )
    git(made, "fsck", "--strict")
    assert not list((made / ".git").glob("factwire-*"))


@pytest.mark.requirement("edge.worktree.merge")
async def test_a_branch_that_went_on_gets_a_merge_and_one_that_is_not_shown_moves_alone(
    tmp_path: Path,
):
    made, worktree = await begin(tmp_path)
    git(made, "branch", "side/one")
    (made / "b.txt").write_text("bee\n")
    git(made, "commit", "-aqm", "more")
    head = git(made, "rev-parse", "HEAD").strip()
    aside = await merge(worktree, "side/one")
    assert isinstance(aside, MergePlan)
    assert not aside.checked_out
    assert git(made, "rev-parse", "HEAD", "side/one").split() == [head, aside.after]
    assert git(made, "status", "--porcelain") == ""
    plan = await merge(worktree)
    assert isinstance(plan, MergePlan)
    assert git(made, "log", "-1", "--format=%P").split() == [head, aside.after]
    assert show(made) == {**AFTER, "b.txt": "bee\n"}
    assert git(made, "status", "--porcelain") == ""


@pytest.mark.requirement("edge.worktree.conflicts")
async def test_conflicts_name_the_files_and_change_nothing(tmp_path: Path):
    made, worktree = await begin(tmp_path)
    (made / "a.txt").write_text("1\n2\n3\n4\n5\nseven\n")
    (made / "gone.txt").write_text("kept\n")
    git(made, "commit", "-aqm", "other")
    before = git(made, "rev-parse", "HEAD"), show(made)
    found = await merge(worktree)
    assert found == MergeConflicts(branch="main", files=("a.txt", "gone.txt"))
    assert (git(made, "rev-parse", "HEAD"), show(made)) == before
    assert git(made, "status", "--porcelain") == ""


def leave_unstaged(made: Path) -> None:
    (made / "b.txt").write_text("mine\n")


def leave_staged(made: Path) -> None:
    (made / "b.txt").write_text("mine\n")
    git(made, "add", "b.txt")
    (made / "b.txt").write_text("b\n")


def leave_in_the_way(made: Path) -> None:
    (made / "deep/new.txt").write_text("mine\n")


def leave_in_the_way_of_a_folder(made: Path) -> None:
    (made / "fresh").write_text("mine\n")


def leave_unfinished(made: Path) -> None:
    (made / ".git/MERGE_HEAD").write_text("0\n")


def leave_locked(made: Path) -> None:
    (made / ".git/index.lock").write_text("")


def leave_branch_locked(made: Path) -> None:
    (made / ".git/refs/heads/main.lock").write_text("")


@pytest.mark.requirement("edge.worktree.conflicts")
@pytest.mark.parametrize(
    ("leave", "code"),
    [
        (leave_unstaged, "merge_target_dirty"),
        (leave_staged, "merge_target_dirty"),
        (leave_in_the_way, "merge_target_dirty"),
        (leave_in_the_way_of_a_folder, "merge_target_dirty"),
        (leave_unfinished, "merge_target_dirty"),
        (leave_locked, "merge_target_busy"),
        (leave_branch_locked, "merge_target_busy"),
    ],
)
async def test_a_target_that_is_not_clean_is_refused_and_left(
    tmp_path: Path, leave: Callable[[Path], None], code: str
):
    made, worktree = await begin(tmp_path)
    leave(made)
    status = git(made, "status", "--porcelain")
    with pytest.raises(MergeRefused) as refused:
        await merge(worktree)
    assert refused.value.code == code
    assert git(made, "rev-parse", "main").strip() == worktree.base
    assert git(made, "status", "--porcelain") == status
    assert not list((made / ".git").glob("factwire-*"))


@pytest.mark.requirement("edge.worktree.conflicts")
async def test_a_branch_that_is_none_or_shown_elsewhere_is_refused(tmp_path: Path):
    made, worktree = await begin(tmp_path)
    git(made, "branch", "other")
    git(made, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(made, "worktree", "add", "-q", str(tmp_path / "elsewhere"), "other")
    for name, code in {
        "none": "merge_target_unknown",
        "../../HEAD": "merge_target_unknown",
        "main.lock": "merge_target_unknown",
        "other": "merge_target_busy",
        "alias": "merge_target_unknown",
    }.items():
        with pytest.raises(MergeRefused) as refused:
            await merge(worktree, name)
        assert refused.value.code == code
    git(made, "checkout", "-q", "--detach")
    with pytest.raises(MergeRefused) as refused:
        await merge(worktree)
    assert refused.value.code == "merge_target_unknown"


def release_nothing(*_: object) -> None:
    return


class Killed(BaseException):
    """Stands for a kill: nothing of ours runs after it."""


@pytest.mark.requirement("edge.worktree.killed")
@pytest.mark.parametrize(
    "moment",
    ["_copy_objects", "_move_ref", "_ensure_unmoved", "_advance_files", "_replace_index"],
)
@pytest.mark.parametrize("late", [False, True])
async def test_a_merge_that_is_killed_is_whole_or_was_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, *, late: bool
):
    made, worktree = await begin(tmp_path)
    plans: list[MergePlan] = []

    async def keep(plan: MergePlan) -> None:
        plans.append(plan)

    work = getattr(worktree_merge, moment)

    def die(*arguments: object) -> object:
        if late:
            work(*arguments)
        raise Killed

    async def die_later(plan: MergePlan) -> None:
        if late:
            await work(plan)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(worktree_merge, moment, die_later if moment == "_advance_files" else die)
        patch.setattr(worktree_merge, "_release_lock", release_nothing)
        with pytest.raises(Killed):
            await merge_worktree(worktree, None, AUTHOR, "Do it", keep)
    is_done = late and moment in ("_advance_files", "_replace_index")
    assert (made / ".git/index.lock").exists() == (not is_done), "the kill left nothing to be done"
    assert (made / ".git/refs/heads/main.lock").exists() == (moment == "_ensure_unmoved")
    is_merged = await complete_merge(plans[0])
    assert is_merged == (
        moment in ("_advance_files", "_replace_index") or (moment, late) == ("_move_ref", True)
    )
    assert not list((made / ".git").glob("factwire-*"))
    assert not list((made / ".git").rglob("*.lock"))
    assert git(made, "rev-parse", "main").strip() == (
        plans[0].after if is_merged else worktree.base
    )
    assert git(made, "status", "--porcelain") == ""
    assert show(made) == (AFTER if is_merged else FILES)
    assert await complete_merge(plans[0]) == is_merged
    if not is_merged:
        assert isinstance(await merge(worktree), MergePlan)
        assert show(made) == AFTER


@pytest.mark.requirement("edge.worktree.killed")
async def test_what_somebody_changed_after_a_kill_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    made, worktree = await begin(tmp_path)

    async def die(_: MergePlan) -> None:
        raise Killed

    plans: list[MergePlan] = []

    async def keep(plan: MergePlan) -> None:
        plans.append(plan)

    with monkeypatch.context() as patch:
        patch.setattr(worktree_merge, "_advance_files", die)
        with pytest.raises(Killed):
            await merge_worktree(worktree, None, AUTHOR, "Do it", keep)
    (made / "a.txt").write_text("mine\n")
    (made / "gone.txt").write_text("mine\n")
    (made / "deep/new.txt").write_text("mine\n")
    assert await complete_merge(plans[0])
    for name in ("a.txt", "gone.txt", "deep/new.txt"):
        assert (made / name).read_text() == "mine\n"


@pytest.mark.requirement("edge.worktree.killed")
async def test_files_that_cannot_follow_are_not_told_as_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    made, worktree = await begin(tmp_path)
    plans: list[MergePlan] = []

    async def keep(plan: MergePlan) -> None:
        plans.append(plan)

    move = worktree_merge._move_ref

    def move_and_obstruct(*arguments: Any) -> None:
        move(*arguments)
        (made / "fresh").write_text("mine\n")

    with monkeypatch.context() as patch:
        patch.setattr(worktree_merge, "_move_ref", move_and_obstruct)
        with pytest.raises(MergeUnfinished):
            await merge_worktree(worktree, None, AUTHOR, "Do it", keep)
    with pytest.raises(MergeUnfinished):
        await complete_merge(plans[0])
    assert (made / "fresh").read_text() == "mine\n"
    (made / "fresh").unlink()
    assert await complete_merge(plans[0])
    assert show(made) == AFTER
    assert git(made, "status", "--porcelain") == ""


@pytest.mark.requirement("edge.worktree.merge")
async def test_a_folder_may_take_the_place_of_a_file(tmp_path: Path):
    made, worktree = await begin(tmp_path)
    place = Path(worktree.path)
    (place / "b.txt").unlink()
    (place / "b.txt").mkdir()
    (place / "b.txt/inner").write_text("inner\n")
    assert isinstance(await merge(worktree), MergePlan)
    assert (made / "b.txt/inner").read_text() == "inner\n"
    assert git(made, "status", "--porcelain") == ""


@pytest.mark.requirement("edge.worktree.killed")
async def test_what_is_left_of_a_lock_of_ours_is_in_nobody_s_way(tmp_path: Path):
    made, worktree = await begin(tmp_path)
    layout = find_layout(made)

    async def leave(plan: MergePlan) -> None:
        for own, lock in (
            worktree_merge._name_index_lock(layout, plan),
            worktree_merge._name_ref_lock(layout, plan),
        ):
            own.write_text("")
            lock.hardlink_to(own)

    assert isinstance(await merge_worktree(worktree, None, AUTHOR, "Do it", leave), MergePlan)
    assert show(made) == AFTER
    assert not list((made / ".git").glob("factwire-*"))


@pytest.mark.requirement("edge.worktree.conflicts")
async def test_a_listing_that_is_too_long_is_no_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    made, worktree = await begin(tmp_path)
    run = BorrowedRepository.run

    async def run_with_little_room(git: Any, *arguments: str, **more: Any) -> GitOutput:
        if arguments[0] == "diff-tree":
            more["limit"] = 4
        return await run(git, *arguments, **more)

    monkeypatch.setattr(BorrowedRepository, "run", run_with_little_room)
    with pytest.raises(NoRepository) as refused:
        await merge(worktree)
    assert refused.value.reason == "too_many_files"
    assert git(made, "rev-parse", "main").strip() == worktree.base


@pytest.mark.requirement("edge.worktree.merge")
async def test_a_hostile_repository_runs_nothing_while_it_is_merged_into(tmp_path: Path):
    traps = tmp_path / "traps"
    made = hostile(tmp_path / "repository", traps)
    for found in traps.glob("*.sprung"):
        found.unlink()
    worktree = await add_worktree(made, tmp_path / "worktree")
    (Path(worktree.path) / "text.txt").write_text("two\n")
    with pytest.raises(MergeRefused):
        await merge(worktree)
    # The files as they were committed, without any git in between.
    for name, text in {"text.txt": "one\n", "data.bin": "1\n", "filtered.dat": "1\n"}.items():
        (made / name).write_text(text)
    assert isinstance(await merge(worktree), MergePlan)
    assert (made / "text.txt").read_text() == "two\n"
    assert sprung(traps) == []
