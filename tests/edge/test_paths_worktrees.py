"""A git worktree per run, the diff that follows from it, and repositories that mean harm."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from factwire.edge.operations import worktree_operations
from factwire.runtime.configuration import Configuration, PolicySettings
from factwire.runtime.sandbox import workspace_git as git_module
from tests.edge.edges import RunningEdge, configuration_in, running_edge
from tests.runtime.hostile_repository import git, hostile, repository, sprung

pytestmark = pytest.mark.asyncio

CHANGE = "echo changed > a.txt; echo new > new.txt"


def with_repository(folder: Path, **changes: Any) -> Configuration:
    """A configuration whose workspace is a repository, and whose shell may do as it is told."""
    allowed = PolicySettings(allow=(f"Bash({CHANGE})", "Bash(echo *)"))
    configuration = configuration_in(folder, policy=allowed, **changes)
    repository(folder / "workspace", {"a.txt": "1\n", "b.txt": "1\n"})
    return configuration


async def run_change(edge: RunningEdge, **more: Any) -> dict[str, Any]:
    run = await edge.start(CHANGE, agent="shell", **more)
    return await edge.allow_all(run["runId"])


def place_of(run: dict[str, Any]) -> Path:
    return Path(run["workDir"])


def files(diff: dict[str, Any]) -> dict[str, str]:
    return {file["path"]: file["change"] for file in diff["files"]}


@pytest.mark.requirement("edge.worktree.run")
async def test_a_run_with_a_worktree_changes_nothing_else_and_its_diff_is_its_own(tmp_path: Path):
    workspace = tmp_path / "workspace"
    async with running_edge(tmp_path, configuration=with_repository(tmp_path)) as edge:
        (workspace / "b.txt").write_text("somebody is working here\n")
        run = await run_change(edge, worktree=True)
        assert run["status"] == "finished", run
        place = place_of(run)
        assert run["worktree"] == {
            "path": str(place),
            "repository": str(workspace),
            "base": git(workspace, "rev-parse", "HEAD").strip(),
        }
        assert (workspace / "a.txt").read_text() == "1\n"
        assert (place / "a.txt").read_text() == "changed\n"
        diff = await edge.get(f"/v1/runs/{run['runId']}/diff")
        assert (diff["scope"], diff["base"]) == ("run", run["worktree"]["base"])
        assert files(diff) == {"a.txt": "modified", "new.txt": "created"}
        assert str(place) in git(workspace, "worktree", "list")
        messages = await read_submissions(edge)
        assert [fact["worktree"] for fact in messages] == [run["worktree"]]


async def read_submissions(edge: RunningEdge) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    async for batch in edge.machine.journal.read():
        found += [fact.payload for _, fact in batch.facts() if fact.event_class == "turn.submitted"]
    return found


@pytest.mark.requirement("edge.worktree.run")
async def test_without_a_worktree_a_diff_says_that_it_is_the_workspace_s(tmp_path: Path):
    async with running_edge(tmp_path, configuration=with_repository(tmp_path)) as edge:
        (tmp_path / "workspace" / "b.txt").write_text("somebody else's\n")
        run = await run_change(edge)
        assert "worktree" not in run
        diff = await edge.get(f"/v1/runs/{run['runId']}/diff")
        assert diff["scope"] == "workspace"
        assert files(diff) == {"a.txt": "modified", "b.txt": "modified", "new.txt": "created"}


@pytest.mark.requirement("edge.worktree.run")
async def test_a_configuration_gives_every_run_a_worktree_that_does_not_say_otherwise(
    tmp_path: Path,
):
    configuration = with_repository(tmp_path, worktree=True)
    async with running_edge(tmp_path, configuration=configuration) as edge:
        first, second = await run_change(edge), await run_change(edge)
        assert first["workDir"] != second["workDir"]
        plain = await run_change(edge, worktree=False)
        assert "worktree" not in plain
        payload = {"text": CHANGE, "agentId": "shell"}
        posted = await edge.post(f"/v1/threads/{first['threadId']}/messages", payload, status=202)
        assert "worktree" in posted["run"]
        await edge.allow_all(posted["run"]["runId"])


@pytest.mark.requirement("edge.worktree.run")
async def test_a_run_that_is_tried_again_goes_on_in_the_same_worktree(tmp_path: Path):
    async with running_edge(tmp_path, configuration=with_repository(tmp_path)) as edge:
        run = await run_change(edge, worktree=True)
        again = await edge.post(f"/v1/runs/{run['runId']}:retry", status=202)
        assert again["worktree"] == run["worktree"]
        assert (await edge.allow_all(again["runId"]))["status"] == "finished"
        diff = await edge.get(f"/v1/runs/{again['runId']}/diff")
        assert (diff["scope"], files(diff)) == ("run", {"a.txt": "modified", "new.txt": "created"})


@pytest.mark.requirement("edge.worktree.unavailable")
async def test_a_folder_that_is_no_repository_is_refused_and_leaves_nothing(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        body = {"agentId": "demo", "prompt": "help", "worktree": True}
        refused = await edge.http.post("/v1/runs", json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "worktree_unavailable")
        assert refused.json()["reason"] == "not_a_repository"
        assert list(edge.machine.worktrees.iterdir()) == []
        assert (await edge.get("/v1/runs"))["items"] == []


@pytest.mark.requirement("edge.worktree.unavailable")
async def test_a_run_that_is_refused_leaves_no_worktree(tmp_path: Path):
    async with running_edge(tmp_path, configuration=with_repository(tmp_path)) as edge:
        first = await edge.start("approve")
        await edge.run_until(first["runId"], "waiting")
        body = {
            "agentId": "demo",
            "prompt": "x",
            "threadId": first["threadId"],
            "whenBusy": "refuse",
            "worktree": True,
        }
        refused = await edge.http.post("/v1/runs", json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "active_run_exists")
        assert list(edge.machine.worktrees.iterdir()) == []
        listed = git(tmp_path / "workspace", "worktree", "list")
        assert len(listed.splitlines()) == 1


@pytest.mark.requirement("edge.worktree.removed")
async def test_a_worktree_is_removed_when_asked_and_its_diff_says_so(tmp_path: Path):
    async with running_edge(tmp_path, configuration=with_repository(tmp_path)) as edge:
        run = await run_change(edge, worktree=True)
        preview = await edge.post("/v1/previews", {"runId": run["runId"]}, status=201)
        gone = await edge.http.delete(f"/v1/runs/{run['runId']}/worktree")
        assert gone.status_code == 204
        assert not place_of(run).exists()
        assert len(git(tmp_path / "workspace", "worktree", "list").splitlines()) == 1
        diff = await edge.get(f"/v1/runs/{run['runId']}/diff")
        assert (diff["available"], diff["reason"]) == (False, "worktree_removed")
        row = await edge.get(f"/v1/previews/{preview['previewId']}")
        assert row["status"] == "stopped"
        plain = await run_change(edge)
        none = await edge.http.delete(f"/v1/runs/{plain['runId']}/worktree")
        assert (none.status_code, none.json()["code"]) == (404, "no_worktree")


@pytest.mark.requirement("edge.worktree.removed")
async def test_a_worktree_in_which_a_run_works_is_not_removed(tmp_path: Path):
    async with running_edge(tmp_path, configuration=with_repository(tmp_path)) as edge:
        run = await edge.start("approve", worktree=True)
        await edge.run_until(run["runId"], "waiting")
        busy = await edge.http.delete(f"/v1/runs/{run['runId']}/worktree")
        assert (busy.status_code, busy.json()["code"]) == (409, "active_run_exists")
        assert place_of(run).is_dir()


@pytest.mark.requirement("edge.worktree.removed")
async def test_a_deleted_thread_takes_its_worktrees_with_it(tmp_path: Path):
    async with running_edge(tmp_path, configuration=with_repository(tmp_path)) as edge:
        run = await run_change(edge, worktree=True)
        kept = await run_change(edge, worktree=True)
        deleted = await edge.http.delete(f"/v1/threads/{run['threadId']}")
        assert deleted.status_code == 204
        assert not place_of(run).exists()
        assert place_of(kept).is_dir()


@pytest.mark.fault
@pytest.mark.requirement("edge.worktree.removed")
@pytest.mark.parametrize("protected", [True, False])
async def test_what_a_kill_left_before_its_run_was_asked_for_is_removed_at_the_next_start(
    tmp_path: Path, protected: bool
):
    configuration = with_repository(tmp_path)
    async with running_edge(tmp_path, configuration=configuration) as edge:
        run = await run_change(edge, worktree=True)
        left = worktree_operations.make_worktree(
            edge.machine, "run_left", str(tmp_path / "workspace")
        )
        await left.__aenter__()
        root = edge.machine.worktrees

    async def forgotten(_: object) -> None:
        """A start that looks after nothing."""

    if not protected:
        with patch("factwire.edge.startup.worktree_operations.settle_worktrees", forgotten):
            async with running_edge(tmp_path, configuration=configuration):
                assert (root / "run_left").is_dir()
        return
    async with running_edge(tmp_path, configuration=configuration):
        assert sorted(path.name for path in root.iterdir()) == [run["runId"]]
    assert len(git(tmp_path / "workspace", "worktree", "list").splitlines()) == 2


@pytest.mark.fault
@pytest.mark.requirement("edge.worktree.hostile")
@pytest.mark.parametrize("protected", [True, False])
async def test_a_hostile_repository_runs_nothing_by_a_worktree_or_a_diff(
    tmp_path: Path, protected: bool
):
    configuration = configuration_in(tmp_path)
    traps = tmp_path / "traps"
    workspace = hostile(tmp_path / "workspace", traps)
    calm = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    off = ("-c", "filter.evil.clean=", "-c", "filter.evil.required=false")
    git(workspace, *calm, *off, "add", ".gitattributes", "text.txt", "filtered.dat")
    git(workspace, *calm, *off, "commit", "--quiet", "--message=attributes")
    for mark in traps.glob("*.sprung"):
        mark.unlink()
    careless = (workspace / ".git/config").read_text()
    ours = git_module._as_config

    def theirs(_: dict[str, str]) -> str:
        """The repository's own settings, as plain git would read them."""
        return careless

    async with running_edge(tmp_path, configuration=configuration) as edge:
        with patch.object(git_module, "_as_config", ours if protected else theirs):
            run = await edge.start("help", worktree=True)
            await edge.run_until(run["runId"])
            (place_of(run) / "filtered.dat").write_text("more\n")
            own = await edge.get(f"/v1/runs/{run['runId']}/diff")
            plain = await edge.start("help")
            await edge.run_until(plain["runId"])
            shared = await edge.get(f"/v1/runs/{plain['runId']}/diff")
            await edge.http.delete(f"/v1/runs/{run['runId']}/worktree")
        if protected:
            assert files(own) == {"filtered.dat": "modified"}
            assert shared["scope"] == "workspace"
            assert sprung(traps) == []
        else:
            assert "smudge" in sprung(traps)
