"""The same commands on journals in real servers."""

import signal
from pathlib import Path
from uuid import uuid4

import pytest

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
from tests.journal.nats_server import nats_server
from tests.journal.postgres_server import postgres

__all__ = ["journal", "nats_server", "postgres"]


STAY_RESERVED = "the ids of 4 removed facts stay reserved"
pytestmark = pytest.mark.requirement("cli.journal.backends")

FACTS = [*streamed_turn(0, "t1", "u1"), request(20, "t2", "a1"), fact(21, thread_id=None)]


@pytest.fixture(params=["postgres", "nats_server"])
def url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param).url(f"cli{uuid4().hex}")


def test_a_journal_in_a_server_is_shown_and_verified(journal: CommandLine, url: str):
    make(url, FACTS[:5], FACTS[5:])
    figures = journal("info", url, "--json")
    assert figures.code == 0, figures.err
    found = figures.json()
    assert (found["head"], found["facts"], found["threads"]) == (10, 10, 2)
    everything = journal("cat", url)
    assert everything.out == b"".join(line + b"\n" for _, line in lines_of(url))
    chosen = journal("cat", url, "--class", "model.delta", "--limit", 2, "--after", "f1")
    assert chosen.out == b"".join(line + b"\n" for _, line in lines_of(url)[2:4])
    verified = journal("verify", url)
    assert (verified.code, verified.text.partition("\n")[0]) == (0, "intact: 10 facts, up to 10")


def test_a_journal_moves_between_a_server_and_a_file(
    journal: CommandLine, url: str, tmp_path: Path
):
    path = make(tmp_path / "runs.db", FACTS, snapshots=["t1"])
    export = journal("export", path, "-").out
    into = journal("import", "-", url, stdin=export)
    assert (into.code, "imported 10 facts; epoch " in into.err) == (0, True), into.err
    back = journal("export", url, tmp_path / "back.ndjson")
    assert (back.code, back.err) == (0, "exported 10 facts and 1 snapshot\n")
    assert journal("import", tmp_path / "back.ndjson", tmp_path / "back.db").code == 0
    assert lines_of(tmp_path / "back.db") == lines_of(path)


def test_a_compacted_journal_moves_through_a_server_and_stays_the_same(
    journal: CommandLine, url: str, tmp_path: Path
):
    path = make(tmp_path / "runs.db", FACTS, snapshots=["t1"])
    assert journal("compact", path).code == 0
    export = journal("export", path, "-").out
    into = journal("import", "-", url, stdin=export)
    assert (into.code, STAY_RESERVED in into.err) == (0, True), into.err
    assert lines_of(url) == lines_of(path)
    assert journal("verify", url).code == 0
    back = journal("import", "-", tmp_path / "back.db", stdin=journal("export", url, "-").out)
    assert (back.code, STAY_RESERVED in back.err) == (0, True), back.err
    assert lines_of(tmp_path / "back.db") == lines_of(path)


def test_a_journal_in_a_server_is_compacted_as_foretold(journal: CommandLine, url: str):
    make(url, FACTS)
    would = journal("compact", url, "--dry-run")
    did = journal("compact", url)
    assert (did.code, did.text.startswith("removed 4 facts, ")) == (0, True), did.err
    assert would.text == did.text.replace("removed", "would remove", 1)
    assert journal("verify", url).code == 0


def test_a_journal_in_a_server_is_followed(url: str):
    make(url, FACTS)
    with start_command("tail", url, "--lines", 2) as process:
        assert process.stdout
        assert process.stderr
        first = [process.stdout.readline().split()[0] for _ in range(2)]
        make(url, [fact(100)])
        assert [*first, process.stdout.readline().split()[0]] == [b"9", b"10", b"11"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    "gone",
    ["postgres://me:hunter2@127.0.0.1:1/x?patience=0.1", "nats://127.0.0.1:1/x?patience=0.1"],
)
def test_a_server_that_does_not_answer_is_one_line(journal: CommandLine, gone: str):
    done = journal("info", gone)
    assert (done.code, done.out) == (2, b"")
    assert "error: journal_unavailable: " in done.err
    assert "hunter2" not in done.err
    assert "Traceback" not in done.err
