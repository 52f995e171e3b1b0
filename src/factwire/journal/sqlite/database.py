"""The part of an apsw connection that the journal uses, with types."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

Value = int | str | bytes | None


class Rows(Protocol):
    """The rows of a statement; `get` is the only row, its only value, or None."""

    @property
    def get(self) -> Any: ...

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...

    def close(self) -> None: ...


class Blob(Protocol):
    """One stored value, and after `reopen` the same column of another row."""

    def read(self, length: int = ..., /) -> bytes: ...

    def reopen(self, rowid: int, /) -> None: ...

    def close(self, force: bool = ..., /) -> None: ...  # noqa: FBT001


class Database(Protocol):
    """A connection."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, statements: str, bindings: Sequence[Value] = ..., /) -> Rows: ...

    def executemany(self, statements: str, bindings: Iterable[Sequence[Value]], /) -> Rows: ...

    def blob_open(
        self,
        database: str,
        table: str,
        column: str,
        rowid: int,
        writeable: bool,  # noqa: FBT001
        /,
    ) -> Blob: ...

    def pragma(self, name: str, value: Any = ..., /) -> Any: ...

    def set_busy_timeout(self, milliseconds: int, /) -> None: ...

    def set_wal_hook(self, callable: Callable[[Any, str, int], int] | None, /) -> None: ...  # noqa: A002

    def wal_autocheckpoint(self, n: int, /) -> None: ...

    def wal_checkpoint(self, dbname: str | None = ..., mode: int = ...) -> tuple[int, int]: ...

    def close(self, force: bool = ..., /) -> None: ...  # noqa: FBT001
