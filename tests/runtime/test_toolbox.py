"""The toolbox: every call under the policy, bound to what was shown, told in sound facts."""

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factwire.facts import Fact
from factwire.journal import open_journal
from factwire.runtime import Runtime, StartTurn
from factwire.runtime.action_cards import read_place
from factwire.runtime.agents import find_pending_call
from factwire.runtime.policy import Policy
from factwire.runtime.sandbox import Sandbox, SandboxPolicy, describe_unenforced_rules
from factwire.runtime.toolbox import TOOL_FAILURES, Toolbox, ToolOutcome
from factwire.runtime.toolbox.tool_calls import ToolRefused
from factwire.runtime.toolbox.workspace_files import FileRevision, WorkspaceFiles, build_diff
from tests.runtime.agents import (
    Agent,
    classes,
    decide_shown,
    facts_of,
    make_fact,
    open_action,
    wait_for_end,
)
from tests.runtime.toolboxes import Kept, assert_sound, use

pytestmark = pytest.mark.asyncio

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def answer_with(answer: str, **how: Any) -> Any:
    async def meanwhile(runtime: Runtime) -> None:
        await decide_shown(runtime, "thread", await open_action(runtime), answer, by="lena", **how)

    return meanwhile


def git_apply(folder: Path, diff: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        input=diff.encode(),
        cwd=folder,
        capture_output=True,
        timeout=280,
        check=False,
    )


@pytest.mark.requirement("runtime.toolbox.call")
async def test_a_call_is_started_judged_done_and_ended_in_order(tmp_path: Path):
    kept = Kept(tmp_path)
    used = await use(kept, ("run", {"command": "echo hello"}))

    assert [name for name in classes(used.facts) if name and not name.startswith("turn")] == [
        "run.status",
        "tool.started",
        "tool.args",
        "permission.evaluated",
        "sandbox.applied",
        "process.started",
        "process.output",
        "process.completed",
        "tool.result",
        "run.status",
        "snapshot.updated",
    ]
    assert (used.outcome.ok, used.outcome.text) == (True, "hello\n")
    [tool] = used.state.tools.values()
    assert (tool.state, tool.exit_code, str(tool.output_text)) == ("output-available", 0, "hello\n")
    ids = {fact.tool_call_id for fact in used.facts if fact.process_id}
    assert ids == {tool.tool_call_id}


@pytest.mark.requirement("runtime.toolbox.read")
async def test_a_file_is_read_whole_or_by_lines(tmp_path: Path):
    kept = Kept(tmp_path)
    (kept.workspace / "poem").write_text("one\ntwo\nthree")
    used = await use(
        kept, ("read", {"path": "poem"}), ("read", {"path": "poem", "start": 2, "lines": 1})
    )

    assert [outcome.text for outcome in used.outcomes] == ["one\ntwo\nthree", "two"]
    assert used.state.coding.files["poem"].reads == 2


@pytest.mark.requirement("runtime.toolbox.write")
async def test_a_written_file_is_told_with_its_diff_and_content(tmp_path: Path):
    kept = Kept(tmp_path)
    used = await use(
        kept,
        ("write", {"path": "docs/poem", "content": "one\n"}),
        ("write", {"path": "docs/poem", "content": "one\ntwo\n"}),
    )

    assert (kept.workspace / "docs" / "poem").read_text() == "one\ntwo\n"
    assert [path.name for path in kept.workspace.glob("docs/*")] == ["poem"]
    first, second = used.facts_of_class("file.changed")
    assert [fact.payload["change"] for fact in (first, second)] == ["created", "modified"]
    assert await kept.content(second.payload["contentRef"]) == b"one\ntwo\n"
    assert await kept.content(second.payload["diffRef"]) == (
        b"--- a/docs/poem\n+++ b/docs/poem\n@@ -1 +1,2 @@\n one\n+two\n"
    )
    [artifact] = used.state.artifacts.values()
    assert (artifact.path, len(artifact.versions)) == ("docs/poem", 2)
    assert used.state.coding.files["docs/poem"].added_lines == 2


@pytest.mark.requirement("runtime.toolbox.patch")
async def test_a_patch_changes_all_its_files_or_none(tmp_path: Path):
    kept = Kept(tmp_path)
    (kept.workspace / "a").write_text("red green")
    edits = [
        {"path": "a", "old": "red", "new": "blue"},
        {"path": "a", "old": "green", "new": "grey"},
        {"path": "b", "new": "made"},
    ]
    used = await use(
        kept,
        ("patch", {"edits": edits}),
        ("patch", {"edits": [{"path": "b", "old": "made", "new": "x"}, {**edits[0]}]}),
    )

    assert (kept.workspace / "a").read_text() == "blue grey"
    assert (kept.workspace / "b").read_text() == "made"
    [patch] = used.state.coding.patches.values()
    assert (patch.status, patch.paths) == ("applied", ["a", "b"])
    assert used.outcomes[1].category == "patch_mismatch"


@pytest.mark.requirement("runtime.toolbox.patch")
async def test_what_a_failed_patch_had_written_is_taken_back(tmp_path: Path):
    (tmp_path / "a").write_text("old")
    files = WorkspaceFiles(tmp_path)
    changes = [
        FileRevision(path="a", before="old", after="new"),
        FileRevision(path="made", before=None, after="new"),
        FileRevision(path="gone", before="never there", after="new"),
    ]
    with pytest.raises(ToolRefused) as refused:
        files.apply(changes)

    assert refused.value.category == "conflict"
    assert (tmp_path / "a").read_text() == "old"
    assert not (tmp_path / "made").exists()


@pytest.mark.requirement("runtime.toolbox.patch")
async def test_a_patch_of_a_file_that_changed_meanwhile_fails_as_a_whole(tmp_path: Path):
    kept = Kept(tmp_path, Policy())
    for name in ("a", "b"):
        (kept.workspace / name).write_text("red")

    async def meanwhile(runtime: Runtime) -> None:
        action = await open_action(runtime)
        (kept.workspace / "b").write_text("somebody else's")
        await decide_shown(runtime, "thread", action, "approve", by="lena")

    edits = [{"path": name, "old": "red", "new": "blue"} for name in ("a", "b")]
    used = await use(kept, ("patch", {"edits": edits}), meanwhile=meanwhile)

    [patch] = used.state.coding.patches.values()
    assert (patch.status, patch.failure_category) == ("failed", "conflict")
    assert (kept.workspace / "a").read_text() == "red"
    assert used.facts_of_class("file.changed") == []


@pytest.mark.requirement("runtime.toolbox.write")
async def test_the_same_text_again_is_no_change(tmp_path: Path):
    kept = Kept(tmp_path)
    (kept.workspace / "note").write_text("same")
    used = await use(kept, ("write", {"path": "note", "content": "same"}))

    assert (used.outcome.ok, used.outcome.text) == (True, "nothing changed")
    assert used.facts_of_class("file.changed") == []


@pytest.mark.requirement("runtime.toolbox.write")
async def test_a_written_file_keeps_its_permissions(tmp_path: Path):
    kept = Kept(tmp_path)
    script = kept.workspace / "script"
    script.write_text("old")
    script.chmod(0o750)
    await use(kept, ("write", {"path": "script", "content": "new"}))

    assert script.stat().st_mode & 0o777 == 0o750


@pytest.mark.requirement("runtime.toolbox.write")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "one\n"),
        ("one\n", ""),
        ("one", "one\n"),
        ("one\ntwo", "one\nthree"),
        ("a\r\nb\x0cc\n", "a\r\nB\x0cc\n"),
        ("".join(f"{n}\n" for n in range(30)), "".join(f"{n}\n" for n in range(30) if n % 9)),
        ("".join(f"{n}\n" for n in range(5_000)), "".join(f"{n}\n" for n in range(1, 5_001))),
    ],
)
async def test_a_diff_is_one_that_git_can_apply(tmp_path: Path, before: str, after: str):
    (tmp_path / "file").write_bytes(before.encode())
    diff = build_diff(FileRevision(path="file", before=before, after=after))
    applied = git_apply(tmp_path, diff.text)

    assert (applied.returncode, applied.stderr) == (0, b"")
    left = (tmp_path / "file").read_bytes() if (tmp_path / "file").exists() else b""
    assert left == after.encode()


@pytest.mark.requirement("runtime.toolbox.search")
async def test_a_search_finds_lines_and_passes_over_what_may_not_be_read(tmp_path: Path):
    kept = Kept(tmp_path, Policy.of("default", deny=["Read(**/.env)"]))
    for name in ("a.txt", ".env", "deep/b.txt", "deep/c.md"):
        (kept.workspace / name).parent.mkdir(exist_ok=True)
        (kept.workspace / name).write_text("nothing\nneedle here\n")
    (kept.workspace / "binary").write_bytes(b"needle\0")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "far").write_text("needle")
    (kept.workspace / "link").symlink_to(tmp_path / "outside")
    used = await use(
        kept,
        ("search", {"text": "needle", "glob": "*.txt"}),
        meanwhile=answer_with("approve"),
    )
    whole = await use(kept, ("search", {"text": "needle"}), meanwhile=answer_with("approve"))

    assert used.outcome.text == "a.txt:2: needle here\ndeep/b.txt:2: needle here"
    assert ".env" not in whole.outcome.text
    assert "far" not in whole.outcome.text
    assert whole.outcome.data == {"matches": 3, "files": 3, "complete": True}


@pytest.mark.requirement("runtime.toolbox.search")
async def test_one_file_can_be_searched_and_a_name_that_cannot_be_told_is_passed_over(
    tmp_path: Path,
):
    kept = Kept(tmp_path)
    (kept.workspace / "a").write_text("needle")
    (kept.workspace / os.fsdecode(b"odd\xff")).write_text("needle")
    used = await use(
        kept, ("search", {"text": "needle", "path": "a"}), ("search", {"text": "needle"})
    )

    assert [outcome.text for outcome in used.outcomes] == ["a:1: needle"] * 2


@pytest.mark.requirement("runtime.toolbox.search")
async def test_a_search_stops_at_its_bound_and_says_so(tmp_path: Path):
    kept = Kept(tmp_path)
    (kept.workspace / "many").write_text("needle\n" * 300)
    used = await use(kept, ("search", {"text": "needle"}))

    assert used.outcome.data == {"matches": 200, "files": 1, "complete": False}


@pytest.mark.requirement("runtime.toolbox.approval")
@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_a_person_is_asked_about_exactly_what_is_done(tmp_path: Path, answer: str):
    kept = Kept(tmp_path, Policy())
    (kept.workspace / "note").write_text("old\n")
    call = ("write", {"path": "note", "content": "new\n"})
    used = await use(kept, call, meanwhile=answer_with(answer))

    [action] = used.state.actions.values()
    assert action.shown is not None
    assert action.shown.splitlines() == [
        "tool: write",
        f"workspace: {kept.workspace}",
        f"place: {read_place(str(kept.workspace))}",
        "path: note",
        "diff:",
        "| --- a/note",
        "| +++ b/note",
        "| @@ -1 +1 @@",
        "| -old",
        "| +new",
        "| ",
    ]
    [evaluated] = used.facts_of_class("permission.evaluated")
    assert evaluated.payload["argsHash"] == action.args_hash
    assert action.applied
    done = answer == "approve"
    assert (kept.workspace / "note").read_text() == ("new\n" if done else "old\n")
    assert (used.outcome.ok, used.outcome.category) == (done, None if done else "permission_denied")


@pytest.mark.requirement("runtime.toolbox.approval")
async def test_an_answer_that_never_comes_is_a_no(tmp_path: Path):
    kept = Kept(tmp_path, Policy(), approval_seconds=0.01)
    used = await use(kept, ("run", {"command": "touch made"}))

    assert used.outcome.category == "permission_denied"
    [action] = used.state.actions.values()
    assert (action.status, action.applied) == ("expired", None)
    assert not (kept.workspace / "made").exists()


@pytest.mark.requirement("runtime.toolbox.approval")
async def test_a_file_that_changed_while_a_person_thought_is_left_alone(tmp_path: Path):
    kept = Kept(tmp_path, Policy())
    note = kept.workspace / "note"
    note.write_text("old\n")

    async def meanwhile(runtime: Runtime) -> None:
        action = await open_action(runtime)
        note.write_text("somebody else's\n")
        await decide_shown(runtime, "thread", action, "approve", by="lena")

    used = await use(kept, ("write", {"path": "note", "content": "new\n"}), meanwhile=meanwhile)

    assert used.outcome.category == "conflict"
    assert note.read_text() == "somebody else's\n"
    [action] = used.state.actions.values()
    assert (action.decision, action.applied) == ("approved", False)


@pytest.mark.requirement("runtime.toolbox.approval")
async def test_an_approval_is_used_up_before_the_command_runs(tmp_path: Path):
    """So that whoever comes after a crash does not run it a second time."""
    kept = Kept(tmp_path, Policy())
    used = await use(kept, ("run", {"command": "true"}), meanwhile=answer_with("approve"))

    order = [name for name in classes(used.facts) if name and name.startswith(("act", "proc"))]
    assert order[:4] == ["action.required", "action.resolved", "action.updated", "process.started"]


@pytest.mark.requirement("runtime.toolbox.approval")
async def test_an_agent_may_ask_where_the_policy_would_not(tmp_path: Path):
    kept = Kept(tmp_path)
    used = await use(
        kept, ("run", {"command": "true"}), meanwhile=answer_with("approve"), always_ask=True
    )

    assert used.outcome.ok
    assert len(used.state.actions) == 1


@pytest.mark.requirement("runtime.toolbox.denied")
async def test_what_the_policy_denies_is_not_done_and_nobody_is_asked(tmp_path: Path):
    kept = Kept(tmp_path, Policy.of("acceptEdits", allow=["Bash"], deny=["Bash(touch *)"]))
    used = await use(kept, ("run", {"command": "touch a"}), ("run", {"command": "true && touch b"}))

    assert [outcome.category for outcome in used.outcomes] == ["permission_denied"] * 2
    assert len(used.facts_of_class("permission.denied")) == 2
    assert used.state.actions == {}
    assert list(kept.workspace.iterdir()) == []


@pytest.mark.requirement("runtime.toolbox.denied")
async def test_a_file_that_may_not_be_read_is_not_shown_in_a_diff_either(tmp_path: Path):
    kept = Kept(tmp_path, Policy.of("default", deny=["Read(.env)"]))
    (kept.workspace / ".env").write_text("word=hidden\n")
    used = await use(kept, ("write", {"path": ".env", "content": "x"}))

    assert used.outcome.category == "permission_denied"
    assert "hidden" not in str(used.facts)


@pytest.mark.requirement("runtime.toolbox.workspace")
@pytest.mark.parametrize("path", ["../out", "/etc/hostname", "link/out", "file-link", "a/../../x"])
@pytest.mark.parametrize("tool", ["read", "write", "search", "patch"])
async def test_no_path_leads_out_of_the_workspace(tmp_path: Path, path: str, tool: str):
    kept = Kept(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "out").write_text("private")
    (kept.workspace / "link").symlink_to(outside)
    (kept.workspace / "file-link").symlink_to(outside / "out")
    args: dict[str, dict[str, Any]] = {
        "read": {"path": path},
        "write": {"path": path, "content": "mine"},
        "search": {"path": path, "text": "private"},
        "patch": {"edits": [{"path": path, "old": "private", "new": "mine"}]},
    }
    used = await use(kept, (tool, args[tool]))

    assert used.outcome.category == "outside_workspace"
    assert (outside / "out").read_text() == "private"


@pytest.mark.requirement("runtime.toolbox.workspace")
async def test_a_folder_that_is_swapped_for_a_link_after_the_check_is_not_followed(tmp_path: Path):
    outside, workspace = tmp_path / "outside", tmp_path / "workspace"
    for folder in (outside, workspace / "docs"):
        folder.mkdir(parents=True)
    (outside / "note").write_text("private")
    (workspace / "docs" / "note").write_text("mine")
    files = WorkspaceFiles(workspace)
    checked = files.locate("docs/note")
    (workspace / "docs").rename(workspace / "moved")
    (workspace / "docs").symlink_to(outside)

    assert (workspace / checked).read_text() == "private", "a plain open would follow"
    with pytest.raises(ToolRefused):
        files.text(checked)
    with pytest.raises(ToolRefused):
        files.apply([FileRevision(path=checked, before="private", after="taken")])
    assert (outside / "note").read_text() == "private"


@pytest.mark.requirement("runtime.toolbox.workspace")
async def test_a_link_inside_the_workspace_is_followed_and_judged_by_where_it_leads(
    tmp_path: Path,
):
    kept = Kept(tmp_path, Policy.of("default", deny=["Read(private/**)"]))
    (kept.workspace / "private").mkdir()
    (kept.workspace / "private" / "note").write_text("hidden")
    (kept.workspace / "open").symlink_to("private/note")
    used = await use(kept, ("read", {"path": "open"}))

    assert used.outcome.category == "permission_denied"


@pytest.mark.requirement("runtime.toolbox.secrets")
async def test_a_secret_in_a_file_or_in_output_is_kept_nowhere(tmp_path: Path):
    kept = Kept(tmp_path)
    long = f"{SECRET}\n" + "x" * 20_000
    (kept.workspace / "known").write_text(long)
    used = await use(
        kept,
        ("read", {"path": "known"}),
        ("run", {"command": "cat known"}),
        ("write", {"path": "copy", "content": long}),
    )

    assert all(outcome.ok for outcome in used.outcomes)
    assert SECRET not in str(used.facts)
    for fact in used.facts:
        for ref in fact.ref_ids:
            assert SECRET.encode() not in await kept.content(ref)
    logs = [path for path in kept.world.data.rglob("*") if path.is_file()]
    assert logs
    assert all(SECRET.encode() not in path.read_bytes() for path in logs)


@pytest.mark.requirement("runtime.toolbox.big-output")
async def test_long_output_is_behind_a_ref(tmp_path: Path):
    kept = Kept(tmp_path, output_bytes=20_000)
    (kept.workspace / "long").write_text("line\n" * 3_000)
    used = await use(kept, ("read", {"path": "long"}), ("run", {"command": ["seq", "1", "20000"]}))

    read, ran = used.facts_of_class("tool.result")
    assert "output" not in read.payload
    assert await kept.content(read.payload["outputRef"]["ref"]) == b"line\n" * 3_000
    whole = "".join(f"{number}\n" for number in range(1, 20_001)).encode()
    assert await kept.content(ran.payload["outputRef"]["ref"]) == whole
    length = sum(len(fact.payload["text"]) for fact in used.facts_of_class("process.output"))
    assert length == 20_000


@pytest.mark.requirement("runtime.toolbox.failures")
@pytest.mark.parametrize(
    ("tool", "args", "category"),
    [
        ("fly", {}, "unknown_tool"),
        ("read", {"path": 3}, "invalid_arguments"),
        ("read", {"path": "a", "line": 1}, "invalid_arguments"),
        ("read", {"path": "a", "start": 0}, "invalid_arguments"),
        ("read", {"path": "a\0b"}, "invalid_arguments"),
        ("read", {"path": "missing"}, "not_found"),
        ("read", {"path": "a/b"}, "not_found"),
        ("read", {"path": "folder"}, "not_a_file"),
        ("read", {"path": "."}, "not_a_file"),
        ("read", {"path": "pipe"}, "not_a_file"),
        ("read", {"path": "binary"}, "not_text"),
        ("read", {"path": "nul"}, "not_text"),
        ("read", {"path": "big"}, "too_big"),
        ("write", {"path": "b", "content": "\0"}, "not_text"),
        ("write", {"path": "b", "content": "x" * 1_048_577}, "too_big"),
        ("write", {"path": "folder", "content": "x"}, "not_a_file"),
        ("patch", {"edits": []}, "invalid_arguments"),
        ("patch", {"edits": "all"}, "invalid_arguments"),
        ("patch", {"edits": [{"path": "missing", "old": "a", "new": "b"}]}, "not_found"),
        ("patch", {"edits": [{"path": "a", "old": "a", "new": "b"}]}, "patch_mismatch"),
        ("read", {"path": "half \ud800"}, "invalid_arguments"),
        ("read", {"path": object()}, "invalid_arguments"),
        ("write", {"path": "b", "content": "half \ud800"}, "invalid_arguments"),
        ("write", {"path": "b" * 300, "content": "x"}, "io_error"),
        ("write", {"path": "a/b", "content": "x"}, "not_found"),
        ("search", {"text": ""}, "invalid_arguments"),
        ("search", {"text": "x", "path": "missing"}, "not_found"),
        ("run", {"command": ""}, "invalid_arguments"),
        ("run", {"command": []}, "invalid_arguments"),
        ("run", {"command": "ls", "cwd": "../.."}, "outside_workspace"),
        ("run", {"command": ["echo", "a\0b"]}, "invalid_arguments"),
        ("run", {"command": "no-such-program-anywhere"}, "program_not_found"),
        ("run", {"command": ["sh", "-c", "exit 7"]}, "nonzero_exit"),
        ("run", {"command": ["sh", "-c", "kill -KILL $$"]}, "nonzero_exit"),
    ],
)
async def test_every_failure_has_a_stable_category(
    tmp_path: Path, tool: str, args: dict[str, Any], category: str
):
    kept = Kept(tmp_path)
    (kept.workspace / "folder").mkdir()
    (kept.workspace / "a").write_text("a a")
    (kept.workspace / "binary").write_bytes(b"\xff")
    (kept.workspace / "nul").write_bytes(b"\0")
    (kept.workspace / "big").write_bytes(b"x" * 1_048_577)
    os.mkfifo(kept.workspace / "pipe")
    used = await use(kept, (tool, args))

    assert used.outcome.category == category
    assert category in TOOL_FAILURES
    [failed] = used.facts_of_class("tool.failed")
    assert failed.payload["failureCategory"] == category


@pytest.mark.requirement("runtime.toolbox.failures")
async def test_a_program_that_takes_too_long_is_stopped(tmp_path: Path):
    kept = Kept(tmp_path)
    used = await use(kept, ("run", {"command": "sleep 600", "seconds": 1}))

    assert used.outcome.category == "timeout"


@pytest.mark.requirement("runtime.toolbox.sandbox")
async def test_a_command_cannot_write_outside_the_workspace(tmp_path: Path):
    kept = Kept(tmp_path)
    target = tmp_path / "target"
    used = await use(kept, ("run", {"command": ["touch", "inside", str(target)]}))

    [applied] = used.facts_of_class("sandbox.applied")
    assert (applied.payload["decision"], applied.payload["root"]) == ("applied", "read-only")
    assert (kept.workspace / "inside").exists()
    assert not target.exists()


@pytest.mark.requirement("runtime.toolbox.sandbox")
async def test_without_the_sandbox_that_is_required_nothing_runs(tmp_path: Path):
    kept = Kept(tmp_path)
    (tmp_path / "bin").mkdir()
    missing = Sandbox(home=tmp_path, data=[], path=str(tmp_path / "bin"))
    processes = kept.world.processes(blobs=kept.blobs, sandbox=missing)
    kept.means = msgspec.structs.replace(kept.means, processes=processes)
    used = await use(kept, ("run", {"command": "touch made"}))

    assert used.outcome.category == "sandbox_unavailable"
    assert len(used.facts_of_class("sandbox.blocked")) == 1
    assert not (kept.workspace / "made").exists()


@pytest.mark.requirement("runtime.toolbox.sandbox")
async def test_a_runtime_without_programs_says_so(tmp_path: Path):
    kept = Kept(tmp_path, processes=None, sandbox=SandboxPolicy())
    used = await use(kept, ("run", {"command": "true"}))

    assert used.outcome.category == "programs_unavailable"


@pytest.mark.requirement("runtime.toolbox.command-lines")
@pytest.mark.parametrize(
    ("line", "command", "text"),
    [
        ("echo 'a  b' \"c\"", ["echo", "a  b", "c"], "a  b c\n"),
        ("echo one; echo two", ["/bin/sh", "-c", "echo one; echo two"], "one\ntwo\n"),
        ("echo $((1+1))", ["/bin/sh", "-c", "echo $((1+1))"], "2\n"),
        ("X=1 printenv X", ["/bin/sh", "-c", "X=1 printenv X"], "1\n"),
        ("cd /", ["/bin/sh", "-c", "cd /"], "ok"),
        ("printf '%s' --a=b", ["printf", "%s", "--a=b"], "--a=b"),
    ],
)
async def test_a_line_is_arguments_where_that_is_certain_and_else_for_a_shell(
    tmp_path: Path, line: str, command: list[str], text: str
):
    kept = Kept(tmp_path)
    used = await use(
        kept, ("run", {"command": line}), always_ask=True, meanwhile=answer_with("approve")
    )

    [started] = used.facts_of_class("process.started")
    assert started.payload["command"] == command
    assert used.outcome.text == text
    [action] = used.state.actions.values()
    assert action.command == (line if command[0] == "/bin/sh" else command)


def resumable(outcomes: list[ToolOutcome], *call: Any) -> Agent:
    """An agent that makes one call, and goes on with it after a restart."""

    async def script(turn: StartTurn) -> AsyncIterator[Fact]:
        toolbox, pending = Toolbox(turn.host), find_pending_call(turn)
        if pending is None:
            outcomes.append(await toolbox.call(*call))
        else:
            args = await pending.args(turn.host.resources.blobs)
            outcomes.append(await toolbox.resume(pending.action, args))
        yield make_fact(turn.host, "turn.completed")

    return Agent(script, resume="yes")


@pytest.mark.requirement("runtime.toolbox.resume")
@pytest.mark.parametrize("size", [10, 100_000])
async def test_a_write_that_waits_is_done_after_a_restart(tmp_path: Path, size: int):
    kept, outcomes = Kept(tmp_path, Policy()), list[ToolOutcome]()
    agent = resumable(outcomes, "write", {"path": "note", "content": "words " * size})
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        async with kept.run_agents({"agent": agent}, journal) as runtime:
            await runtime.submit("thread", "agent", "go", turn_id="turn")
            action = await open_action(runtime)
        async with kept.run_agents({"agent": agent}, journal) as runtime:
            await decide_shown(runtime, "thread", action, "approve", by="lena")
            assert await wait_for_end(runtime, "turn") == "completed"
            facts = await facts_of(runtime)

    assert [outcome.ok for outcome in outcomes] == [True]
    assert (kept.workspace / "note").read_text() == "words " * size
    assert_sound(facts)


@pytest.mark.requirement("runtime.toolbox.resume")
async def test_a_write_whose_file_changed_since_it_was_shown_is_not_done(tmp_path: Path):
    kept, outcomes = Kept(tmp_path, Policy()), list[ToolOutcome]()
    agent = resumable(outcomes, "write", {"path": "note", "content": "mine"})
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        async with kept.run_agents({"agent": agent}, journal) as runtime:
            await runtime.submit("thread", "agent", "go", turn_id="turn")
            action = await open_action(runtime)
        (kept.workspace / "note").write_text("somebody else's")
        async with kept.run_agents({"agent": agent}, journal) as runtime:
            await decide_shown(runtime, "thread", action, "approve", by="lena")
            assert await wait_for_end(runtime, "turn") == "completed"

    assert [outcome.category for outcome in outcomes] == ["approval_changed"]
    assert (kept.workspace / "note").read_text() == "somebody else's"


@pytest.mark.requirement("runtime.toolbox.resume")
async def test_a_policy_that_became_stricter_meanwhile_counts(tmp_path: Path):
    kept, outcomes = Kept(tmp_path, Policy()), list[ToolOutcome]()
    agent = resumable(outcomes, "write", {"path": "note", "content": "mine"})
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        async with kept.run_agents({"agent": agent}, journal) as runtime:
            await runtime.submit("thread", "agent", "go", turn_id="turn")
            action = await open_action(runtime)
        stricter = Policy.of("default", deny=["Write"])
        kept.means = msgspec.structs.replace(kept.means, policy=stricter)
        async with kept.run_agents({"agent": agent}, journal) as runtime:
            await decide_shown(runtime, "thread", action, "approve", by="lena")
            await wait_for_end(runtime, "turn")

    assert [outcome.category for outcome in outcomes] == ["permission_denied"]
    assert not (kept.workspace / "note").exists()


@pytest.mark.requirement("runtime.policy.unenforced")
@pytest.mark.parametrize("mode", ["off", "prefer", "require"])
async def test_a_turn_says_once_which_rules_no_sandbox_enforces(tmp_path: Path, mode: Any):
    policy = Policy.of(allow=["Bash"], deny=["Read(**/.env)"])
    kept = Kept(tmp_path, policy, sandbox=SandboxPolicy(mode=mode))
    (kept.workspace / ".env").write_text("hidden")
    used = await use(kept, ("run", {"command": "ls"}), ("run", {"command": "cat a"}))
    warnings = [fact.payload for fact in used.facts_of_class("runtime.warning")]
    expected = {
        "code": "path_rules_not_enforced",
        "message": describe_unenforced_rules(policy.denied_paths),
    }
    assert warnings == ([expected] if mode == "off" else [])
    lacking = [
        lack["what"]
        for fact in used.facts_of_class("sandbox.applied")
        for lack in fact.payload["notApplied"]
    ]
    assert ("pathRules" in lacking) == (mode == "off")
