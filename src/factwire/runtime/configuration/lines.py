"""On which line of a TOML text a key stands, for messages alone: a reader that is sometimes silent
and never in the way.
"""

import re
from typing import Final

_TABLE: Final = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?")
_KEY: Final = re.compile(
    r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART: Final = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def key_lines(content: str) -> dict[str, int]:
    """Key → the first line that gives it a value, or opens its table."""
    lines: dict[str, int] = {}
    before = ""
    for number, line in enumerate(content.splitlines(), 1):
        if table := _TABLE.fullmatch(line):
            before = _key(table[1])
            lines.setdefault(before, number)
        elif found := _KEY.match(line):
            key = _key(found[1])
            lines.setdefault(f"{before}.{key}" if before else key, number)
    return lines


def _key(text: str) -> str:
    return ".".join(part.strip("\"'") for part in _PART.findall(text))
