"""What a state is built from: `View`, whose unknown fields are absent and not null, and `Text`,
which grows by pieces.

Every surface imports this module, so it imports nothing of the projection.
"""

import msgspec


class View(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False, rename="camel"):
    """A part of a state, changed only through a draft."""


class Text:
    """A growing text. It reads, compares and is written as the string that its pieces make."""

    __slots__ = ("length", "pieces")

    def __init__(self, text: str = "") -> None:
        self.pieces = [text] if text else []
        self.length = len(text)

    def append(self, piece: str) -> None:
        """Add a piece at the end, exactly as it is."""
        self.pieces.append(piece)
        self.length += len(piece)

    def __str__(self) -> str:
        pieces = self.pieces
        if len(pieces) > 1:
            pieces[:] = ["".join(pieces)]
        return pieces[0] if pieces else ""

    def __repr__(self) -> str:
        return f"Text({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Text | str) else NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType]
