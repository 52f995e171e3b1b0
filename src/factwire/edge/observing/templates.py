"""Route templates: the name under which a request is counted, logged and traced.

Whatever ids stand in an address, its template is one of a fixed few; an address that nothing
answers has none of its own. So nobody can make series, or put words into a log, by asking for them.
"""

from collections.abc import Iterable
from typing import Any, Final

UNMATCHED: Final = "unmatched"
"""The template of every address that is not served."""

_ANY: Final = "{}"
_END: Final = ""


class Templates:
    """The templates of all paths that an Edge serves, as a tree of their parts."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._tree: dict[str, Any] = {}
        self._verbs: set[str] = set()
        for path in paths:
            self._add(path)

    def of(self, path: str) -> str:
        """The template of a path; a verb stands behind a colon in its last part."""
        # Empty parts are what the router does not see either.
        parts = [part for part in path.split("/") if part]
        name, colon, verb = parts[-1].rpartition(":") if parts else ("", "", "")
        if colon and name and verb in self._verbs:
            parts[-1:] = [name, f":{verb}"]
        place: dict[str, Any] | None = self._tree
        for part in parts:
            place = place.get(part) or place.get(_ANY)
            if place is None:
                return UNMATCHED
        return place.get(_END, UNMATCHED)

    def _add(self, path: str) -> None:
        place = self._tree
        # The page's own path is the root: an empty part would stand where a template's end does.
        for part in filter(None, path.split("/")):
            if part.startswith(":"):
                self._verbs.add(part[1:])
            place = place.setdefault(_ANY if part.startswith("{") else part, {})
        place[_END] = path.replace("/:", ":")
