"""How a table of classes is read: one row of words a class, checked against the vocabulary.

A word that the vocabulary does not have is a mistake in the table, found when it is imported.
"""

import msgspec

from factwire.facts.vocabulary import OWNERS, PERSISTENCE, PHASES, SCOPES, SURFACES

_COLUMNS = (OWNERS, SCOPES, PHASES, SURFACES, PERSISTENCE)


class ClassRow(msgspec.Struct, frozen=True):
    """What one class says about every fact that carries it."""

    name: str
    owner: str
    scope: str
    phase: str
    surface: str
    persistence: str
    ui: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The first word of the class."""
        return self.name.partition(".")[0]


def read_rows(table: str) -> dict[str, ClassRow]:
    """Read lines of `name | owner scope phase surface persistence | ui classes`; `#` titles."""
    rows: dict[str, ClassRow] = {}
    for line in table.strip().splitlines():
        if not line.startswith("#"):
            row = _read_row(line)
            rows[row.name] = row
    return rows


def _read_row(line: str) -> ClassRow:
    name, words, *ui = (cell.strip() for cell in line.split("|"))
    cells = words.split()
    for cell, column in zip(cells, _COLUMNS, strict=True):
        if cell not in column:
            raise ValueError(f"{name}: {cell!r} is not in the vocabulary")
    return ClassRow(name, *cells, ui=tuple(ui[0].split()) if ui else ())
