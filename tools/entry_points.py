"""Write the entry points of `pyproject.toml` from the rows of `OUTSIDE_AGENTS`."""

import re
from collections.abc import Iterator
from pathlib import Path

from factwire.runtime.agents import GROUP, WRAPPERS
from factwire.sources import OUTSIDE_AGENTS

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
GROUPS = {"agent": GROUP, "wrapper": WRAPPERS}


def entry_lines(kind: str) -> Iterator[str]:
    for agent in OUTSIDE_AGENTS:
        if agent.kind == kind and agent.entry_point is not None:
            yield f'{agent.name} = "{agent.entry_point}"\n'


def write_entry_points(text: str) -> str:
    """The text with both tables as the rows have them."""
    for kind, group in GROUPS.items():
        table = f'[project.entry-points."{group}"]\n'
        pattern = re.compile(re.escape(table) + r"(?:[^\[\n][^\n]*\n)*")
        whole = table + "".join(entry_lines(kind))
        text, count = pattern.subn(lambda _, whole=whole: whole, text)
        if count != 1:
            raise SystemExit(f"pyproject.toml: expected one table {table.strip()}, found {count}")
    return text


def main() -> None:
    before = PYPROJECT.read_text("utf-8")
    after = write_entry_points(before)
    if after != before:
        PYPROJECT.write_text(after, "utf-8")


if __name__ == "__main__":
    main()
