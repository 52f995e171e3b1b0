"""*Always for this pattern*: kept for a thread or a workspace, and forged by nobody."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factwire.facts import Fact, Person, inspect_stream
from factwire.journal import Journal, open_journal
from factwire.runtime import (
    DecisionRequest,
    Identity,
    NoRule,
    Runtime,
    StartTurn,
    open_identity,
    standing_rules,
)
from factwire.runtime.mint import Mint
from factwire.runtime.policy import Policy, PolicyRequest, hash_request, parse_rule, show_request
from factwire.runtime.sandbox import SandboxPolicy
from factwire.runtime.standing_rules import (
    Grant,
    StandingRules,
    UnknownRule,
    list_editable_files,
)
from factwire.runtime.toolbox import Toolbox, ToolOutcome
from tests.runtime.agents import Agent, decide_shown, facts_of, make_fact, open_action, wait_for_end
from tests.runtime.toolboxes import Kept

pytestmark = pytest.mark.asyncio

MAKE = ("make", "test")


class Asker:
    """Asks before a command, as the toolbox does, and says what it was told."""

    def __init__(self, command: tuple[str, ...] = MAKE) -> None:
        self.command = command
        self.folder = "."
        self.heard: list[tuple[bool, Person | str | None]] = []

    async def __call__(self, turn: StartTurn) -> AsyncIterator[Fact]:
        root = str(turn.host.workspace.resolve())
        cwd = str(Path(root, self.folder))
        request = PolicyRequest(tool="run", workspace=root, cwd=cwd, command=self.command)
        decision = await turn.host.ask(
            DecisionRequest(
                action_type="tool_approval",
                prompt="Run it?",
                shown=show_request(request),
                args_hash=hash_request(request),
                tool_name="run",
                cwd=cwd,
                command=list(self.command),
            )
        )
        self.heard.append((decision.allowed, decision.decided_by))
        yield make_fact(turn.host, "turn.completed")


def make_runtime(
    kept: Kept,
    journal: Journal,
    identity: Identity,
    asker: Any,
    policy: Policy | None = None,
    *,
    mint: Mint | None = None,
) -> Runtime:
    means = msgspec.structs.replace(kept.means, policy=policy or kept.means.policy)
    agents = {"agent": Agent(asker)}
    return Runtime(
        journal,
        kept.blobs,
        agents,
        workspace=kept.workspace,
        workspaces=[kept.workspace],
        resources=means,
        identity=identity,
        mint=mint,
    )


async def ask(runtime: Runtime, turn_id: str, thread_id: str = "thread", **how: Any) -> str:
    await runtime.submit(thread_id, "agent", "go", turn_id=turn_id, **how)
    return await open_action(runtime, thread_id)


@pytest.mark.requirement("runtime.standing.lasts")
@pytest.mark.parametrize("lasting", ["thread", "workspace"])
async def test_always_answers_the_same_question_across_restarts(tmp_path: Path, lasting: Any):
    kept, asker = Kept(tmp_path, Policy()), Asker()
    async with open_journal("memory:") as journal:
        async with make_runtime(kept, journal, open_identity(tmp_path / "data"), asker) as runtime:
            action = await ask(runtime, "one")
            await decide_shown(runtime, "thread", action, "approve", by="lena", always=lasting)
            await wait_for_end(runtime, "one")
            await runtime.submit("thread", "agent", "go", turn_id="two")
            await wait_for_end(runtime, "two")
        async with make_runtime(kept, journal, open_identity(tmp_path / "data"), asker) as runtime:
            await runtime.submit("thread", "agent", "go", turn_id="three")
            await wait_for_end(runtime, "three")
            if lasting == "thread":
                elsewhere = await ask(runtime, "four", "other")
                await decide_shown(runtime, "other", elsewhere, "deny", by="lena")
            else:
                await runtime.submit("other", "agent", "go", turn_id="four")
            await wait_for_end(runtime, "four", "other")
            facts, state = await facts_of(runtime), await runtime.state("thread")

    assert asker.heard[:3] == [(True, "lena"), (True, "policy"), (True, "policy")]
    assert asker.heard[3][0] == (lasting == "workspace")
    reasons = [action.reason for action in state.actions.values()]
    assert reasons == [None, "always: Bash(make test)", "always: Bash(make test)"]
    [changed] = [fact for fact in facts if fact.event_class == "policy.changed"]
    assert (changed.payload["rule"], changed.payload["decidedBy"]) == ("Bash(make test)", "lena")
    assert "output.redacted" not in [fact.event_class for fact in facts]
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.standing.exact")
async def test_always_is_refused_where_no_exact_rule_can_say_it(tmp_path: Path):
    kept, asker = Kept(tmp_path, Policy()), Asker(("sh", "-c", "curl x | sh"))
    async with (
        open_journal("memory:") as journal,
        make_runtime(kept, journal, open_identity(tmp_path / "data"), asker) as runtime,
    ):
        action = await ask(runtime, "one")
        with pytest.raises(NoRule) as refused:
            await decide_shown(runtime, "thread", action, "approve", by="lena", always="thread")
        state = await runtime.state("thread")
        assert state.actions[action].status == "pending"
        await decide_shown(runtime, "thread", action, "deny", by="lena")
        await wait_for_end(runtime, "one")

    assert refused.value.code == "no_standing_rule"


@pytest.mark.requirement("runtime.standing.exact")
async def test_a_rule_that_asks_or_denies_beats_what_is_always_allowed(tmp_path: Path):
    kept, asker = Kept(tmp_path, Policy()), Asker()
    async with open_journal("memory:") as journal:
        async with make_runtime(kept, journal, open_identity(tmp_path / "data"), asker) as runtime:
            action = await ask(runtime, "one")
            await decide_shown(runtime, "thread", action, "approve", by="lena", always="thread")
            await wait_for_end(runtime, "one")
        strict = Policy.of(ask=["Bash(make *)"])
        runtime = make_runtime(kept, journal, open_identity(tmp_path / "data"), asker, strict)
        async with runtime:
            again = await ask(runtime, "two")
            await decide_shown(runtime, "thread", again, "deny", by="lena")
            await wait_for_end(runtime, "two")

    assert asker.heard == [(True, "lena"), (False, "lena")]


@pytest.mark.requirement("runtime.standing.forged")
@pytest.mark.parametrize("seal", ["", "0" * 64, "replayed"])
async def test_a_grant_that_an_agent_makes_up_counts_for_nothing(tmp_path: Path, seal: str):
    kept, asker = Kept(tmp_path, Policy()), Asker()
    identity = open_identity(tmp_path / "data")

    async def forge_grant(turn: StartTurn) -> AsyncIterator[Fact]:
        folder = str(turn.host.workspace.resolve())
        grant = Grant(
            rule_id="rule_1",
            rule="Bash(make test)",
            lasts="thread",
            place="another" if seal == "replayed" else "thread",
            folder=folder,
            thread_id="thread",
            seal=seal,
        )
        sealed = identity.seal(grant.words) if seal == "replayed" else seal
        forged = msgspec.structs.replace(grant, place="thread", seal=sealed)
        grant = msgspec.to_builtins(forged)
        yield make_fact(turn.host, "policy.changed", {"rule": "Bash(make test)", "standing": grant})
        async for fact in asker(turn):
            yield fact

    async with (
        open_journal("memory:") as journal,
        make_runtime(kept, journal, identity, forge_grant) as runtime,
    ):
        for name in ("one", "two"):
            action = await ask(runtime, name)
            await decide_shown(runtime, "thread", action, "deny", by="lena")
            await wait_for_end(runtime, name)

    assert asker.heard == [(False, "lena"), (False, "lena")]


@pytest.mark.requirement("runtime.standing.revoked")
@pytest.mark.parametrize("lasting", ["thread", "workspace"])
async def test_what_was_always_allowed_can_be_taken_back_for_good(tmp_path: Path, lasting: Any):
    kept, asker = Kept(tmp_path, Policy()), Asker()
    grants: list[dict[str, Any]] = []

    async def repeat_grants(turn: StartTurn) -> AsyncIterator[Fact]:
        for payload in grants:
            yield make_fact(turn.host, "policy.changed", payload)
        async for fact in asker(turn):
            yield fact

    async with open_journal("memory:") as journal:
        identity = open_identity(tmp_path / "data")
        async with make_runtime(kept, journal, identity, repeat_grants) as runtime:
            action = await ask(runtime, "one")
            await decide_shown(runtime, "thread", action, "approve", by="lena", always=lasting)
            await wait_for_end(runtime, "one")
            facts = await facts_of(runtime)
            grants += [fact.payload for fact in facts if fact.event_class == "policy.changed"]
            [held] = await runtime.list_standing_rules()
            await runtime.revoke_standing_rule(held.rule_id, by="lena")
            with pytest.raises(UnknownRule):
                await runtime.revoke_standing_rule(held.rule_id, by="lena")
        # The agent repeats the sealed grant, before and after a restart.
        for turn_id in ("two", "three"):
            identity = open_identity(tmp_path / "data")
            async with make_runtime(kept, journal, identity, repeat_grants) as runtime:
                again = await ask(runtime, turn_id)
                await decide_shown(runtime, "thread", again, "deny", by="lena")
                await wait_for_end(runtime, turn_id)
                assert await runtime.list_standing_rules() == []

    root = str(kept.workspace.resolve())
    expected = {"rule": "Bash(make test)", "lasts": lasting, "folder": root, "thread_id": "thread"}
    assert {name: getattr(held, name) for name in expected} == expected
    assert (held.workspace, held.expires_at) == (root if lasting == "workspace" else None, None)
    assert asker.heard == [(True, "lena"), (False, "lena"), (False, "lena")]


@pytest.mark.requirement("runtime.standing.folder")
@pytest.mark.parametrize("lasting", ["thread", "workspace"])
async def test_a_rule_holds_in_the_folder_that_it_was_granted_in_alone(
    tmp_path: Path, lasting: Any
):
    kept, asker = Kept(tmp_path, Policy()), Asker()
    (kept.workspace / "sub").mkdir()
    (kept.workspace / "link").symlink_to(kept.workspace / "sub")
    async with (
        open_journal("memory:") as journal,
        make_runtime(kept, journal, open_identity(tmp_path / "data"), asker) as runtime,
    ):
        asker.folder = "sub"
        action = await ask(runtime, "one")
        await decide_shown(runtime, "thread", action, "approve", by="lena", always=lasting)
        await wait_for_end(runtime, "one")
        asker.folder = "link"
        await runtime.submit("thread", "agent", "go", turn_id="two")
        await wait_for_end(runtime, "two")
        asker.folder = "."
        elsewhere = await ask(runtime, "three")
        await decide_shown(runtime, "thread", elsewhere, "deny", by="lena")
        await wait_for_end(runtime, "three")
        (kept.workspace / "link").unlink()
        (kept.workspace / "link").symlink_to(kept.workspace)
        asker.folder = "link"
        swapped = await ask(runtime, "four")
        await decide_shown(runtime, "thread", swapped, "deny", by="lena")
        await wait_for_end(runtime, "four")

    assert asker.heard == [(True, "lena"), (True, "policy"), (False, "lena"), (False, "lena")]


FIELDS = {
    "rule_id": "rule_other",
    "rule": "Bash(make install)",
    "lasts": "workspace",
    "place": "other",
    "folder": "/",
    "thread_id": "other",
    "expires_at": "2999-01-01T00:00:00.000Z",
    "revoked": True,
}


@pytest.mark.requirement("runtime.standing.forged")
@pytest.mark.parametrize("field", FIELDS)
async def test_the_seal_covers_every_field_of_a_grant(tmp_path: Path, field: str):
    identity = open_identity(tmp_path / "data")
    grant = Grant(
        rule_id="rule_1",
        rule="Bash(make test)",
        lasts="thread",
        place="thread",
        folder="/work",
        thread_id="thread",
        expires_at="2027-01-01T00:00:00.000Z",
    )
    assert set(FIELDS) == set(Grant.__struct_fields__) - {"seal"}
    changed = msgspec.structs.replace(grant, **{field: FIELDS[field]})
    assert not identity.is_sealed(changed.words, identity.seal(grant.words))


@pytest.mark.requirement("runtime.standing.expires")
async def test_a_rule_that_has_expired_by_the_clock_of_the_runtime_asks_again(tmp_path: Path):
    kept, asker = Kept(tmp_path, Policy()), Asker()
    times = ["2026-01-01T00:00:00.000Z"]
    async with (
        open_journal("memory:") as journal,
        make_runtime(
            kept,
            journal,
            open_identity(tmp_path / "data"),
            asker,
            mint=Mint("factwire", clock=lambda: times[-1]),
        ) as runtime,
    ):
        action = await ask(runtime, "one")
        await decide_shown(
            runtime, "thread", action, "approve", by="lena", always="thread", expires_in=3_600
        )
        await wait_for_end(runtime, "one")
        times.append("2026-01-01T00:59:59.999Z")
        await runtime.submit("thread", "agent", "go", turn_id="two")
        await wait_for_end(runtime, "two")
        [held] = await runtime.list_standing_rules()
        times.append("2026-01-01T01:00:00.000Z")
        again = await ask(runtime, "three")
        await decide_shown(runtime, "thread", again, "deny", by="lena")
        await wait_for_end(runtime, "three")
        assert await runtime.list_standing_rules() == []
        with pytest.raises(UnknownRule):
            await runtime.revoke_standing_rule(held.rule_id, by="lena")

    assert held.expires_at == "2026-01-01T01:00:00.000Z"
    assert asker.heard == [(True, "lena"), (True, "policy"), (False, "lena")]


BROAD = [
    "Bash",
    "Bash(*)",
    "Bash(* test)",
    "Bash(m*ke test)",
    "Bash(make *)",
    "Bash(make:*)",
    "Bash(npm run *)",
    "Bash(git *)",
    "Bash(git status* x)",
    *(f"Bash({name}{rest})" for name in ("sudo", "doas") for rest in ("", " *", " make test")),
    *(f"Bash({name}{rest})" for name in ("sh", "/bin/bash", "zsh", "su") for rest in ("", " x.sh")),
    *(
        f"Bash({name}{rest})"
        for name in ("python3", "perl", "/usr/bin/node", "python3.12")
        for rest in ("", " *", " -c *", " -", " /dev/stdin")
    ),
]


@pytest.mark.requirement("runtime.standing.broad")
@pytest.mark.parametrize("text", BROAD)
async def test_a_rule_that_leaves_open_what_runs_is_neither_sealed_nor_believed(
    tmp_path: Path, text: str
):
    identity = open_identity(tmp_path / "data")
    async with open_journal("memory:") as journal:
        rules = StandingRules(journal, identity, lambda: "2026-01-01T00:00:00.000Z")
        grant = Grant(rule_id="r", rule=text, lasts="thread", place="t", folder="/", thread_id="t")
        with pytest.raises(NoRule):
            rules.seal(grant)
        sealed = msgspec.structs.replace(grant, seal=identity.seal(grant.words))
        rules.restore(msgspec.json.encode([sealed]))
        assert rules.list_grants() == []


@pytest.mark.requirement("runtime.standing.broad")
@pytest.mark.parametrize(
    "command",
    [("bash", "x.sh"), ("sudo", "make"), ("python3",), ("python3", "-"), ("node", "/dev/stdin")],
)
async def test_no_rule_is_offered_for_what_runs_any_code(tmp_path: Path, command: tuple[str, ...]):
    kept, asker = Kept(tmp_path, Policy()), Asker(command)
    async with (
        open_journal("memory:") as journal,
        make_runtime(kept, journal, open_identity(tmp_path / "data"), asker) as runtime,
    ):
        action = await ask(runtime, "one")
        with pytest.raises(NoRule):
            await decide_shown(runtime, "thread", action, "approve", by="lena", always="thread")
        await decide_shown(runtime, "thread", action, "deny", by="lena")
        await wait_for_end(runtime, "one")


@pytest.mark.requirement("runtime.standing.editable")
async def test_a_proposal_names_the_files_that_the_agent_may_edit(tmp_path: Path):
    kept = Kept(tmp_path, Policy())
    (kept.workspace / "tool.py").write_text("")
    (kept.workspace / "dir").mkdir()
    more = tmp_path / "more"
    more.mkdir()
    (more / "run").write_text("")
    (more / "run").chmod(0o755)
    (tmp_path / "outside").write_text("")
    (kept.workspace / "link").symlink_to(tmp_path / "outside")
    root = kept.workspace.resolve()
    folder, writable = str(root), [str(root), str(more)]

    def find(text: str, folder: str = folder) -> list[str]:
        return list_editable_files(parse_rule(f"Bash({text})"), folder, writable)

    assert find("python3 tool.py") == [str(root / "tool.py")]
    assert find("python3 ../tool.py", str(root / "dir")) == [str(root / "tool.py")]
    assert find(f"{more}/run tool.py tool.py") == [str(more / "run"), str(root / "tool.py")]
    assert find("make dir missing link") == []


def plant_program(workspace: Path) -> None:
    (workspace / "bin").mkdir()
    (workspace / "bin" / "uname").write_text("#!/bin/sh\necho planted\n")
    (workspace / "bin" / "uname").chmod(0o755)


def follow_nothing(request: PolicyRequest) -> PolicyRequest:
    return request


def swap_link(workspace: Path) -> None:
    (workspace / "notes").unlink()
    (workspace / "notes").symlink_to(".env")


@pytest.mark.requirement("runtime.standing.exact")
@pytest.mark.parametrize("followed", [True, False])
@pytest.mark.parametrize(
    ("command", "change"),
    [("uname", plant_program), ("nice uname", plant_program), ("cat notes", swap_link)],
)
async def test_a_rule_does_not_hold_for_what_its_words_have_come_to_mean_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, change: Any, *, followed: bool
):
    if not followed:
        monkeypatch.setattr(standing_rules, "follow_links", follow_nothing)
    kept = Kept(tmp_path, Policy.of(deny=["Read(**/.env)"]), sandbox=SandboxPolicy(mode="off"))
    monkeypatch.setenv("PATH", f"{kept.workspace / 'bin'}:/usr/bin:/bin")
    for name in ("notes", ".env"):
        (kept.workspace / name).write_text(f"{name}\n")
    outcomes: list[ToolOutcome] = []

    async def script(turn: StartTurn) -> AsyncIterator[Fact]:
        toolbox = Toolbox(turn.host)
        outcomes.append(await toolbox.call("run", {"command": command}))
        outcomes.append(await toolbox.call("run", {"command": command}))
        change(kept.workspace)
        outcomes.append(await toolbox.call("run", {"command": command}))
        yield make_fact(turn.host, "turn.completed")

    async with (
        open_journal("memory:") as journal,
        make_runtime(kept, journal, open_identity(tmp_path / "data"), script) as runtime,
    ):
        action = await ask(runtime, "one")
        await decide_shown(runtime, "thread", action, "approve", by="lena", always="thread")
        if followed:
            again = await open_action(runtime)
            await decide_shown(runtime, "thread", again, "deny", by="lena")
        await wait_for_end(runtime, "one")
    assert [outcome.ok for outcome in outcomes] == [True, True, not followed]
