"""`factwire journal tail`: the newest facts, then live, and nothing that a terminal obeys."""

import asyncio
import io
import signal
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from factwire.cli.journal_command import fact_line, read_newest
from factwire.cli.targets import show_progress
from factwire.cli.terminal import errors, terminal_safe
from factwire.facts.fact import Fact
from factwire.journal import CompactionPolicy, Filter, RetentionPolicy, open_journal
from factwire.journal.memory_journal import MemoryJournal
from tests.cli.journal_files import fact, lines_of, make, start_command, streamed_turn

hostile = pytest.mark.requirement("cli.journal.tail.safe")


def render_line(item: Fact) -> str:
    target = io.StringIO()
    console = Console(file=target, highlight=False, width=1000, force_terminal=True)
    console.print(fact_line(7, item), no_wrap=True, overflow="ellipsis")
    return target.getvalue()


@pytest.mark.requirement("cli.journal.tail")
def test_a_fact_is_one_readable_line():
    item = fact(1, event_class="tool.result", payload={"output": "two\nlines [bold]here[/]"})
    assert fact_line(7, item).plain == (
        "       7  2026-06-10 09:00:00  t1            tool.result           Fact 1"
        "  two lines [bold]here[/]"
    )
    assert "\x1b[36mtool.result" in render_line(item)


@pytest.mark.requirement("cli.journal.tail")
def test_what_a_fact_does_not_say_is_left_open():
    item = fact(1, thread_id=None, event_class=None, payload={"a": [1]}, detail=None)
    assert fact_line(1, item).plain.split() == [
        *("1", "2026-06-10", "09:00:00", "-", "-", "Fact", "1", '{"a":[1]}')
    ]


@hostile
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[2J\x1b]0;owned\x07", r"\x1b[2J\x1b]0;owned\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("a\r\nb\tc", "a b c"),
        ("abc\u202edcba", r"abc\u202edcba"),
        ("\u2066x\u2069", r"\u2066x\u2069"),
        ("zero\u200bwidth\u200d", r"zero\u200bwidth\u200d"),
        ("fill\u3164er", r"fill\u3164er"),
        ("tag\U000e0041", r"tag\ue0041"),
        ("select\ufe0for", r"select\ufe0for"),
        ("lone\ud800", r"lone\ud800"),
        ("e\u0301\u0302\u0303", "e\u0301\u0302" + r"\u0303"),
        ("naïve 日本語 🙂", "naïve 日本語 🙂"),
    ],
)
def test_text_that_a_terminal_would_obey_is_spelled_out(text: str, expected: str):
    assert terminal_safe(text) == expected


@hostile
@given(st.text(), st.one_of(st.none(), st.integers(1, 50)))
def test_no_text_leaves_anything_but_visible_characters(text: str, limit: int | None):
    line = terminal_safe(text, limit)
    assert line.isprintable()
    assert not any(unicodedata.bidirectional(c) in {"RLO", "LRO", "RLE", "LRE"} for c in line)
    assert limit is None or len(line) <= limit + 1


@hostile
@given(st.text(), st.text(), st.text(), st.text())
def test_no_field_of_a_fact_reaches_the_terminal_as_it_is(a: str, b: str, c: str, d: str):
    item = fact(1, thread_id=a, event_class=b, payload={"text": c + "\x1b[31m"}, detail=d)
    line = render_line(item)
    assert line.count("\n") == 1
    colours = line.replace("\x1b[", "").replace("\n", "")
    assert colours.isprintable()
    assert "[31m" not in line.replace(r"\x1b[31m", "") or "\x1b[31m" not in c


@pytest.mark.asyncio
@pytest.mark.requirement("cli.journal.tail")
@pytest.mark.parametrize("count", [0, 1, 10, 5000])
async def test_the_newest_are_found_behind_any_filter(count: int):
    async with MemoryJournal() as journal:
        facts = [fact(n, thread_id="rare" if n % 500 == 3 else "common") for n in range(3000)]
        for at in range(0, 3000, 100):
            await journal.append(facts[at : at + 100])
        rows, cursor = await read_newest(journal, count, None)
        assert [seq for seq, _ in rows] == list(range(3000 - min(count, 3000) + 1, 3001))
        assert cursor == await journal.head()
        rows, _ = await read_newest(journal, count, Filter(thread="rare"))
        assert [seq for seq, _ in rows] == [4, 504, 1004, 1504, 2004, 2504][6 - min(count, 6) :]
        assert (await read_newest(journal, count, Filter(thread="none")))[0] == []


@pytest.mark.asyncio
@pytest.mark.requirement("cli.journal.tail")
async def test_the_newest_are_found_where_facts_were_removed():
    async with MemoryJournal() as journal:
        for number in range(30):
            await journal.append(streamed_turn(number * 10, "t1", f"u{number}"))
        await journal.append([fact(1000, thread_id="t2")])
        await journal.compact(CompactionPolicy())
        rows, _ = await read_newest(journal, 100, None)
        assert len(rows) == 100
        await journal.retain(RetentionPolicy(keep_per_thread=3))
        rows, _ = await read_newest(journal, 100, None)
        assert [seq for seq, _ in rows][-1] == 241
        assert len(rows) == 4
        await journal.retain(RetentionPolicy(keep_facts=2))
        assert len((await read_newest(journal, 100, None))[0]) == 2


@pytest.mark.asyncio
async def test_the_newest_of_an_empty_journal_are_none():
    async with MemoryJournal() as journal:
        assert await read_newest(journal, 10, None) == ([], await journal.head())


@pytest.mark.requirement("cli.journal.tail")
@pytest.mark.parametrize("form", ["readable", "json"])
def test_tail_shows_the_newest_then_live_until_interrupted(tmp_path: Path, form: str):
    path = make(tmp_path / "runs.db", [fact(number) for number in range(20)])

    async def write() -> None:
        async with open_journal(f"sqlite:{path}") as opened:
            await opened.append([fact(100), fact(101, thread_id="t2"), fact(102)])

    options = ["--json"] if form == "json" else []
    with start_command("tail", path, "--thread", "t1", "--lines", 3, *options) as process:
        assert process.stdout
        assert process.stderr
        first = [process.stdout.readline() for _ in range(3)]
        asyncio.run(write())
        live = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    stored = dict(lines_of(path))
    seqs = [18, 19, 20, 21, 23]
    if form == "json":
        assert first + live == [stored[seq] + b"\n" for seq in seqs]
    else:
        assert [int(line.split()[0]) for line in first + live] == seqs


@pytest.mark.requirement("cli.journal.tail")
def test_tail_after_a_fact_begins_there(tmp_path: Path):
    path = make(tmp_path / "runs.db", [fact(number) for number in range(20)])
    with start_command("tail", path, "--after", "f17") as process:
        assert process.stdout
        assert [int(process.stdout.readline().split()[0]) for _ in range(2)] == [19, 20]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


@pytest.mark.parametrize("total", [None, 3])
def test_progress_is_drawn_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, total: int | None
):
    with show_progress("working", total) as advance:
        advance(1)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(errors, "is_interactive", True)
    monkeypatch.setenv("TERM", "xterm")
    with show_progress("working", total) as advance:
        advance(1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "working" in err
