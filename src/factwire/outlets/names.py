"""Names on a wire: each is used for one thing, in its run.

A fact may speak of a message again that a client has closed, and a client would write the new words
over the old ones; so what is opened again gets a name that was not used before.
"""

from factwire.outlets.limits import NAMES_REMEMBERED


class Names:
    """The names that one run has used, each with what it was used for."""

    def __init__(self) -> None:
        self._used: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._of: dict[str, list[str]] = {}

    def fresh(self, wanted: str, what: str = "") -> str:
        """A name like `wanted` that nothing has; `what` is what the name is of."""
        count = self._counts.get(wanted, 0) + 1
        while (name := f"{wanted}:{count}" if count > 1 else wanted) in self._used:
            count += 1
        self._counts[wanted] = count
        self._used[name] = what
        self._of.setdefault(what, []).append(name)
        if len(self._used) > NAMES_REMEMBERED:
            self._forget()
        return name

    def of(self, what: str) -> list[str]:
        """All names of a thing, in the order in which they were given."""
        return list(self._of.get(what, ()))

    def _forget(self) -> None:
        oldest = next(iter(self._used))
        what = self._used.pop(oldest)
        if len(self._counts) > NAMES_REMEMBERED:
            del self._counts[next(iter(self._counts))]
        names = self._of[what]
        names.remove(oldest)
        if not names:
            del self._of[what]
