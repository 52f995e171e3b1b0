"""The command as a real process: pipes, closed streams, terminals, encodings."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from factwire import __version__
from tests.cli.cli_commands import COMMAND, Factwire, lines, run
from tests.facts.samples import complete, wire

GOOD = lines(complete("turn.started", 1), complete("turn.completed", 2))
VERBS = (
    *("validate", "convert", "schema", "project", "play"),
    *("run", "threads", "resume", "approve", "deny", "cancel", "doctor"),
)


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """More than a pipe holds, in every kind of output."""
    path = tmp_path / "big.ndjson"
    path.write_text(lines(*(wire("tool.args", number) for number in range(4_000))))
    return path


@pytest.mark.requirement("cli.exit-codes")
def test_the_exit_codes_of_a_process(tmp_path: Path):
    assert run("validate", "-", stdin=GOOD.encode()) == (0, "valid: 2 facts, no issues\n", "")
    assert run("validate", "-", "--json", stdin=json.dumps(wire("tool.args")).encode()).code == 1
    assert run("validate", "-", stdin=b"{").code == 2
    missing = run("validate", tmp_path / "none")
    assert missing == (2, "", f"error: {tmp_path / 'none'} does not exist\n")
    usage = run("validate", "--nonsense")
    assert (usage.code, usage.out) == (2, "")
    assert "Traceback" not in usage.err
    assert "No such option: --nonsense" in usage.err


@pytest.mark.requirement("cli.help")
def test_the_installed_script_runs_the_command():
    script = Path(sys.executable).with_name("factwire")
    command = [str(script)] if script.exists() else COMMAND
    done = subprocess.run([*command, "--version"], capture_output=True, check=True, timeout=280)
    assert done.stdout.decode().split() == ["factwire", __version__]


@pytest.mark.requirement("cli.help")
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(factwire: Factwire, verb: str):
    done = factwire(verb, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"Usage: factwire {verb}" in done.out


@pytest.mark.requirement("cli.help")
def test_the_command_lists_its_verbs(factwire: Factwire):
    done = factwire("--help")
    assert (done.code, done.err) == (0, "")
    assert all(f" {verb} " in done.out for verb in VERBS)
    assert factwire("--version") == (0, f"factwire {__version__}\n", "")


@pytest.mark.requirement("cli.help")
def test_without_a_verb_the_help_is_shown(factwire: Factwire):
    done = factwire()
    assert "validate" in done.out + done.err
    assert "Traceback" not in done.err


@pytest.mark.requirement("cli.errors.closed-pipe")
@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        # One big write may end with its reader and still count as done.
        (["validate", "BIG"], {1, 2}),
        (["validate", "BIG", "--json"], {1, 2}),
        (["schema", "asyncapi"], {0, 2}),
        # Many writes do not.
        (["convert", "BIG"], {2}),
    ],
)
def test_a_reader_that_leaves_early_hears_no_complaint(
    arguments: list[str], codes: set[int], big: Path
):
    words = [str(big) if word == "BIG" else word for word in arguments]
    with subprocess.Popen(
        [*COMMAND, *words], bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) in codes


@pytest.mark.requirement("cli.errors.no-traceback")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["validate", "-"], ["convert", "-"]])
def test_a_full_disk_is_said_in_one_line(arguments: list[str]):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments],
            input=GOOD.encode(),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=280,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.decode().startswith("error: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.requirement("cli.errors.no-traceback")
@pytest.mark.parametrize(
    ("closed", "code", "error"),
    [("<&-", 2, "error: standard input is closed\n"), (">&-", 0, ""), ("2>&-", 0, "")],
)
def test_a_closed_stream_is_no_traceback(closed: str, code: int, error: str, tmp_path: Path):
    path = tmp_path / "facts"
    path.write_text(GOOD)
    source = "-" if closed == "<&-" else str(path)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, "validate", source],
        capture_output=True,
        timeout=280,
        check=False,
    )
    assert (done.returncode, done.stderr.decode()) == (code, error)


@pytest.mark.requirement("cli.errors.no-traceback")
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_terminal_that_cannot_show_a_character_is_no_traceback(encoding: str):
    data = json.dumps(wire("run.status", payload={"é漢": {"password": "x"}})).encode()
    done = run("validate", "-", stdin=data, environment={"PYTHONIOENCODING": encoding})
    assert (done.code, done.err) == (1, "")
    assert "secret_leak_risk" in done.out
    assert ("é漢" in done.out) == (encoding == "utf-8")


@pytest.mark.requirement("cli.errors.no-traceback")
def test_being_interrupted_is_130(factwire: Factwire, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("factwire.cli.fact_files._read_lines", interrupt)
    assert factwire("validate", "-") == (130, "", "")


def on_terminal(*arguments: str | Path) -> str:
    """What a person sees on standard error, with standard output elsewhere."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={k: v for k, v in environment.items() if k not in ("NO_COLOR", "CI")},
    ) as process:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 65_536):
                seen += piece
        except OSError:  # Linux: the other end has closed.
            pass
        process.wait(60)
    os.close(ours)
    return seen.decode()


@pytest.mark.requirement("cli.validate.progress")
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_person_sees_progress_on_a_long_input(tmp_path: Path):
    path = tmp_path / "long.ndjson"
    line = lines(complete("model.delta", 1, payload={"delta": "x" * 9_000}))
    path.write_text(line * 600)
    assert "validating" in on_terminal("validate", path)
    short = tmp_path / "short.ndjson"
    short.write_text(GOOD)
    assert on_terminal("validate", short) == ""


@pytest.mark.requirement("cli.validate.progress")
def test_a_pipe_sees_no_progress(tmp_path: Path):
    path = tmp_path / "long.ndjson"
    path.write_text(lines(complete("model.delta", 1, payload={"delta": "x" * 9_000})) * 600)
    assert run("convert", path).err == ""
