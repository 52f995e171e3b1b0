"""Shell text, read only as far as it is certain what a shell would make of it. What is not
certain is unclear, and never allowed by a rule.
"""

import re
from typing import Final, Literal

import msgspec

from factwire.runtime.policy.policy_request import is_hidden

LONGEST_COMMAND: Final = 20_000
"""Characters of shell text that are read; more is unclear, and nobody could check it by eye."""

MOST_COMMANDS: Final = 200
"""Simple commands in one text."""

DEEPEST: Final = 8
"""Commands within commands."""

ShellWord = str | None

SOME: Final = "\x00"
"""In a shape: any characters of one name. No text with such a character is read."""

ANYTHING: Final = "\x01"
"""In a shape: any characters, words and folders."""


class Redirection(msgspec.Struct, frozen=True):
    """A file that a command reads or writes by redirection."""

    access: Literal["read", "edit"]
    path: str


class SimpleCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One simple command. `also` are other readings of it, which can only forbid: what a wrapper
    runs, or the wrapper round what is run. `shapes` are the words that are known only when it runs,
    as far as they are known; `moved` is whether it may run in another folder; `opaque` whether its
    program may run anything.
    """

    words: tuple[ShellWord, ...]
    assignments: tuple[ShellWord, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    piped: bool = False
    also: tuple["SimpleCommand", ...] = ()
    shapes: tuple[str, ...] = ()
    moved: bool = False
    opaque: bool = False


class ShellReading(msgspec.Struct, frozen=True):
    """What was found; `unclear` says why that is not all."""

    commands: tuple[SimpleCommand, ...]
    unclear: str | None = None


class UnclearShell(Exception):
    """Raised inside the reader and caught by it."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEYWORDS: Final = _names(
    "if then else elif fi for while until do done case esac in select function coproc { } ! [[ ]]"
)
"""Words that start something other than a simple command."""

MOVING: Final = _names("cd pushd popd chdir")
"""Builtins after which relative paths mean something else."""

HARMLESS_VARIABLES: Final = _names(
    "CI COLUMNS FORCE_COLOR LANG LC_ALL LC_CTYPE LINES NO_COLOR TERM TZ RUST_BACKTRACE"
    " RUST_LOG NODE_ENV PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE"
)
"""Variables that cannot make a program run something else; any other has to be in the rule."""

CHANGING: Final = _names(
    ". source eval exec alias unalias trap set shopt enable hash export declare typeset local"
    " readonly unset builtin let read getopts mapfile readarray bind complete function coproc"
    " fc history umask ulimit wait jobs fg bg disown suspend setopt unsetopt autoload zmodload"
    " emulate noglob nocorrect"
)
"""Builtins that change what later commands mean, or hide what they run."""

RUNNING: Final = _names(
    "watch parallel su script strace ltrace gdb flock busybox toybox chroot unshare nsenter"
    " systemd-run setpriv runuser pkexec ionice chrt taskset expect entr unbuffer rlwrap at batch"
    " crontab start-stop-daemon daemonize setarch numactl prlimit cgexec firejail bwrap faketime"
    " dbus-run-session xvfb-run ssh-agent screen tmux fish csh tcsh pwsh nu fakeroot fakechroot"
    " pseudo sg newgrp linux32 linux64 i386 x86_64 uname26 choom eatmydata catchsegv proot"
    " compgen compopt valgrind heaptrack perf ltrace run-parts runcon capsh dtach abduco reptyr"
    " gosu su-exec setuidgid chpst softlimit envdir s6-setuidgid cpulimit torsocks proxychains"
    " rbash ld.so"
)
"""Programs that run others by options too many to know."""

SHELLS: Final = _names("sh bash dash zsh ksh ash mksh")
"""Shells whose `-c` takes the language that is read here."""

INTERPRETERS: Final = _names("python python3 perl ruby node php")
"""Programs that run what is piped into them."""

PRIVILEGED: Final = _names("sudo doas")
"""Programs that run others with the rights of another user."""


_BRACKET: Final = "\x02"
_BREAKS: Final = " \t\n;&|<>()"
_EXPANDED: Final = "*?[]{}"
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_VARIABLE: Final = re.compile(
    r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]|\{[A-Za-z_][A-Za-z0-9_]*\})"
)
_REDIRECTION: Final = re.compile(r"&>>|&>|>>|>\||>&|<<<|<<|<>|<&|<\(|>\(|>|<")
_DESCRIPTOR: Final = re.compile(r"[0-9]+-?|-")
_SEPARATOR: Final = re.compile(r"&&|\|\||;|&|\||\n")
_JOINING: Final = frozenset({"&&", "||", "|"})
_UNREADABLE: Final = frozenset({"<<", "<<<", "<>", "<(", ">(", "&>", "&>>"})
"""Redirections that hold commands, or that shells do not agree on."""

_SHAPES: Final = {"*": SOME, "?": SOME, "[": _BRACKET, "{": _BRACKET, "]": "", "}": ""}
"""What is expanded → its part of a shape; of brackets and all behind them nothing is known."""

_TARGET: Final = re.compile(r"[A-Za-z0-9_./@%+,:-]+|'[^']+'|\"[A-Za-z0-9_./@%+,: -]+\"")
_QUIET: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})


def read_shell(text: str, depth: int = 0) -> ShellReading:
    """The simple commands of a text; never raises."""
    if len(text) > LONGEST_COMMAND or depth > DEEPEST:
        return ShellReading((), "it is too long or nested too deeply")
    if any(is_hidden(char) for char in text if char not in "\n\t"):
        return ShellReading((), "it contains invisible characters")
    reader = _Reader(text, depth)
    try:
        reader.commands("")
    except UnclearShell as found:
        return ShellReading(tuple(reader.found), str(found))
    if not reader.found:
        return ShellReading((), "it contains no command")
    return ShellReading(tuple(reader.found))


def _cut_shape(shape: str) -> str:
    before, bracket, _ = shape.partition(_BRACKET)
    return before + ANYTHING if bracket else shape


class _Draft:
    """A simple command while it is read."""

    def __init__(self, *, piped: bool = False) -> None:
        self.words: list[ShellWord] = []
        self.assignments: list[ShellWord] = []
        self.redirections: list[Redirection] = []
        self.shapes: list[str] = []
        self.piped = piped

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.assignments or self.redirections)


class _Reader:
    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.at = 0
        self.depth = depth
        self.found: list[SimpleCommand] = []
        self.moved = False
        self.shape = ""

    def commands(self, end: str) -> None:
        """Read up to `end`, or to the end of the text where that is empty."""
        joined = piped = False
        separator = ";"
        while separator:
            draft = _Draft(piped=piped)
            try:
                separator = self._command(draft, end)
            except UnclearShell:
                self._keep(draft)
                raise
            if draft.is_empty:
                self._check_empty(separator, end, joined=joined)
                continue
            self._emit(draft)
            joined, piped = separator in _JOINING, separator == "|"

    def _command(self, draft: _Draft, end: str) -> str:
        """Read one command; the separator behind it, or nothing at the end."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if end and char == end:
                self.at += 1
                return ""
            if char in " \t" or self.text.startswith("\\\n", self.at):
                self.at += 1 if char in " \t" else 2
            elif char == "#":
                self._skip_comment()
            elif found := self._separator():
                return found
            elif redirection := _REDIRECTION.match(self.text, self.at):
                self._redirect(draft, redirection[0])
            elif char in "()":
                raise UnclearShell("it groups commands with brackets")
            else:
                self._take_word(draft)
        if end:
            raise UnclearShell("a bracket is not closed")
        return ""

    def _check_empty(self, separator: str, end: str, *, joined: bool) -> None:
        if separator not in ("", "\n") or (separator == "" and (joined or end)):
            raise UnclearShell("a command is missing")

    def _skip_comment(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _separator(self) -> str:
        if self.text.startswith("&>", self.at):
            return ""
        found = _SEPARATOR.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def _emit(self, draft: _Draft) -> None:
        if len(self.found) >= MOST_COMMANDS:
            raise UnclearShell("it contains too many commands")
        if draft.assignments and not draft.words:
            raise UnclearShell("it sets a variable that later commands use")
        self.found.append(
            SimpleCommand(
                words=tuple(draft.words),
                assignments=tuple(draft.assignments),
                redirections=tuple(draft.redirections),
                piped=draft.piped,
                shapes=tuple(draft.shapes),
                moved=self.moved,
            )
        )
        self.moved = self.moved or (bool(draft.words) and draft.words[0] in MOVING)

    def _take_word(self, draft: _Draft) -> None:
        start = self.at
        word = self._word()
        raw = self.text[start : self.at]
        if raw.isascii() and raw.isdigit() and self.text[self.at : self.at + 1] in ("<", ">"):
            if len(raw) > 1:
                raise UnclearShell("shells disagree about numbers of more than one digit")
            return
        if not draft.words and _ASSIGNMENT.match(raw):
            draft.assignments.append(word)
            return
        if not draft.words and (raw in KEYWORDS or not word or not word.isascii()):
            raise UnclearShell(f"{raw[:80]!r} is not a plain program name")
        draft.words.append(word)
        if word is None:
            draft.shapes.append(self.shape)

    def _keep(self, draft: _Draft) -> None:
        """What was read of a command before it became unclear can still be forbidden."""
        words = (*draft.words, None) if draft.words else ()
        self.found.append(SimpleCommand(words=words, redirections=tuple(draft.redirections)))

    def _redirect(self, draft: _Draft, operator: str) -> None:
        """Take a redirection. Its target is a plain word: some shells expand others twice."""
        if operator in _UNREADABLE:
            raise UnclearShell(f"it redirects with {operator!r}")
        self.at += len(operator)
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        start = self.at
        target = self._word()
        if target is None or not _TARGET.fullmatch(self.text[start : self.at]):
            raise UnclearShell("it redirects to a target that is not a plain word")
        if operator in (">&", "<&") and not _DESCRIPTOR.fullmatch(target):
            raise UnclearShell(f"shells disagree about {operator!r} with a file")
        if operator in (">&", "<&") or target in _QUIET:
            return
        if self.moved and not target.startswith("/"):
            raise UnclearShell("it redirects to a relative path after a change of folder")
        draft.redirections.append(Redirection("read" if operator == "<" else "edit", target))

    def _word(self) -> ShellWord:
        """One word; None where the shell would make something else of it."""
        start, pieces, known = self.at, list[str](), True
        while self.at < len(self.text) and self.text[self.at] not in _BREAKS:
            char = self.text[self.at]
            if char == "'":
                pieces.append(self._read_single_quotes())
            elif char == '"':
                known = self._read_double_quotes(pieces) and known
            elif char == "\\":
                pieces.append(self._read_escape())
            elif char in "$`":
                known = self._expansion(pieces, quoted=False) and known
            else:
                is_expanded = self._is_expanded(char, start)
                known = known and not is_expanded
                pieces.append(_SHAPES.get(char, ANYTHING) if is_expanded else char)
                self.at += 1
        if self.at == start and self.at < len(self.text):
            raise UnclearShell("a word is missing")
        raw = self.text[start : self.at]
        if raw in ("[", "]", "{", "}"):
            return raw
        self.shape = _cut_shape("".join(pieces))
        return self.shape if known else None

    def _is_expanded(self, char: str, start: int) -> bool:
        if char == "~":
            return self.at == start or self.text[self.at - 1] in "=:"
        if self.text.startswith("{}", self.at - (char == "}")) and char in "{}":
            return False
        return char in _EXPANDED or (char == "=" and self.at == start)

    def _read_single_quotes(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise UnclearShell("a quote is not closed")
        inside, self.at = self.text[self.at + 1 : end], end + 1
        return inside

    def _read_escape(self) -> str:
        if self.at + 1 >= len(self.text):
            raise UnclearShell("it ends in a backslash")
        char, self.at = self.text[self.at + 1], self.at + 2
        if char == "\n":
            raise UnclearShell("a line continues in the middle of a word")
        return char

    def _read_double_quotes(self, pieces: list[str]) -> bool:
        """The inside of double quotes; whether it is known."""
        self.at += 1
        known = True
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return known
            if char == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                pieces.append(self._read_escape() if following in '$`"\\\n' else self._read_plain())
            elif char in "$`":
                known = self._expansion(pieces, quoted=True) and known
            else:
                pieces.append(self._read_plain())
        raise UnclearShell("a quote is not closed")

    def _read_plain(self) -> str:
        self.at += 1
        return self.text[self.at - 1]

    def _expansion(self, pieces: list[str], *, quoted: bool) -> bool:
        """What stands at a dollar or a backtick; whether it is plain text after all."""
        if self.text[self.at] == "`":
            self._read_backticks()
            pieces.append(ANYTHING)
            return False
        if variable := _VARIABLE.match(self.text, self.at):
            self.at = variable.end()
            pieces.append(ANYTHING)
            return False
        following = self.text[self.at + 1 : self.at + 2]
        if following == "(" and not self.text.startswith("$((", self.at):
            self._substitution()
            pieces.append(ANYTHING)
            return False
        if following and (following in "({[" or (not quoted and following in "'\"")):
            raise UnclearShell(f"it contains the expansion {self.text[self.at : self.at + 3]!r}")
        pieces.append(self._read_plain())
        return True

    def _substitution(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise UnclearShell("commands are nested too deeply")
        self.at += 2
        self.commands(")")
        self.depth -= 1

    def _read_backticks(self) -> None:
        end = self.text.find("`", self.at + 1)
        inside = self.text[self.at + 1 : end]
        if end < 0 or "\\" in inside or self.moved:
            raise UnclearShell("its backticks cannot be parsed")
        reading = read_shell(inside, self.depth + 1)
        self.found += reading.commands
        if reading.unclear:
            raise UnclearShell(reading.unclear)
        self.at = end + 1
