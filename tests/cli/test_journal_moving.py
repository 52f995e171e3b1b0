"""`factwire journal export` and `import`: lossless, and nothing of a damaged export is taken."""

import asyncio
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factwire.cli import journal_export_format as journal_lines
from factwire.cli import journal_transfer
from factwire.facts.fact import Fact
from factwire.facts.redaction import redact_value
from factwire.journal import AppendResult, ConflictingFact, open_journal
from tests.cli.journal_files import (
    CommandLine,
    damage,
    fact,
    journal,
    lines_of,
    make,
    request,
    streamed_turn,
)

__all__ = ["journal"]

lossless = pytest.mark.requirement("cli.journal.export.lossless")
refused = pytest.mark.requirement("cli.journal.import.refused")
compacted = pytest.mark.requirement("cli.journal.import.renumber")

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)


def facts_of(export: bytes) -> list[tuple[int, bytes]]:
    lines = [msgspec.json.decode(line, type=dict[str, msgspec.Raw]) for line in export.splitlines()]
    return [
        (msgspec.json.decode(line["seq"]), bytes(line["fact"])) for line in lines if "fact" in line
    ]


def header_of(export: bytes) -> dict[str, Any]:
    return msgspec.json.decode(export.splitlines()[0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make(
        tmp_path / "runs.db",
        streamed_turn(1, "t1", "u1"),
        [fact(50, thread_id=None), fact(51, thread_id="t2", extra={"vendor": {"x": "é\u2028"}})],
        snapshots=("t1", "t2"),
    )


@lossless
def test_an_export_holds_every_fact_with_its_seq_and_bytes(journal: CommandLine, path: Path):
    target = path.with_name("runs.ndjson")
    done = journal("export", path, target)
    assert (done.code, done.out) == (0, b"")
    assert done.err == "exported 10 facts and 2 snapshots\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    export = target.read_bytes()
    assert facts_of(export) == lines_of(path)
    header, verified = header_of(export), journal("verify", path, "--json").json()
    figures = journal("info", path, "--json").json()
    assert (header["head"], header["floor"], header["facts"]) == (10, 0, 10)
    assert (header["epoch"], header["chain"]) == (figures["epoch"], verified["chain"])
    assert journal("export", path, "-").out == export
    assert [each.name for each in path.parent.glob(".*")] == []


@lossless
def test_an_import_has_the_same_seqs_bytes_and_snapshots_and_an_epoch_of_its_own(
    journal: CommandLine, path: Path
):
    export = journal("export", path, "-").out
    new = path.with_name("new.db")
    done = journal("import", "-", new, stdin=export)
    epoch = journal("info", new, "--json").json()["epoch"]
    assert (done.code, done.err) == (0, f"imported 10 facts; epoch {epoch}\n")
    assert epoch != header_of(export)["epoch"]
    assert lines_of(new) == lines_of(path)
    again = journal("export", new, "-").out
    assert [line.partition(b',"check"')[0] for line in again.splitlines()[1:]] == [
        line.partition(b',"check"')[0] for line in export.splitlines()[1:]
    ]


@lossless
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(st.lists(st.dictionaries(st.text(), values), min_size=1, max_size=4))
def test_whatever_facts_hold_comes_back(
    journal: CommandLine, tmp_path: Path, payloads: list[dict[str, Any]]
):
    for each in tmp_path.iterdir():
        each.unlink()
    # An import would redact what the names of some keys say is a secret.
    clean = [cast("dict[str, Any]", redact_value(payload)[0]) for payload in payloads]
    facts = [fact(number, payload=payload) for number, payload in enumerate(clean)]
    path = make(tmp_path / "runs.db", facts)
    export = journal("export", path, "-").out
    assert journal("import", "-", tmp_path / "new.db", stdin=export).code == 0
    assert lines_of(tmp_path / "new.db") == lines_of(path)


@lossless
def test_an_empty_journal_is_exported_and_imported(journal: CommandLine, tmp_path: Path):
    export = journal("export", make(tmp_path / "empty.db"), "-").out
    assert (header_of(export)["facts"], len(export.splitlines())) == (0, 2)
    done = journal("import", "-", tmp_path / "new.db", stdin=export)
    assert (done.code, done.err.startswith("imported 0 facts; epoch ")) == (0, True)


def _leave_empty(path: Path, kind: str) -> Path:
    """A file that is there and holds no facts."""
    if kind == "journal":
        return make(path)
    path.touch()
    if kind == "database":
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE gone(a)")
            database.execute("DROP TABLE gone")
            database.commit()
    return path


@pytest.mark.requirement("cli.journal.import.existing")
@pytest.mark.parametrize("kind", ["file", "database", "journal"])
def test_an_import_into_an_empty_file_that_is_there_is_the_same_as_into_a_new_one(
    journal: CommandLine, path: Path, kind: str
):
    export, target = path.with_name("runs.ndjson"), _leave_empty(path.with_name("new.db"), kind)
    journal("export", path, export)
    assert journal("import", export, target).code == 0
    assert lines_of(target) == lines_of(path)
    assert journal("verify", target).code == 0


@pytest.mark.requirement("cli.journal.import.existing")
@pytest.mark.parametrize("kind", ["file", "database", "journal"])
def test_an_import_into_a_file_that_is_there_goes_on_after_a_kill(
    journal: CommandLine, path: Path, kind: str
):
    export, target = path.with_name("runs.ndjson"), _leave_empty(path.with_name("new.db"), kind)
    journal("export", path, export)
    assert import_and_die("_copy_snapshots", export, target) == -signal.SIGKILL
    repeated = journal("import", export, target)
    assert (repeated.code, "--append" in repeated.err) == (1, True)
    assert journal("import", "--append", export, target).code == 0
    assert lines_of(target) == lines_of(path)
    assert journal("verify", target).code == 0


@pytest.mark.requirement("cli.journal.import.existing")
def test_a_database_of_another_program_is_refused_and_left_as_it_is(
    journal: CommandLine, path: Path
):
    export, target = path.with_name("runs.ndjson"), path.with_name("other.db")
    journal("export", path, export)
    with closing(sqlite3.connect(target)) as database:
        database.execute("CREATE TABLE theirs(a)")
        database.commit()
    done = journal("import", export, target)
    assert (done.code, "journal_unavailable" in done.err) == (2, True)
    assert "belongs to another program" in done.err
    with closing(sqlite3.connect(target)) as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


@lossless
def test_many_facts_go_in_batches(
    journal: CommandLine, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(journal_transfer, "_BATCH", 3)
    export = journal("export", path, "-").out
    journal("import", "-", path.with_name("new.db"), stdin=export)
    assert lines_of(path.with_name("new.db")) == lines_of(path)


@pytest.mark.requirement("cli.journal.import.append")
def test_an_import_into_a_journal_with_facts_needs_append_and_is_idempotent(
    journal: CommandLine, path: Path
):
    export = path.with_name("runs.ndjson")
    journal("export", path, export)
    other = make(path.with_name("other.db"), [fact(99, thread_id="t9")])
    done = journal("import", export, other)
    assert (done.code, len(lines_of(other))) == (1, 1)
    assert "--append" in done.err
    for expected in ("imported 10 facts;", "imported 0 facts, 10 already existed;"):
        done = journal("import", "--append", export, other)
        assert (done.code, expected in done.err) == (0, True)
        assert "left out 2 snapshots" in done.err
    assert [line for _, line in lines_of(other)[1:]] == [line for _, line in lines_of(path)]


@pytest.mark.requirement("cli.journal.import.append")
def test_a_fact_that_the_journal_refuses_is_named_by_its_line(journal: CommandLine, path: Path):
    export = journal("export", path, "-").out
    other = make(path.with_name("other.db"), [fact(50, thread_id=None, title="another body")])
    done = journal("import", "--append", "-", other, stdin=export)
    assert done.code == 1
    assert done.err.startswith("error: line 10: conflicting_fact: ")
    assert done.err.endswith("; the lines before it were imported\n")
    assert len(lines_of(other)) == 9


@refused
def test_a_changed_byte_is_refused_with_its_line_and_nothing_is_written(
    journal: CommandLine, path: Path
):
    export = journal("export", path, "-").out
    source = Random(5)
    for _ in range(200):
        at = source.randrange(len(export))
        changed = bytes([export[at] ^ (1 << source.randrange(8))])
        damaged = export[:at] + changed + export[at + 1 :]
        done = journal("import", "-", path.with_name("new.db"), stdin=damaged)
        line = export.count(b"\n", 0, at) + 1
        assert done.code == 1
        assert done.err.startswith(f"error: line {line}: ")
        assert not path.with_name("new.db").exists()


@refused
def test_an_export_that_ends_early_is_refused_wherever_it_ends(journal: CommandLine, path: Path):
    export = journal("export", path, "-").out
    lines = export.splitlines(keepends=True)
    cuts = [b"".join(lines[:count]) for count in range(len(lines))]
    for cut in (*cuts, export[:-1], export[:500]):
        done = journal("import", "-", path.with_name("new.db"), stdin=cut)
        assert done.code == 1
        expected = cut.count(b"\n") + 1
        assert done.err.startswith(f"error: line {expected}: ")
    assert not path.with_name("new.db").exists()


@refused
def test_lines_that_are_missing_repeated_or_moved_are_refused(journal: CommandLine, path: Path):
    lines = journal("export", path, "-").out.splitlines(keepends=True)
    wrong = {
        4: [*lines[:3], *lines[4:]],
        5: [*lines[:4], lines[3], *lines[4:]],
        3: [*lines[:2], lines[3], lines[2], *lines[4:]],
        len(lines) + 1: [*lines, lines[1]],
    }
    for number, given_lines in wrong.items():
        done = journal("import", "-", path.with_name("new.db"), stdin=b"".join(given_lines))
        assert (done.code, done.err.startswith(f"error: line {number}: ")) == (1, True)


def close_lines(*contents: object) -> bytes:
    """An export with right checks, whatever it says."""
    writer = journal_lines.LineWriter()
    return b"".join(writer._close_line(msgspec.json.encode(content)[:-1]) for content in contents)


HEADER = {
    "factwire": "journal-export/v1",
    "epoch": "0" * 16,
    "head": 1,
    "floor": 0,
    "chain": "",
    "facts": 1,
}
END = {"end": True, "facts": 1, "snapshots": 0}
FACT = {"seq": 1, "fact": {"id": "a"}}


@refused
@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"id":"a"}\n', 1),
        (b"\n", 1),
        (b"\xff\xfe\n", 1),
        (close_lines(HEADER | {"factwire": "journal-export/v9"}, FACT, END), 1),
        (close_lines(FACT, END), 1),
        (close_lines(HEADER, HEADER, END), 2),
        (close_lines(HEADER, FACT, END), 2),
        (close_lines(HEADER, {"seq": 1, "fact": 7}, END), 2),
        (close_lines(HEADER, {"seq": "x", "fact": {}}, END), 2),
        (close_lines(HEADER, {"what": 1}, END), 2),
        (close_lines(HEADER | {"facts": 0}, END | {"facts": 1}), 2),
    ],
)
def test_what_is_no_export_is_refused(
    journal: CommandLine, tmp_path: Path, content: bytes, line: int
):
    done = journal("import", "-", tmp_path / "new.db", stdin=content)
    assert (done.code, done.out) == (1, b"")
    assert done.err.startswith(f"error: line {line}: ")
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@refused
def test_a_line_without_end_is_not_read_into_memory(
    journal: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(journal_lines, "LINE_BYTES", 100)
    done = journal("import", "-", tmp_path / "new.db", stdin=b"x" * 1000)
    assert done.err.startswith("error: line 1: the line is too long; ")


def first_version(export: bytes) -> bytes:
    """The same export as an earlier Factwire would have written it."""
    lines = [msgspec.json.decode(line, type=dict[str, msgspec.Raw]) for line in export.splitlines()]
    lines = [line for line in lines if "removed" not in line or "end" in line]
    lines = [line for line in lines if "thread" not in line]
    for line in lines:
        del line["check"]
    lines[0]["factwire"] = msgspec.Raw(b'"journal-export/v1"')
    del lines[-1]["removed"], lines[-1]["threads"]
    return close_lines(*lines)


@lossless
def test_a_compacted_journal_comes_back_with_its_gaps_and_removed_ids(
    journal: CommandLine, path: Path
):
    journal("compact", path, "--keep-facts", 7)
    export = journal("export", path, "-").out
    seqs = [seq for seq, _ in facts_of(export)]
    assert (seqs, header_of(export)["floor"]) == ([4, 7, 8, 9, 10], 3)
    new = path.with_name("new.db")
    done = journal("import", "-", new, stdin=export)
    assert done.code == 0, done.err
    assert done.err.startswith("imported 5 facts; epoch ")
    assert "seqs are unchanged; the ids of 5 removed facts stay reserved\n" in done.err
    assert lines_of(new) == facts_of(export)
    assert journal("verify", new).code == 0
    again = journal("export", new, "-").out
    assert bare(again) == bare(export)
    removed = streamed_turn(1, "t1", "u1")[2]
    changed = msgspec.structs.replace(removed, title="another")
    assert repeat(new, removed) == ((3,), (True,))
    with pytest.raises(ConflictingFact):
        repeat(new, changed)


@lossless
def test_removed_facts_of_which_nothing_is_known_are_counted(journal: CommandLine, path: Path):
    journal("compact", path)
    export = journal("export", path, "-").out
    lines = [msgspec.json.decode(line, type=dict[str, msgspec.Raw]) for line in export.splitlines()]
    lines = [line for line in lines if "removed" not in line or "end" in line]
    for line in lines:
        del line["check"]
    lines[-1]["removed"] = msgspec.Raw(b"0")
    new = path.with_name("new.db")
    done = journal("import", "-", new, stdin=close_lines(*lines))
    assert done.code == 0, done.err
    assert "4 removed facts not recorded; their ids can be used again\n" in done.err
    assert lines_of(new) == facts_of(export)
    assert journal("verify", new).code == 0


def bare(export: bytes) -> list[dict[str, Any]]:
    """An export without what is its own: checks, epoch and chain."""
    lines = [msgspec.json.decode(line) for line in export.splitlines()]
    for line in lines:
        for own in ("check", "epoch", "chain"):
            line.pop(own, None)
    return lines


def repeat(path: Path, known: Fact) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    async def append() -> AppendResult:
        async with open_journal(f"sqlite:{path}") as opened:
            return await opened.append([known])

    answer = asyncio.run(append())
    return answer.seqs, answer.repeated


@compacted
def test_seqs_that_retention_removed_are_renumbered_and_that_is_said(
    journal: CommandLine, path: Path
):
    journal("compact", path, "--keep-deltas", "--keep-facts", 4)
    export = first_version(journal("export", path, "-").out)
    assert [seq for seq, _ in facts_of(export)] == [7, 8, 9, 10]
    assert header_of(export)["floor"] == 6
    new = path.with_name("new.db")
    done = journal("import", "-", new, stdin=export)
    assert done.code == 0
    assert "seqs were renumbered: 7–10 are now 1–4\n" in done.err
    assert "left out 2 snapshots" in done.err
    assert [line for _, line in lines_of(new)] == [line for _, line in facts_of(export)]


@compacted
def test_sequences_with_gaps_are_closed_only_on_request(journal: CommandLine, path: Path):
    journal("compact", path)
    export = first_version(journal("export", path, "-").out)
    assert [seq for seq, _ in facts_of(export)] == [1, 2, 7, 8, 9, 10]
    new = path.with_name("new.db")
    done = journal("import", "-", new, stdin=export)
    assert (done.code, new.exists()) == (1, False)
    assert done.err.startswith("error: line 4: thread 't1' goes from sequence 2 to 7: ")
    assert "--renumber" in done.err

    done = journal("import", "--renumber", "-", new, stdin=export)
    assert done.code == 0
    assert "seqs were renumbered: 1–10 are now 1–6\n" in done.err
    assert "sequences were renumbered in threads that had gaps\n" in done.err
    decoded = [msgspec.json.decode(line) for _, line in lines_of(new)]
    assert [each.get("sequence") for each in decoded] == [1, 2, 3, 4, None, 1]
    before = [msgspec.json.decode(line) for _, line in facts_of(export)]
    for each in (*decoded, *before):
        each.pop("sequence", None)
    assert decoded == before
    again = journal("import", "--renumber", "--append", "-", new, stdin=export)
    assert "imported 0 facts, 6 already existed;" in again.err


@lossless
def test_a_damaged_journal_is_not_exported(journal: CommandLine, path: Path):
    damage(path, 1)
    done = journal("export", path, path.with_name("out.ndjson"))
    assert done.code == 1
    assert done.err.startswith("error: journal_corrupt: ")
    assert not path.with_name("out.ndjson").exists()


@lossless
def test_an_export_that_fails_leaves_the_old_file(
    journal: CommandLine, path: Path, monkeypatch: pytest.MonkeyPatch
):
    target = path.with_name("runs.ndjson")
    target.write_text("yesterday's")

    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal_lines.LineWriter, "fact", full)
    done = journal("export", path, target)
    assert (done.code, "No space left on device" in done.err) == (2, True)
    assert target.read_text() == "yesterday's"
    assert [each.name for each in path.parent.glob(".*")] == []


@pytest.mark.asyncio
async def test_an_export_leaves_out_what_is_appended_while_it_runs(tmp_path: Path):
    from io import BytesIO

    from factwire.cli import journal_transfer as journal_export

    class Growing(BytesIO):
        """Takes lines slowly: a fact is appended for the first of them."""

        def write(self, data: Any, /) -> int:
            if not self.tell():
                appending.append([fact(1000)])
            return super().write(data)

    appending: list[list[Fact]] = []
    async with open_journal(f"sqlite:{tmp_path / 'runs.db'}") as opened:
        await opened.append([fact(1), request(2, "t1", "a1")])
        whole = await journal_export._verify_scope(opened)
        await opened.append([fact(3)])
        target = Growing()
        end = await journal_export._write_export(opened, whole, target, lambda _: None)
    assert (end.facts, appending != []) == (2, True)
    assert [seq for seq, _ in facts_of(target.getvalue())] == [1, 2]


def import_and_die(at: str, export: Path, target: Path) -> int:
    """How a process ends that is killed in the middle of an import."""
    code = f"""
import os, signal, sys
from factwire.cli import journal_transfer, main
def be_killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
journal_transfer.{at} = be_killed
sys.argv = ["factwire", "journal", "import", {str(export)!r}, {str(target)!r}]
main()
"""
    return subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode


@pytest.mark.requirement("cli.journal.import.whole")
@pytest.mark.parametrize("at", ["_append_batch", "_copy_snapshots", "name_database"])
@pytest.mark.parametrize("removes", [False, True])
def test_a_killed_import_leaves_no_journal_and_can_be_repeated(
    journal: CommandLine, path: Path, at: str, removes: bool
):
    if removes:
        journal("compact", path, "--keep-facts", 7)
        at = "_copy_snapshots" if at == "_append_batch" else at
    export, target = path.with_name("runs.ndjson"), path.with_name("new.db")
    journal("export", path, export)
    assert import_and_die(at, export, target) == -signal.SIGKILL
    assert not target.exists()
    verified = journal("verify", target)
    assert (verified.code, b"intact" in verified.out) == (2, False)
    assert journal("import", export, target).code == 0
    assert lines_of(target) == lines_of(path)
    assert journal("verify", target).code == 0


@pytest.mark.requirement("cli.journal.import.whole")
def test_an_import_that_is_refused_leaves_nothing(
    journal: CommandLine, path: Path, monkeypatch: pytest.MonkeyPatch
):
    export, target = path.with_name("runs.ndjson"), path.with_name("new.db")
    journal("export", path, export)
    before = sorted(path.parent.iterdir())

    async def refuse(*_: Any, **__: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journal_transfer, "_copy_snapshots", refuse)
        done = journal("import", export, target)
    assert (done.code, "No space left" in done.err) == (2, True)
    assert sorted(path.parent.iterdir()) == before
    assert journal("import", export, target).code == 0


@pytest.mark.requirement("journal.files.whole")
def test_an_export_to_a_device_leaves_the_device(journal: CommandLine, path: Path):
    link = path.with_name("link")
    link.symlink_to("/dev/null")
    for target in (link, Path("/dev/null")):
        before = target.lstat()
        assert journal("export", path, target).code == 0
        assert (target.lstat().st_mode, target.lstat().st_rdev) == (before.st_mode, before.st_rdev)
    assert link.is_symlink()
