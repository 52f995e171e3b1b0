"""Workers' files: a worktree for each assignment, what it changed, and a reviewer who gets it."""

import asyncio
import zipfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from factwire.evidence import BundleDocument, open_pack, verify_file
from factwire.hub.limits import TASK_PROMPT_CHARACTERS
from factwire.hub.request_rates import RequestRates
from tests.hub.served_hubs import WAIT
from tests.hub.team_repositories import FILES, FileTeam, open_file_team
from tests.hub.test_hub_client import spend_nothing
from tests.hub.test_link_live import LinkedEdge
from tests.runtime.hostile_repository import git

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def team(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[FileTeam]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RequestRates, "spend", spend_nothing)
        async with open_file_team(tmp_path_factory.mktemp("files")) as team:
            yield team


def has_worktree(assignment: dict[str, Any]) -> bool:
    return Path(assignment["changes"]["worktree"]).is_dir()


@pytest.mark.requirement("teams.worktrees")
async def test_each_assignment_works_in_a_worktree_of_its_own_and_tells_what_it_changed(
    team: FileTeam,
):
    await team.start()
    head = git(team.workspace, "rev-parse", "HEAD").strip()
    first = await team.work("ann", "echo changed > a.txt; echo new > new.txt", subtask_id="one")
    second = await team.work("ben", "rm b.txt")
    assert {file: (team.workspace / file).read_text() for file in FILES} == FILES
    changes = first["changes"]
    place = Path(changes["worktree"])
    assert (place / "new.txt").read_text() == "new\n"
    assert (changes["available"], changes["base"]) == (True, head)
    assert (changes["fileCount"], changes["addedLines"], changes["removedLines"]) == (2, 2, 8)
    assert changes["files"] == [
        {"path": "a.txt", "change": "modified", "addedLines": 1, "removedLines": 8},
        {"path": "new.txt", "change": "created", "addedLines": 1, "removedLines": 0},
    ]
    assert second["changes"]["worktree"] != changes["worktree"]
    assert second["changes"]["files"] == [
        {"path": "b.txt", "change": "deleted", "addedLines": 0, "removedLines": 1}
    ]
    # The diff is a blob, which the mirror has.
    blob = await team.near.ada.request("GET", f"{team.near.path}/blobs/{changes['diffRef']}")
    assert "+changed" in blob.text
    assert len(blob.content) == changes["diffBytes"]
    # Work that goes back goes on where it was done; somebody else begins at the base.
    feedback = {"approved": False, "feedback": "echo more >> new.txt", "subtask_id": "one"}
    again = await team.end(await team.decide("approve", **feedback))
    assert again["changes"]["worktree"] == str(place)
    assert again["changes"]["addedLines"] == 3
    assert (place / "new.txt").read_text() == "new\nmore\n"
    other = await team.end(await team.decide("approve", next_worker="ben", **feedback))
    assert other["changes"]["files"] == [
        {"path": "new.txt", "change": "created", "addedLines": 1, "removedLines": 0}
    ]


@pytest.mark.requirement("teams.review_diff")
async def test_a_reviewer_gets_the_diff_also_on_another_device(team: FileTeam):
    await team.start()
    done = await team.work("ann", "echo changed > a.txt")
    for reviewer, edge in (("near", team.near), ("rex", team.far)):
        record = await team.decide("review", next_worker=reviewer, instructions="help me check")
        review = await team.end(record)
        prompt = (await edge.edge.get(f"/v1/runs/{review['edgeRunId']}"))["prompt"]
        assert "Changes: 1 file +1 −8\n- a.txt (modified +1 −8)\n\nDiff:\n" in prompt
        assert "\n+changed\n" in prompt
        assert "cut here" not in prompt
        assert "changes" not in review
    # What is longer than a prompt is cut, and it is said where the rest is.
    lines = "for n in $(seq 1 5000); do echo line $n >> long.txt; done"
    long = await team.work("ben", lines)
    assert long["changes"]["addedLines"] == 5_000
    review = await team.end(await team.decide("review", next_worker="rex", instructions="help"))
    prompt = (await team.far.edge.get(f"/v1/runs/{review['edgeRunId']}"))["prompt"]
    ref = long["changes"]["diffRef"]
    assert len(prompt) <= TASK_PROMPT_CHARACTERS
    assert f"The diff has {long['changes']['diffBytes']} bytes and is cut here." in prompt
    assert f"GET {team.near.path}/blobs/{ref} at the Hub" in prompt
    whole = await team.near.ada.request("GET", f"{team.near.path}/blobs/{ref}")
    assert whole.text.count("\n+line ") == 5_000
    assert (done["changes"]["fileCount"], long["changes"]["fileCount"]) == (1, 1)


@pytest.mark.requirement("teams.merge")
@pytest.mark.requirement("hub.socket.frames")
async def test_approved_work_is_merged_once_and_its_worktree_is_removed(team: FileTeam):
    await team.start()
    done = await team.work("ann", "echo merged > merged.txt")
    early = await team.merge(done)
    assert (early.status_code, early.json()["code"]) == (409, "work_not_approved")
    direct = f"{team.near.path}/runs/{done['edgeRunId']}:merge"
    relayed = await team.near.ada.request("POST", direct, {})
    assert (relayed.status_code, relayed.json()["code"]) == (403, "not_relayed")
    await team.decide("approve", approved=True)
    (team.workspace / "b.txt").write_text("mine\n")
    dirty = await team.merge(done)
    assert (dirty.status_code, dirty.json()["code"]) == (409, "merge_target_dirty")
    assert (await team.assignment(done["assignmentId"]))["merge"]["status"] == "refused"
    git(team.workspace, "checkout", "-q", "b.txt")
    # Only what was there when the work ended, and was approved, is merged.
    late = Path(done["changes"]["worktree"]) / "late.txt"
    late.write_text("unseen\n")
    unseen = await team.merge(done)
    assert (unseen.status_code, unseen.json()["code"]) == (409, "work_changed")
    late.unlink()
    async with team.near.hub.screen(team.near.ada) as screen:
        merged = await team.merge(done)
        updates = [(await screen.next("assignment.merge_updated"))["payload"] for _ in range(2)]
    assert merged.status_code == 200, merged.text
    merge = merged.json()["merge"]
    head = git(team.workspace, "rev-parse", "HEAD").strip()
    assert (merge["status"], merge["branch"], merge["commit"]) == ("merged", "main", head)
    assert merge["by"]["userId"] == team.near.ada.person_id
    assert [each["assignment"]["merge"]["status"] for each in updates] == ["asked", "merged"]
    assert updates[1]["assignment"] == merged.json()
    assert (team.workspace / "merged.txt").read_text() == "merged\n"
    assert git(team.workspace, "status", "--porcelain") == ""
    assert not has_worktree(done)
    author = git(team.workspace, "log", "-1", "--format=%an|%s").strip()
    assert author == "Ada|echo merged > merged.txt"
    again = await team.merge(done)
    assert again.json() == merged.json()
    assert git(team.workspace, "rev-parse", "HEAD").strip() == head


@pytest.mark.requirement("teams.merge")
async def test_conflicts_are_reported_and_nothing_is_lost(team: FileTeam):
    await team.start()
    done = await team.work("ann", "echo ann > b.txt")
    await team.decide("approve", approved=True)
    (team.workspace / "b.txt").write_text("somebody\n")
    git(team.workspace, "commit", "-aqm", "other")
    head = git(team.workspace, "rev-parse", "HEAD").strip()
    found = (await team.merge(done)).json()["merge"]
    assert (found["status"], found["files"]) == ("conflicts", ["b.txt"])
    assert git(team.workspace, "rev-parse", "HEAD").strip() == head
    assert has_worktree(done)
    git(team.workspace, "branch", "aside", done["changes"]["base"])
    aside = (await team.merge(done, into="aside")).json()["merge"]
    assert (aside["status"], aside["branch"]) == ("merged", "aside")
    assert git(team.workspace, "show", "aside:b.txt") == "ann\n"
    assert git(team.workspace, "rev-parse", "HEAD").strip() == head


@pytest.mark.requirement("teams.merge")
async def test_a_worktree_is_removed_by_command_and_never_by_itself(team: FileTeam):
    await team.start()
    done = await team.work("ann", "echo x > x.txt")
    place = Path(done["changes"]["worktree"])
    await team.near.ada.post(f"{team.path}:cancel", None, 200)
    assert (place / "x.txt").exists()
    path = f"{team.near.path}/runs/{done['edgeRunId']}/worktree"
    removed = await team.near.ada.request("DELETE", path)
    assert removed.status_code == 204, removed.text
    assert not has_worktree(done)
    gone = await team.merge(done)
    assert (gone.status_code, gone.json()["code"]) == (409, "work_not_approved")


@pytest.mark.requirement("teams.worktrees")
async def test_a_folder_outside_of_any_repository_is_worked_in_itself_and_that_is_said(
    team: FileTeam,
):
    path = f"/v1/teams/{team.team_id}/members"
    where = {"agentType": "shell", "deviceIds": [team.far.device_id]}
    await team.near.ada.post(path, {"name": "zoe", "role": "executor", **where})
    await team.start()
    done = await team.work("zoe", "echo here > here.txt")
    assert done["changes"] == {"available": False, "reason": "not_a_repository"}
    assert (team.far.edge.machine.runtime.workspace / "here.txt").read_text() == "here\n"
    await team.decide("approve", approved=True)
    refused = await team.merge(done)
    assert (refused.status_code, refused.json()["code"]) == (409, "no_worktree")


@pytest.mark.requirement("teams.pack")
async def test_a_pack_of_a_run_has_all_threads_and_verifies_as_one(team: FileTeam, tmp_path: Path):
    run_id = await team.start()
    ada = team.near.ada
    done = await team.work("ann", "echo packed > packed.txt")
    review = await team.end(await team.decide("review", next_worker="rex", instructions="help"))
    await team.decide("finish", summary="packed")
    await team.near.hub.hub.teams.write_facts()
    for edge, assignment in ((team.near, done), (team.far, review)):
        await wait_for_mirror(edge, assignment["edgeRunId"])
    path = tmp_path / "run.factpack.zip"
    path.write_bytes((await ada.request("GET", f"{team.path}/evidence?blobs=true")).content)
    report = verify_file(path)
    assert (report.ok, report.findings, report.signer.state) == (True, (), "unknown")
    with zipfile.ZipFile(path) as archive:
        document = msgspec.json.decode(archive.read("bundle.json"), type=BundleDocument)
        archive.extract(document.packs[0].entry, tmp_path)
    held = {pack.source: pack.threads for pack in document.packs}
    assert held == {
        "hub.teams": (run_id,),
        team.near.edge.machine.edge_id: (done["threadId"],),
        team.far.edge.machine.edge_id: (review["threadId"],),
    }
    assert document.left_out == ()
    with open_pack(tmp_path / document.packs[0].entry) as pack:
        decisions = [note.payload for note in pack.summary.decisions]
    assert {each["decided_by"]["name"] for each in decisions if "decided_by" in each} == {"Ada"}
    # A byte that is changed, in whatever pack, is found.
    data = bytearray(path.read_bytes())
    data[data.index(b"packs/002") + 2_000] ^= 1
    path.write_bytes(data)
    changed = verify_file(path)
    assert (changed.ok, changed.findings[0].entry) == (False, document.packs[1].entry)


async def wait_for_mirror(edge: LinkedEdge, run_id: str) -> None:
    """Return once the mirror of an Edge has the end of a run and all that was written since."""
    head = await edge.edge.machine.journal.head()
    async with asyncio.timeout(WAIT):
        while True:
            answer = await edge.ada.request("GET", f"{edge.path}/runs/{run_id}")
            # Cursors of one journal are in order as texts.
            if answer.status_code == 200 and answer.headers["x-as-of"] >= str(head):
                return
            await asyncio.sleep(0.05)
