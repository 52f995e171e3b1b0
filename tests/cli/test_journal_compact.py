"""`factwire journal compact`: what it says beforehand is what it does."""

from pathlib import Path

import pytest

from factwire.journal import open_journal
from tests.cli.journal_files import (
    CommandLine,
    fact,
    journal,
    lines_of,
    make,
    request,
    start_command,
    streamed_turn,
)

__all__ = ["journal"]

pytestmark = pytest.mark.requirement("cli.journal.compact")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make(
        tmp_path / "runs.db",
        streamed_turn(0, "t1", "u1"),
        [request(20, "t2", "a1"), fact(21, thread_id="t2"), request(22, "t3", "a3")],
        [fact(23, event_class="action.resolved", thread_id="t3", action_id="a3")],
        streamed_turn(30, "t3", "u2", deltas=9),
        [fact(number, thread_id="t2") for number in range(50, 60)],
    )


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--spare", "20"],
        ["--keep-per-thread", "3"],
        ["--keep-facts", "5"],
        ["--max-age", "10"],
        ["--keep-deltas", "--keep-per-thread", "4"],
        ["--keep-deltas", "--keep-facts", "1", "--keep-per-thread", "2", "--max-age", "30"],
    ],
)
def test_a_dry_run_says_what_the_run_then_does(
    journal: CommandLine, path: Path, options: list[str]
):
    before = lines_of(path)
    would = journal("compact", path, "--dry-run", *options)
    assert (would.code, would.err) == (0, "")
    assert lines_of(path) == before
    did = journal("compact", path, *options)
    assert (did.code, did.err) == (0, "")
    assert would.text == did.text.replace("removed", "would remove", 1)
    gone = len(before) - len(lines_of(path))
    assert did.text.startswith(f"removed {gone} facts, ")
    assert set(lines_of(path)) <= set(before)
    assert journal("verify", path).code == 0


def test_increments_go_and_their_final_text_stays(journal: CommandLine, path: Path):
    assert journal("compact", path).text.startswith("removed 12 facts, ")
    kept = [b'"eventClass":"model.delta"' in line for _, line in lines_of(path)]
    assert kept.count(True) == 2
    assert journal("compact", path).text == "removed 0 facts, 0 bytes\n"


def test_an_open_action_holds_its_thread_and_is_named(journal: CommandLine, path: Path):
    done = journal("compact", path, "--keep-deltas", "--keep-facts", 1)
    assert "held back by open action in t2\n" in done.text
    assert lines_of(path)[0][0] == 9


def test_keeping_deltas_without_a_bound_leaves_nothing_to_do(journal: CommandLine, path: Path):
    done = journal("compact", path, "--keep-deltas")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "alone does nothing" in done.err


@pytest.mark.asyncio
async def test_beside_a_writer_only_reading_works(path: Path):
    async with open_journal(f"sqlite:{path}") as opened:
        await opened.append([fact(999)])
        for arguments, code in (
            (("compact", path), 2),
            (("import", "-", path), 1),
            (("compact", "--dry-run", path), 0),
            (("info", path), 0),
            (("verify", path), 0),
            (("cat", path, "--after", "f59"), 0),
            (("export", path, "-"), 0),
        ):
            with start_command(*arguments) as process:
                out, err = process.communicate(timeout=280)
            assert process.returncode == code, err
            if arguments[0] == "compact" and code:
                assert err.startswith(b"error: journal_busy: ")
                assert b"compact --edge URL" in err.replace(b"\n", b" ")
            if arguments[0] == "cat":
                assert out.startswith(b'{"id":"f999"')


@pytest.mark.parametrize("suffix", ["lock", "mark"])
def test_a_link_beside_a_journal_is_refused_and_its_target_kept(
    journal: CommandLine, path: Path, tmp_path: Path, suffix: str
):
    target, link = tmp_path / "important", Path(f"{path}-{suffix}")
    target.write_text("kept\n")
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    done = journal("compact", path)
    assert (done.code, "journal_unavailable" in done.err) == (2, True)
    assert target.read_text() == "kept\n"
    assert link.is_symlink()
