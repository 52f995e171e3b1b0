"""What README and docs show is what happens: every Python and console block is run.

Blocks of one page run in order and share a namespace and a scratch folder, which holds a copy of
examples/. In a console block, `$ ` starts a command and the lines after it are its whole output;
a line `...` stands for any lines. `$?` carries over from one command to the next.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(path for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")] if path.exists())

# Languages of blocks that are shown, not run. No shell among them: commands are console blocks.
SHOWN = {
    *("css", "diff", "html", "http", "ini", "json", "jsonc", "mermaid", "ndjson"),
    *("nginx", "sql", "text", "toml", "tsx", "typescript", "yaml"),
}

FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)\n"
    r"(?P<body>.*?)^(?P=indent)(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    language: str
    text: str
    line: int


class Command(NamedTuple):
    line: str
    output: list[str]


def blocks(markdown: str) -> Iterator[Block]:
    for match in FENCE.finditer(markdown):
        language, _, _ = match["info"].strip().partition(" ")
        line = markdown.count("\n", 0, match.start("body")) + 1
        yield Block(language, textwrap.dedent(match["body"]), line)


def commands(text: str) -> list[Command]:
    found: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ "), []))
        elif not found:
            pytest.fail(f"a console block starts with a command, not with {line!r}")
        elif found[-1].line.endswith("\\") and not found[-1].output:
            found[-1] = Command(f"{found[-1].line}\n{line.removeprefix('> ')}", [])
        else:
            found[-1].output.append(line.rstrip())
    return found


def matches(output: list[str], expected: list[str]) -> bool:
    lines = (r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch("".join(lines), "".join(f"{line}\n" for line in output)) is not None


def environment(home: Path) -> dict[str, str]:
    """The developer's, without what would colour, wrap or configure the output."""
    noisy = ("FORCE_COLOR", "GITHUB_ACTIONS", "MAKEFLAGS", "MAKELEVEL", "PY_COLORS")
    return {name: value for name, value in os.environ.items() if name not in noisy} | {
        "COLUMNS": "100",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONUTF8": "1",
        "TERM": "dumb",
    }


def run_console(block: Block, folder: Path) -> None:
    status = 0
    for command in commands(block.text):
        done = subprocess.run(
            ["sh", "-c", f"(exit {status})\n{command.line}"],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=280,
            check=False,
        )
        status = done.returncode
        output = [line.rstrip() for line in done.stdout.splitlines()]
        if not matches(output, command.output):
            assert [f"$ {command.line}", *output] == [f"$ {command.line}", *command.output]


def run_python(block: Block, page: Path, module: ModuleType) -> None:
    # The blank lines above make a traceback point at the line of the page.
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
    exec(code, vars(module))  # the page is ours


def run_page(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if (ROOT / "examples").exists():
        shutil.copytree(ROOT / "examples", folder / "examples")
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    for block in blocks(page.read_text("utf-8")):
        if block.language == "python":
            run_python(block, page, module)
        elif block.language == "console":
            run_console(block, folder)
        else:
            assert block.language in SHOWN, f"{page.name}:{block.line}: say what the block is"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_snippet_of_the_page_does_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run_page(page, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "text",
    [
        "```python\nassert False\n```\n",
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ echo one\n```\n",
        "```console\n$ printf ''\none\n```\n",
        "```console\n$ false\n$ echo $?\n0\n```\n",
        "```\nno language\n```\n",
    ],
)
def test_a_page_that_shows_something_else_fails(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError):
        run_page(page, tmp_path, monkeypatch)


def test_blocks_of_a_page_share_names_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nfrom pathlib import Path\n\nword = 'fact'\n```\n"
        "1. In a list:\n\n"
        "   ```python\n   Path('word').write_text(word)\n   ```\n"
        "```console\n$ cat word \\\n>   word; echo\nfactfact\n"
        "$ printf 'a\\nb\\nc\\n'\n...\nc\n$ false\n$ echo $?\n1\n```\n"
        "```json\n{}\n```\n"
    )
    run_page(page, tmp_path, monkeypatch)
