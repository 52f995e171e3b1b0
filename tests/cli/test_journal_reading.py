"""`factwire journal info`, `cat` and `verify`."""

import warnings
from pathlib import Path
from typing import Self

import pytest

from factwire.journal import Cursor, memory_journal
from factwire.journal.memory_journal import MemoryJournal
from tests.cli.journal_files import (
    CommandLine,
    damage,
    fact,
    journal,
    lines_of,
    make,
    start_command,
)

__all__ = ["journal"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    facts = [
        fact(1, project_id="p1", event_class="turn.started", turn_id="u1"),
        fact(2, thread_id="t2", session_id="s2", run_id="r2", event_class="tool.started"),
        fact(3, task_id="k1", event_class="tool.result", payload={"output": "é\u202e"}),
        fact(4, event_class="toolbox.opened"),
    ]
    return make(tmp_path / "runs.db", facts[:2], facts[2:3], facts[3:])


@pytest.mark.requirement("cli.journal.info")
def test_info_says_what_a_journal_holds(journal: CommandLine, path: Path):
    done = journal("info", path, "--json")
    figures = done.json()
    size, epoch = figures.pop("bytes"), figures.pop("epoch")
    assert size > 0
    assert figures == {
        "head": 4,
        "cursor": str(Cursor(epoch, 4)),
        "floor": 0,
        "facts": 4,
        "threads": 2,
        "followers": [],
        "lastActivity": "2026-06-10T09:00:00.000Z",
    }
    shown = journal("info", f"sqlite:{path}")
    assert (shown.code, shown.err) == (0, "")
    assert [line.split()[0] for line in shown.text.splitlines()] == [
        *("epoch", "head", "facts", "threads", "size", "last")
    ]
    assert epoch in shown.text


@pytest.mark.requirement("cli.journal.info")
def test_info_of_an_empty_journal(journal: CommandLine, tmp_path: Path):
    figures = journal("info", make(tmp_path / "empty.db"), "--json").json()
    assert (figures["head"], figures["facts"], figures["lastActivity"]) == (0, 0, None)
    assert "never" in journal("info", tmp_path / "empty.db").text


@pytest.mark.requirement("cli.journal.info")
def test_info_says_how_much_retention_removed(journal: CommandLine, path: Path):
    journal("compact", path, "--keep-facts", 1)
    figures = journal("info", path, "--json").json()
    assert (figures["head"], figures["floor"], figures["facts"]) == (4, 3, 1)
    assert "removed up to  3" in journal("info", path).text


@pytest.mark.requirement("cli.journal.cat")
def test_cat_hands_out_the_stored_bytes(journal: CommandLine, path: Path):
    done = journal("cat", path)
    assert (done.code, done.err) == (0, "")
    assert done.out == b"".join(line + b"\n" for _, line in lines_of(path))
    assert journal("cat", make(path.with_name("empty.db"))).out == b""


@pytest.mark.requirement("cli.journal.cat")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--thread", "t1"], "134"),
        (["--thread", "t2"], "2"),
        (["--project", "p1"], "1"),
        (["--session", "s2"], "2"),
        (["--run", "r2"], "2"),
        (["--turn", "u1"], "1"),
        (["--task", "k1"], "3"),
        (["--class", "tool"], "23"),
        (["--class", "tool.result", "--class", "turn"], "13"),
        (["--class", "tool", "--thread", "t1"], "3"),
        (["--limit", "2"], "12"),
        (["--limit", "0"], ""),
        (["--after", "f2"], "34"),
        (["--after", "f1", "--class", "tool", "--limit", "1"], "2"),
    ],
)
def test_cat_chooses_facts(journal: CommandLine, path: Path, options: list[str], expected: str):
    done = journal("cat", path, *options)
    stored = dict(lines_of(path))
    assert done.out == b"".join(stored[int(number)] + b"\n" for number in expected)


@pytest.mark.requirement("cli.journal.cat")
def test_cat_begins_after_a_cursor(journal: CommandLine, path: Path):
    epoch = journal("info", path, "--json").json()["epoch"]
    assert journal("cat", path, "--after", Cursor(epoch, 3)).out == lines_of(path)[3][1] + b"\n"


@pytest.mark.requirement("cli.journal.errors")
@pytest.mark.parametrize(
    ("after", "code"),
    [
        ("fw1.x", "cursor_malformed"),
        (str(Cursor("0" * 16, 1)), "cursor_unknown_epoch"),
        ("never-heard-of", "unknown_fact"),
    ],
)
def test_a_cursor_that_does_not_fit_is_one_line_with_its_code(
    journal: CommandLine, path: Path, after: str, code: str
):
    done = journal("cat", path, "--after", after)
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith(f"error: {code}: ")
    assert done.err.count("\n") == 1


@pytest.mark.requirement("cli.journal.errors")
@pytest.mark.parametrize("verb", ["info", "cat", "tail", "verify", "compact"])
def test_reading_a_journal_that_is_not_there_creates_none(
    journal: CommandLine, tmp_path: Path, verb: str
):
    done = journal(verb, tmp_path / "missing.db")
    assert (done.code, done.out) == (2, b"")
    assert done.err == f"error: no journal at {tmp_path / 'missing.db'}\n"
    assert list(tmp_path.iterdir()) == []
    assert journal(verb, tmp_path).code == 2


@pytest.mark.requirement("cli.journal.errors")
@pytest.mark.parametrize(
    "url", ["oracle://me:hunter2@host/db", "postgre://me:hunter2@host/db", "http://hunter2"]
)
def test_a_wrong_url_is_named_by_its_scheme_alone(journal: CommandLine, url: str):
    done = journal("info", url)
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith(f"error: {url.partition(':')[0]}:// is not a kind of journal")
    assert "hunter2" not in done.err


@pytest.mark.requirement("cli.journal.errors")
@pytest.mark.parametrize("url", ["runs?.db", "sqlite:", "sqlite:runs.db?mode=rx", "sqlite:x?y"])
def test_a_url_that_cannot_be_read_is_one_line(
    journal: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
):
    monkeypatch.chdir(tmp_path)
    for name in ("x", "runs.db"):
        make(tmp_path / name)
    done = journal("info", url)
    assert (done.code, done.out, done.err.count("\n")) == (2, b"", 1)


@pytest.mark.requirement("cli.journal.verify")
def test_verify_says_that_a_journal_is_intact(journal: CommandLine, path: Path):
    done = journal("verify", path)
    assert (done.code, done.err) == (0, "")
    assert done.text.startswith("intact: 4 facts, up to 4\nchain ")
    report = journal("verify", path, "--json").json()
    assert len(report.pop("chain")) == 64
    assert report == {"ok": True, "facts": 4, "intact": 4, "withheld": 0, "damage": None}


@pytest.mark.requirement("cli.journal.verify")
def test_verify_names_the_first_bad_place_and_what_is_intact(journal: CommandLine, path: Path):
    damage(path, 3)
    done = journal("verify", path)
    assert (done.code, done.err) == (1, "")
    assert done.text.startswith("damaged at 3: ")
    assert done.text.endswith("\nintact before that: 2 facts, up to 2\n")
    report = journal("verify", path, "--json")
    assert report.code == 1
    assert report.json()["ok"] is False
    assert (report.json()["damage"]["first"], report.json()["intact"]) == (3, 2)


@pytest.mark.requirement("cli.journal.verify")
def test_damage_to_the_newest_fact_is_named(journal: CommandLine, path: Path):
    damage(path, 4)
    done = journal("verify", path)
    assert (done.code, done.err) == (1, "")
    assert done.text.startswith("damaged at 4: ")


@pytest.mark.requirement("cli.journal.verify")
def test_what_is_no_database_is_damaged(journal: CommandLine, tmp_path: Path):
    (tmp_path / "junk.db").write_bytes(bytes(range(256)) * 20)
    done = journal("verify", tmp_path / "junk.db")
    assert (done.code, done.err) == (1, "")
    assert done.text.startswith("damaged at 1: ")
    assert done.text.endswith("\nit cannot be opened, so nothing more can be checked\n")
    assert journal("verify", tmp_path / "junk.db", "--json").json()["ok"] is False
    assert journal("info", tmp_path / "junk.db").err.startswith("error: journal_corrupt: ")


@pytest.mark.requirement("cli.journal.errors")
def test_cat_of_a_damaged_journal_stops_before_the_damage(journal: CommandLine, path: Path):
    sound = lines_of(path)
    damage(path, 3)
    done = journal("cat", path)
    assert done.code == 1
    assert done.err.startswith("error: journal_corrupt: ")
    assert b"".join(line + b"\n" for _, line in sound).startswith(done.out)


@pytest.mark.requirement("cli.journal.errors")
def test_a_reader_that_goes_away_ends_cat_quietly(tmp_path: Path):
    many = [fact(number, payload={"text": "x" * 1000}) for number in range(2000)]
    with start_command("cat", make(tmp_path / "runs.db", many)) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline().startswith(b'{"id":"f0"')
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) in (1, 2)


@pytest.mark.requirement("cli.journal.errors")
def test_a_warning_of_a_backend_is_one_line(journal: CommandLine, monkeypatch: pytest.MonkeyPatch):
    class Warns(MemoryJournal):
        async def __aenter__(self) -> Self:
            warnings.warn("an ack means \x1b little here", UserWarning, stacklevel=1)
            return await super().__aenter__()

    def open_warning_journal(_: str) -> MemoryJournal:
        return Warns()

    monkeypatch.setattr(memory_journal, "open_memory", open_warning_journal)
    done = journal("info", "memory:")
    assert (done.code, done.err) == (0, "warning: an ack means \\x1b little here\n")
