"""What an agent wants to do, as a policy sees it and as a person is shown it, and the hash that
binds the answer to exactly that.

Text that is shown hides nothing: whatever has no honest glyph is shown by its number.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, Final, Literal

import msgspec

LONGEST_RUN: Final = 40
"""Blanks or line breaks in a row that are shown as they are."""

_OPEN, _CLOSE, _TAB = "⟦", "⟧", "⇥"

_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
"""Characters that count as printable and still show nothing."""

_LETTERS: Final = frozenset(
    "асеорхуіјѕһԁԛԝьвгкмнтзбАВСЕНІЈКМОРЅТХУҮЗԌԚԜ"
    "αγεικνορτυχωϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹ"
    "օսոհցոզկյղքԱՍՏՕԼ"
    "ɑɡɩıĸſɪʏƖǀǃʟᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜱ"
    "ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷΝᏢᎡᏚᎢᏙᎳᏃ"  # noqa: RUF001
)
"""Letters that pass for plain ones."""

_MARKS_OF_PUNCTUATION: Final = frozenset(
    "‐‑‒–—―−⁃˗∕⁄⧸∖⧵∣ǀ❘ǃ‘’‛′ʹʻʼʽˈ“”‟″„‚ˋ´՚׳꞉∶ː⁏‹›˂˃≺≻⁎∗٭⁓∼˜٪ꓸ·․"  # noqa: RUF001
)
"""Signs that pass for those which a shell or a path gives a meaning to."""

_COMBINING: Final = frozenset({"Mn", "Me", "Mc"})
_COMBINING_IN_A_ROW: Final = 2
_WORD: Final = re.compile(r"\w+")
_RUN: Final = re.compile(rf"[ \t\n]{{{LONGEST_RUN + 1},}}")
_SAME: Final = re.compile(r" +|\t+|\n+")


def is_hidden(char: str) -> bool:
    """Whether a character shows nothing, or something other than itself."""
    return not char.isprintable() or char in _INVISIBLE


def make_visible(text: str, *, strict: bool = True, lines: bool = False) -> str:
    """The text with nothing hidden in it. `strict` also marks what passes for another character;
    `lines` leaves line feeds in place.
    """
    alike = _alike(text) if strict and not text.isascii() else frozenset[int]()
    pieces: list[str] = []
    at = 0
    for run in _RUN.finditer(text):
        pieces += _characters(text, range(at, run.start()), alike, lines=lines)
        pieces += (_mark(same[0][0], len(same[0])) for same in _SAME.finditer(run[0]))
        at = run.end()
    pieces += _characters(text, range(at, len(text)), alike, lines=lines)
    return "".join(pieces)


def _characters(text: str, places: range, alike: frozenset[int], *, lines: bool) -> Iterator[str]:
    combining = 0
    for place in places:
        char = text[place]
        combining = combining + 1 if unicodedata.category(char) in _COMBINING else 0
        if char == "\t":
            yield _TAB
        elif char == "\n" and lines:
            yield char
        elif place in alike or combining > _COMBINING_IN_A_ROW or _must_be_marked(char):
            yield _mark(char)
        else:
            yield char


def _must_be_marked(char: str) -> bool:
    return is_hidden(char) or char in (_OPEN, _CLOSE, _TAB)


def _mark(char: str, times: int = 1) -> str:
    many = f" ×{times}" if times > 1 else ""
    return f"{_OPEN}U+{ord(char):04X}{many}{_CLOSE}"


def _alike(text: str) -> frozenset[int]:
    """The places of characters that pass for others."""
    signs = (place for place, char in enumerate(text) if not char.isascii() and _is_sign(char))
    words = (place for word in _WORD.finditer(text) for place in _letters(word))
    return frozenset((*signs, *words))


def _is_sign(char: str) -> bool:
    return char in _MARKS_OF_PUNCTUATION or unicodedata.normalize("NFKC", char).isascii()


def _letters(word: re.Match[str]) -> list[int]:
    """Letters that pass for plain ones, unless the word is clearly of their own alphabet."""
    foreign = [char for char in word[0] if not char.isascii() and char not in _LETTERS]
    if any(not unicodedata.name(char, "").startswith("LATIN") for char in foreign):
        return []
    return [word.start() + place for place, char in enumerate(word[0]) if char in _LETTERS]


PolicyDecision = Literal["allow", "ask", "deny"]
Mode = Literal["default", "acceptEdits", "plan", "dontAsk"]

MODES: Final[tuple[Mode, ...]] = ("default", "acceptEdits", "plan", "dontAsk")

ReasonCode = Literal[
    "rule_allow",
    "reading",
    "edit_in_workspace",
    "rule_ask",
    "edit_asks",
    "command_asks",
    "network_asks",
    "tool_asks",
    "outside_workspace",
    "protected_path",
    "may_reach_forbidden",
    "unclear_command",
    "unclear_path",
    "unclear_url",
    "planted_program",
    "rule_deny",
    "plan_mode",
    "dont_ask",
]

REASONS: Final[dict[ReasonCode, tuple[PolicyDecision, str]]] = {
    "rule_allow": ("allow", "a rule allows it"),
    "reading": ("allow", "it only reads, inside the workspace"),
    "edit_in_workspace": ("allow", "edits inside the workspace are accepted"),
    "rule_ask": ("ask", "a rule requires approval"),
    "edit_asks": ("ask", "it changes files, and no rule applies"),
    "command_asks": ("ask", "it runs a command, and no rule applies"),
    "network_asks": ("ask", "it uses the network, and no rule applies"),
    "tool_asks": ("ask", "it is not known what the tool does, and no rule applies"),
    "outside_workspace": ("ask", "the path is outside the workspace, and no rule applies"),
    "protected_path": ("ask", "the path can make other programs run code"),
    "may_reach_forbidden": ("ask", "it could affect something that a rule asks about or denies"),
    "unclear_command": ("ask", "it is unclear what the command runs"),
    "unclear_path": ("ask", "the path is missing or cannot be normalized"),
    "unclear_url": ("ask", "it is unclear which host the URL refers to"),
    "planted_program": ("ask", "its name leads to a file that the agent may have written"),
    "rule_deny": ("deny", "a rule denies it"),
    "plan_mode": ("deny", "only reading is allowed while planning"),
    "dont_ask": ("deny", "approval is required, but asking is turned off"),
}
"""Code → the decision that it stands for, and why, in words."""


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


class PolicyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One use of a tool. `workspace` and `cwd` are real, absolute paths; `paths` are real too, or
    relative to `cwd`: the caller has followed the links. `command` is shell text, or an argv that
    no shell sees. `effect` is what the caller knows of a tool that the table does not. `place`
    is which folders `workspace` and `cwd` are, by device and inode.

    Four things are about the machine, and neither shown nor hashed: `links` are words of a command
    that lead to another real path, `folders` those that are folders (`follow_links`; None where
    nobody has looked), and `planted` the names of programs that lead to a file which an agent may
    have written, with that file; `confined` is whether the command runs in a sandbox from which
    every file is hidden that a rule denies.
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
    place: str | None = None
    links: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    folders: frozenset[str] | None = None
    planted: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    confined: bool = False

    @property
    def folder(self) -> str:
        """Where relative paths start."""
        return self.cwd or self.workspace


def fold_tool_name(name: str) -> str:
    """A tool's name for comparison: without case where the letters are ASCII, else as it is."""
    return name.lower() if name.isascii() else name


def effect_of(request: PolicyRequest) -> Effect:
    """The worst of what the name, the caller and the content say."""
    known = TOOL_EFFECTS.get(fold_tool_name(request.tool))
    effects: list[Effect] = [effect for effect in (known, request.effect) if effect is not None]
    effects = effects or ["other"]
    if request.diff is not None:
        effects.append("edit")
    if request.url is not None:
        effects.append("network")
    if request.command is not None:
        return "run"
    return max(effects, key=EFFECTS.index)


_DOMAIN: Final = "factwire-shown/v1\n"
"""What is hashed in front of the text, so that the hash is of nothing else."""


def show_request(request: PolicyRequest) -> str:
    """The canonical text of a request."""
    lines = [
        _field("tool", request.tool),
        _field("effect", request.effect),
        _field("workspace", request.workspace),
        _field("cwd", request.cwd),
        _field("place", request.place),
        *_command(request.command),
        *(_field("path", path) for path in request.paths),
        _field("url", request.url),
        *_block("diff", request.diff, strict=False),
    ]
    if request.args:
        lines.append(_field("args", canonical_json(request.args)))
    return "\n".join(line for line in lines if line is not None)


def read_command(shown: str) -> str | tuple[str, ...] | None:
    """The command in the canonical text of a request. Whoever reads it compares the hash of what
    they make of it: a text with something in it that had to be made visible is not the command.
    """
    lines = shown.split("\n")
    words = next((line for line in lines if line.startswith("argv: ")), None)
    if words is not None:
        try:
            return tuple(msgspec.json.decode(words.removeprefix("argv: "), type=list[str]))
        except msgspec.DecodeError:
            return None
    if "command:" not in lines:
        return None
    block = takewhile(lambda line: line.startswith("| "), lines[lines.index("command:") + 1 :])
    return "\n".join(line.removeprefix("| ") for line in block)


def hash_request(request: PolicyRequest) -> str:
    """SHA-256 of what is shown, as `sha256:` and 64 hexadecimal digits."""
    return hash_shown(show_request(request))


def hash_shown(shown: str) -> str:
    """The hash of a request by its canonical text."""
    return f"sha256:{hashlib.sha256((_DOMAIN + shown).encode()).hexdigest()}"


def canonical_json(value: object) -> str:
    """One text for one value: keys sorted, no blanks, characters as they are."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=repr
    )


def _command(command: str | tuple[str, ...] | None) -> list[str]:
    if isinstance(command, tuple):
        return [f"argv: {make_visible(canonical_json(list(command)))}"]
    return _block("command", command, strict=True)


def _field(name: str, value: str | None) -> str | None:
    return None if value is None else f"{name}: {make_visible(value)}"


def _block(name: str, value: str | None, *, strict: bool) -> list[str]:
    if value is None:
        return []
    text = make_visible(value, strict=strict, lines=True)
    return [f"{name}:", *(f"| {line}" for line in text.split("\n"))]
