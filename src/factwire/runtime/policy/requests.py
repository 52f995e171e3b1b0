"""What an agent wants to do, as a policy sees it: a tool, what it reaches, and with what.

The name of a tool says what it can do, as the table of tools knows it. What a request carries can
only make that worse: whoever brings a command runs something, whatever the tool calls itself.
"""

from typing import Any, Final, Literal

import msgspec

Effect = Literal["read", "edit", "network", "run", "other"]
"""What a tool does, from the mildest to what nobody can tell."""

EFFECTS: Final[tuple[Effect, ...]] = ("read", "edit", "network", "run", "other")

_TOOLS: Final[dict[Effect, str]] = {
    "read": (
        "read glob grep ls list search find_files list_files read_file notebookread todoread"
        " todowrite think view imageview"
    ),
    "edit": (
        "edit multiedit write notebookedit apply_patch applypatch patch filechange write_file"
        " edit_file create_file delete_file move_file delete move str_replace"
    ),
    "network": "webfetch web_fetch websearch web_search fetch http_request",
    "run": "bash shell exec execute local_shell run_command commandexecution command terminal",
}
"""Effect → the names that Claude Code, Codex, OpenCode, ACP and common agents give their tools."""

TOOL_EFFECTS: Final[dict[str, Effect]] = {
    name: effect for effect, names in _TOOLS.items() for name in names.split()
}

BELOW: Final = frozenset(
    {
        *("glob", "grep", "ls", "list", "search", "find_files", "list_files"),
        *("delete", "move", "delete_file", "move_file"),
    }
)
"""Tools that reach what lies below a folder, not the folder alone."""

PATHLESS: Final = frozenset({"todoread", "todowrite", "think"})
"""Tools that count as reading and touch no file."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One use of a tool. `workspace` and `cwd` are real, absolute paths; `paths` are real too, or
    relative to `cwd`: the caller has followed the links. `command` is shell text, or an argv that
    no shell sees. `effect` is what the caller knows of a tool that the table does not.
    """

    tool: str
    workspace: str
    cwd: str | None = None
    command: str | tuple[str, ...] | None = None
    paths: tuple[str, ...] = ()
    url: str | None = None
    diff: str | None = None
    args: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    effect: Effect | None = None

    @property
    def folder(self) -> str:
        """Where relative paths start."""
        return self.cwd or self.workspace


def lowered(name: str) -> str:
    """A tool's name for comparison: without case where the letters are ASCII, else as it is."""
    return name.lower() if name.isascii() else name


def effect_of(request: Request) -> Effect:
    """The worst of what the name, the caller and the content say."""
    known = TOOL_EFFECTS.get(lowered(request.tool))
    said: list[Effect] = [effect for effect in (known, request.effect) if effect is not None]
    said = said or ["other"]
    if request.diff is not None:
        said.append("edit")
    if request.url is not None:
        said.append("network")
    if request.command is not None:
        return "run"
    return max(said, key=EFFECTS.index)
