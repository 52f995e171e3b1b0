"""Where a path lies: inside the workspace or outside, by its normal form alone.

The attack: `docs/../../etc/passwd` under a rule for `docs`. A path is made absolute and its dots
are taken out before anything looks at it; links are followed by the caller, who passes the real
path. A path with characters that hide or that another system reads as a separator has no normal
form, and what has none matches no rule that allows.
"""

import posixpath
from typing import Final

import msgspec

from factwire.runtime.policy.rules import Rule, path_steps
from factwire.runtime.policy.steps import Steps, covers_below, fold, matches, may_match_below
from factwire.runtime.policy.visibility import is_hidden

PROTECTED: Final = frozenset(
    {
        *(".git", ".gitmodules", ".gitconfig", ".gitattributes", ".hg", ".svn", ".husky"),
        *(".envrc", ".npmrc", ".yarnrc", ".bashrc", ".bash_profile", ".profile", ".zshrc"),
        *(".zprofile", ".vscode", ".idea", ".devcontainer", ".claude", ".codex", ".opencode"),
        *(".mcp.json", ".factwire", "factwire.toml"),
    }
)
"""Names that make other programs run something, or hold the policy itself: editing what lies at or
below one of them is never allowed by a mode alone."""


class Place(msgspec.Struct, frozen=True):
    """A normal path: absolute segments, and those below the workspace where it lies inside."""

    absolute: tuple[str, ...]
    relative: tuple[str, ...] | None

    @property
    def is_inside(self) -> bool:
        return self.relative is not None

    @property
    def is_protected(self) -> bool:
        names = self.absolute if self.relative is None else self.relative
        return any(fold(name) in PROTECTED for name in names)


def place_of(path: str, folder: str, workspace: str) -> Place | None:
    """The place of a path, or None where it has no normal form."""
    if not path or not folder.startswith("/") or not workspace.startswith("/"):
        return None
    whole = posixpath.join(folder, path)
    if "\\" in path or path.startswith("~") or any(is_hidden(char) for char in whole):
        return None
    absolute, root = _segments(whole), _segments(workspace)
    inside = absolute[: len(root)] == root
    return Place(absolute, absolute[len(root) :] if inside else None)


def _segments(path: str) -> tuple[str, ...]:
    return tuple(part for part in posixpath.normpath(path).split("/") if part)


def path_matches(rule: Rule, place: Place, *, below: bool) -> bool:
    """Whether a rule that allows covers a place, and all below it where the tool reaches it."""
    absolute, steps = path_steps(rule.pattern or "", folded=False)
    words = place.absolute if absolute else place.relative
    if words is None:
        return False
    return covers_below(steps, words) if below else matches(steps, words)


def path_forbids(rule: Rule, place: Place) -> bool:
    """Whether a rule that asks or denies is about a place; case and forms of letters aside."""
    words, steps = _folded(rule, place)
    return words is not None and matches(steps, words)


def path_may_forbid(rule: Rule, place: Place) -> bool:
    """Whether such a rule is about something below a place."""
    words, steps = _folded(rule, place)
    return words is not None and may_match_below(steps, words)


def _folded(rule: Rule, place: Place) -> tuple[tuple[str, ...] | None, Steps]:
    absolute, steps = path_steps(rule.pattern or "", folded=True)
    words = place.absolute if absolute else place.relative
    return None if words is None else tuple(map(fold, words)), steps
