"""Cards: with the masks filled in, what is shown is what runs, whatever a secret looks like."""

import itertools
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts.secret_shapes import find_secrets
from factwire.journal import open_journal
from factwire.runtime import ActionChanged, ActionNotShown, Runtime
from factwire.runtime.action_cards import MASK, MaskedText, mask_secrets
from factwire.runtime.agents import ShellAgent
from factwire.runtime.policy import Policy, PolicyRequest, hash_shown, show_request
from factwire.runtime.policy.shell_syntax import read_shell
from tests.runtime.agents import decide_shown, facts_of, open_action, wait_for_end
from tests.runtime.toolboxes import Kept, use

SECRET = "hunter2hunter2A9"
LEADS = (
    "echo cookie: a={}",
    "echo token='{}",
    'PASSWORD="{}',
    "export API_KEY={}",
    "curl -H 'Authorization: Bearer {}",
    "curl --password {}",
    "curl -u ann:{}",
    "psql postgres://ann:{}@db/x",
    'echo {{"password": "{}"}}',
    "git clone https://ghp_abcdefghijklmnopqrstuvwxyz0123456789{}",
    "FOO=1 BAR={} SECRET_TOKEN={}",
)
ENDS = (
    "; touch pwned",
    " && touch pwned",
    " | touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "\ntouch pwned",
    " > touch pwned",
    "<(touch pwned)",
    "' ; touch pwned #",
    '" ; touch pwned #',
    "&touch pwned",
    "\\\n touch pwned",
    "${x:-$(touch pwned)}",
)
FRAMES = ("{}", 'sh -c "{}"', "eval '{}'")
CORPUS = [
    frame.format(lead.format(*[SECRET] * lead.count("{}")) + end)
    for lead, end, frame in itertools.product(LEADS, ENDS, FRAMES)
]
MEANING = re.compile(r"[\s;&|<>(){}$`\"'\\*?\[\]~#!]")
"""Everything that ends a word, or by which a shell does something else than take it as it is."""


def fill(masked: MaskedText) -> str:
    if not masked.secrets:
        return masked.text
    pieces = masked.text.split(MASK)
    assert len(pieces) == len(masked.secrets) + 1
    return "".join(map("".join, itertools.zip_longest(pieces, masked.secrets, fillvalue="")))


def assert_shows_what_runs(text: str) -> MaskedText:
    masked = mask_secrets(text)
    assert fill(masked) == text
    assert not [secret for secret in masked.secrets if MEANING.search(secret)]
    return masked


@pytest.mark.nightly
@pytest.mark.requirement("runtime.approval.exact")
@pytest.mark.parametrize("command", CORPUS)
def test_a_mask_covers_no_operator_no_quote_no_substitution_and_no_program(command: str):
    request = PolicyRequest(tool="Bash", workspace="/w", cwd="/w", command=command)
    shown = show_request(request)
    masked = assert_shows_what_runs(shown)
    assert "touch pwned" in masked.text
    assert hash_shown(fill(masked)) == hash_shown(shown)
    plain, whole = read_shell(mask_secrets(command).text.replace(MASK, "x")), read_shell(command)
    assert [each.words[:1] for each in plain.commands] == [
        each.words[:1] for each in whole.commands
    ]


@pytest.mark.requirement("runtime.approval.exact")
def test_the_corpus_is_large_and_masks_most_secrets_within_themselves():
    masked = [mask_secrets(command) for command in CORPUS]
    assert len(set(CORPUS)) >= 200
    assert sum(bool(each.secrets) for each in masked) >= len(CORPUS) * 0.6
    hidden = [
        command
        for command, each in zip(CORPUS, masked, strict=True)
        if find_secrets(command) and not each.secrets and not each.is_partly_open
    ]
    assert hidden == []


@pytest.mark.nightly
@pytest.mark.requirement("runtime.approval.exact")
@given(
    st.lists(
        st.one_of(
            st.sampled_from([*LEADS, *ENDS, SECRET, MASK, "⟦", "AKIAIOSFODNN7EXAMPLE", "env -u "]),
            st.text(max_size=12),
        ),
        max_size=8,
    ).map("".join)
)
def test_masks_filled_in_are_what_runs(text: str):
    assert_shows_what_runs(text)
    shown = show_request(PolicyRequest(tool="Bash", workspace="/w", command=text))
    assert hash_shown(fill(assert_shows_what_runs(shown))) == hash_shown(shown)


@pytest.mark.requirement("runtime.approval.exact")
@pytest.mark.parametrize(
    "command",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "FOO=1 AKIAIOSFODNN7EXAMPLE x",
        "env -u token: evilprogram99",
        "sudo AKIAIOSFODNN7EXAMPLE",
        "true; 'AKIAIOSFODNN7EXAMPLE' x",
        "if AKIAIOSFODNN7EXAMPLE",
    ],
)
def test_what_may_be_the_program_is_shown_and_marked(command: str):
    assert find_secrets(command)
    assert mask_secrets(command) == MaskedText(text=command, is_partly_open=True)


TOKEN_NAMES = ("ghp_a8Kd93jfKq02LxMv7Rt5Yw1Zb4Nc6Pe8Qs9A", "AKIAIOSFODNN7EXAMPLE")
"""What looks like a token, and may as well be the name of a file that an agent has made."""

DECIDING = (
    *("make {}", "npm run {}", "npx {}", "docker run {}", "git {}", "pip install {}", "tox -e {}"),
    *(
        "rm -rf {}",
        "cp x {}",
        "python {}",
        "uv run {}",
        "mytool {}",
        "make -f {}",
        "poetry run ./{}",
    ),
    *("GIT_SSH_COMMAND={} git fetch", "LD_PRELOAD=./{} ls", "PATH={}:$PATH ls", "scp host:{} ."),
    *("RESTIC_PASSWORD_COMMAND={} restic", "BORG_PASSCOMMAND=./{} borg", "x --token-command={}"),
    *(
        "x --password-command {}",
        "SUDO_ASKPASS={} sudo -A ls",
        "PASSWORD=/tmp/{} x",
        "curl https://{}/x",
    ),
)
"""Commands in which the name of a file, a program or a host decides what happens."""


@pytest.mark.requirement("runtime.approval.exact")
@pytest.mark.parametrize("name", TOKEN_NAMES)
@pytest.mark.parametrize("command", DECIDING)
def test_a_name_that_looks_like_a_token_is_shown_where_it_decides_what_happens(
    command: str, name: str
):
    line = command.format(name)
    for form in (line, tuple(line.split()), ("sh", "-c", line)):
        request = PolicyRequest(tool="Bash", workspace="/w", cwd="/w", command=form)
        assert name in assert_shows_what_runs(show_request(request)).text


@pytest.mark.requirement("runtime.approval.exact")
@pytest.mark.parametrize("name", TOKEN_NAMES)
def test_a_path_a_host_an_argument_and_a_workspace_are_shown(name: str):
    request = PolicyRequest(
        tool="edit",
        workspace=f"/w/{name}",
        paths=(f"{name}/x",),
        url=f"https://{name}/",
        args={"to": name},
    )
    shown = show_request(request)
    assert mask_secrets(shown) == MaskedText(text=shown, is_partly_open=True)


@pytest.mark.requirement("runtime.approval.exact")
@pytest.mark.parametrize(
    "argv",
    [
        ("{}", "x"),
        ("sh", "{}"),
        ("env", "A=b", "{}"),
        ("xargs", "-a", "f", "{}"),
        ("sudo", "-n", "token:", "{}"),
        ("bash", "-c", "true; {}"),
        (*("padding-" * 1500,), "sh", "{}"),
    ],
)
def test_the_program_of_an_argv_is_shown(argv: tuple[str, ...]):
    command = tuple(word.format(TOKEN_NAMES[0]) for word in argv)
    shown = show_request(PolicyRequest(tool="run", workspace="/w", command=command))
    assert mask_secrets(shown) == MaskedText(text=shown, is_partly_open=True)


@pytest.mark.requirement("runtime.approval.exact")
@pytest.mark.parametrize(
    "command",
    [
        "TOKEN={} gh api",
        "curl -H 'Authorization: Bearer {}' h",
        "curl -H 'X-Api: {}' h",
        "git clone https://x:{}@h/r",
        "git clone https://{}@h/r",
        "gh auth --token {}",
        "x --password={}",
        'echo \'{{"password": "{}"}}\'',
    ],
)
def test_a_credential_that_its_place_names_is_masked(command: str):
    line = command.format(TOKEN_NAMES[0])
    argv = tuple(shlex.split(line))
    for form in (line, argv, ("sh", "-c", line)):
        masked = assert_shows_what_runs(
            show_request(PolicyRequest(tool="Bash", workspace="/w", command=form))
        )
        assert TOKEN_NAMES[0] not in masked.text
        assert not masked.is_partly_open


HIDING = f"echo cookie: a={SECRET}; touch pwned"


async def _ask_shell(runtime: Runtime, command: str = HIDING) -> str:
    await runtime.submit("thread", "shell", command, turn_id="turn")
    return await open_action(runtime)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.approval.exact")
async def test_a_person_sees_what_runs_and_the_journal_holds_no_secret(tmp_path: Path):
    kept = Kept(tmp_path, Policy())
    async with kept.run_agents({"shell": ShellAgent()}) as runtime:
        action = await _ask_shell(runtime)
        card = await runtime.read_card("thread", action)
        with pytest.raises(ActionChanged):
            await runtime.decide("thread", action, "approve", by="lena", args_hash="")
        await decide_shown(runtime, "thread", action, "approve", by="lena")
        assert await wait_for_end(runtime, "turn") == "completed"
        facts = await facts_of(runtime)

    assert f"| echo cookie: a={MASK}; touch pwned" in (card.shown or "")
    assert (card.masks, card.has_open_secret) == (1, False)
    assert (kept.workspace / "pwned").exists()
    [asked] = [fact for fact in facts if fact.event_class == "action.required"]
    assert asked.payload["argsHash"] == card.args_hash
    assert SECRET not in str(
        [fact.payload for fact in facts if fact.event_class != "process.output"]
    )


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.approval.exact")
async def test_what_was_hidden_can_only_be_denied_after_a_restart(tmp_path: Path):
    kept = Kept(tmp_path, Policy())
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        async with kept.run_agents({"shell": ShellAgent()}, journal) as runtime:
            action = await _ask_shell(runtime)
        async with kept.run_agents({"shell": ShellAgent()}, journal) as runtime:
            card = await runtime.read_card("thread", action)
            with pytest.raises(ActionNotShown, match="no longer in memory"):
                await decide_shown(runtime, "thread", action, "approve", by="lena")
            await decide_shown(runtime, "thread", action, "deny", by="lena")
            assert await wait_for_end(runtime, "turn") == "failed"

    assert (card.shown, card.masks) == (None, 0)
    assert card.reason
    assert not (kept.workspace / "pwned").exists()


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.approval.exact")
async def test_what_was_recorded_whole_is_shown_after_a_restart(tmp_path: Path):
    kept = Kept(tmp_path, Policy())
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        async with kept.run_agents({"shell": ShellAgent()}, journal) as runtime:
            action = await _ask_shell(runtime, "touch made")
            before = await runtime.read_card("thread", action)
        async with kept.run_agents({"shell": ShellAgent()}, journal) as runtime:
            assert await runtime.read_card("thread", action) == before
            await decide_shown(runtime, "thread", action, "approve", by="lena")
            assert await wait_for_end(runtime, "turn") == "completed"
    assert (kept.workspace / "made").exists()


def _list_files(folder: Path) -> list[Path]:
    return list(folder.rglob("*"))


def _swap(folder: Path) -> None:
    """Put another folder of the same name in the place of one."""
    folder.rename(folder.with_name(f"{folder.name}-before"))
    folder.mkdir()


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.approval.place")
@pytest.mark.parametrize(
    ("tool", "which"), [("run", "workspace"), ("run", "cwd"), ("write", "workspace")]
)
async def test_what_was_shown_for_one_folder_does_not_run_in_another(
    tmp_path: Path, tool: str, which: str
):
    kept = Kept(tmp_path, Policy())
    inner = kept.workspace / "inner"
    inner.mkdir()
    args = {"run": {"command": "touch made", "cwd": "inner"}}.get(
        tool, {"path": "inner/made", "content": "x"}
    )

    async def meanwhile(runtime: Runtime) -> None:
        action = await open_action(runtime)
        _swap(kept.workspace if which == "workspace" else inner)
        (kept.workspace / "inner").mkdir(exist_ok=True)
        await decide_shown(runtime, "thread", action, "approve", by="lena")

    used = await use(kept, (tool, args), meanwhile=meanwhile)

    assert [outcome.category for outcome in used.outcomes] == ["place_changed"]
    assert [path for path in _list_files(tmp_path) if path.name == "made"] == []
