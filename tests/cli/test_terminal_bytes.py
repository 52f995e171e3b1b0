"""JSON on a terminal: nothing invisible reaches it, no value changes; a pipe gets exact bytes."""

import asyncio
import io
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.cli.terminal import TerminalBytes
from factwire.facts import read_fact
from factwire.journal import open_journal
from tests.cli.cli_commands import run
from tests.cli.cli_recordings import turn
from tests.cli.terminals import terminal

pytestmark = pytest.mark.requirement("cli.errors.harmless-text")

HIDDEN = [
    chr(code)
    for code in range(0x30000)
    if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp") and chr(code) != "\n"
]
"""Every control and format character: C0, C1, bidi, zero width, tags."""


def facts() -> list[dict[str, Any]]:
    """Runs whose answers hold every hidden character, some at a time."""
    texts = ["".join(HIDDEN[at : at + 40]) for at in range(0, len(HIDDEN), 40)]
    return [fact for number, text in enumerate(texts) for fact in turn(f"t{number}", f"é中{text}x")]


async def fill_journal(path: Path) -> None:
    async with open_journal(f"sqlite:{path}") as opened:
        for thread in {fact["threadId"]: None for fact in facts()}:
            await opened.append(
                [read_fact(fact, "facts") for fact in facts() if fact["threadId"] == thread]
            )


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("terminal")
    lines = folder / "facts.ndjson"
    lines.write_text("".join(json.dumps(fact, ensure_ascii=False) + "\n" for fact in facts()))
    asyncio.run(fill_journal(folder / "journal.db"))
    return lines, folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert", "--to", "facts"),
        ("convert", "--to", "ai-sdk"),
        ("project", "--thread", "t0", "--json"),
        ("journal", "cat"),
    ],
)
def test_what_a_terminal_shows_is_visible_and_means_the_same_as_what_a_pipe_gets(
    journal: tuple[Path, Path], arguments: tuple[str, ...]
):
    lines, folder = journal
    command: tuple[str | Path, ...] = (arguments[0], lines, *arguments[1:])
    if arguments[0] == "journal":
        command = (*arguments, folder / "journal.db")
    piped = run(*command)
    assert piped.code == 0, piped.err
    with terminal(*command, folder=folder, columns=200) as shown:
        assert shown.end() == 0, shown.seen[-500:]
    seen = shown.seen.replace("\r\n", "\n")
    printed = [line for line in seen.split("\n") if "{" in line]
    received = [line for line in piped.out.split("\n") if "{" in line]
    assert not set(seen) & set(HIDDEN)
    assert list(map(read_line, printed)) == list(map(read_line, received))


def read_line(line: str) -> Any:
    return json.loads(line.removeprefix("data: "))


def shown_bytes(*pieces: bytes, encoding: str = "utf-8") -> bytes:
    target = io.BytesIO()
    output = TerminalBytes(target, encoding)
    for piece in pieces:
        assert output.write(piece) == len(piece)
    return target.getvalue()


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_every_value_stays_the_same(value: Any):
    data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    shown = shown_bytes(data, b"\n").decode()
    assert json.loads(shown) == json.loads(data)
    assert not set(shown) & set(HIDDEN)


@given(st.text(), st.data())
def test_where_the_bytes_are_cut_makes_no_difference(text: str, data: st.DataObject):
    whole = text.encode("utf-8", "replace")
    at = data.draw(st.integers(0, len(whole)))
    assert shown_bytes(whole[:at], whole[at:]).decode() == shown_bytes(whole).decode()


def test_a_terminal_of_another_encoding_gets_no_byte_that_steers_it():
    assert shown_bytes('"中\x9b"'.encode(), encoding="latin-1") == b'"\\u4e2d\\u009b"'
