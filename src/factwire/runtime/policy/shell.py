"""Shell text, read only as far as it is certain what a shell would make of it.

The attack: `git status; rm -rf ~`, and every other way to put a second command behind the first.
The reader finds each simple command, also inside `$(…)`, backticks and pipes, and every file that
is redirected from or to. A word that the shell would expand is unknown (None). What the reader does
not know for sure, such as loops, functions, here-documents or arithmetic, makes the whole text
unclear; the commands found up to there are kept, since they can still be forbidden.
"""

import re
from typing import Final

from factwire.runtime.policy.commands import (
    DEEPEST,
    LONGEST_COMMAND,
    MOST_COMMANDS,
    Reading,
    Redirection,
    Simple,
    Unclear,
    Word,
)
from factwire.runtime.policy.programs import KEYWORDS, MOVING
from factwire.runtime.policy.visibility import is_hidden

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

_TARGET: Final = re.compile(r"[A-Za-z0-9_./@%+,:-]+|'[^']+'|\"[A-Za-z0-9_./@%+,: -]+\"")
_QUIET: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})


def read_shell(text: str, depth: int = 0) -> Reading:
    """The simple commands of a text; never raises."""
    if len(text) > LONGEST_COMMAND or depth > DEEPEST:
        return Reading((), "it is too long or too deep to be read")
    if any(is_hidden(char) for char in text if char not in "\n\t"):
        return Reading((), "it holds characters that cannot be seen")
    reader = _Reader(text, depth)
    try:
        reader.commands("")
    except Unclear as found:
        return Reading(tuple(reader.found), str(found))
    if not reader.found:
        return Reading((), "it holds no command")
    return Reading(tuple(reader.found))


class _Draft:
    """A simple command while it is read."""

    def __init__(self, *, piped: bool = False) -> None:
        self.words: list[Word] = []
        self.assignments: list[Word] = []
        self.redirections: list[Redirection] = []
        self.piped = piped

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.assignments or self.redirections)


class _Reader:
    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.at = 0
        self.depth = depth
        self.found: list[Simple] = []
        self.moved = False

    def commands(self, end: str) -> None:
        """Read up to `end`, or to the end of the text where that is empty."""
        joined = piped = False
        separator = ";"
        while separator:
            draft = _Draft(piped=piped)
            try:
                separator = self._command(draft, end)
            except Unclear:
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
                raise Unclear("it groups commands with brackets")
            else:
                self._take_word(draft)
        if end:
            raise Unclear("a bracket is left open")
        return ""

    def _check_empty(self, separator: str, end: str, *, joined: bool) -> None:
        if separator not in ("", "\n") or (separator == "" and (joined or end)):
            raise Unclear("a command is missing")

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
            raise Unclear("it holds too many commands")
        if draft.assignments and not draft.words:
            raise Unclear("it sets a variable that later commands see")
        self.found.append(
            Simple(
                words=tuple(draft.words),
                assignments=tuple(draft.assignments),
                redirections=tuple(draft.redirections),
                piped=draft.piped,
            )
        )
        self.moved = self.moved or (bool(draft.words) and draft.words[0] in MOVING)

    def _take_word(self, draft: _Draft) -> None:
        start = self.at
        word = self._word()
        raw = self.text[start : self.at]
        if raw.isascii() and raw.isdigit() and self.text[self.at : self.at + 1] in ("<", ">"):
            if len(raw) > 1:
                raise Unclear("shells do not agree on numbers of more than one digit")
            return
        if not draft.words and _ASSIGNMENT.match(raw):
            draft.assignments.append(word)
            return
        if not draft.words and (raw in KEYWORDS or not word or not word.isascii()):
            raise Unclear(f"{raw[:80]!r} is no plain name of a program")
        draft.words.append(word)

    def _keep(self, draft: _Draft) -> None:
        """What was read of a command before it became unclear can still be forbidden."""
        words = (*draft.words, None) if draft.words else ()
        self.found.append(Simple(words=words, redirections=tuple(draft.redirections)))

    def _redirect(self, draft: _Draft, operator: str) -> None:
        """Take a redirection. Its target is a plain word: some shells expand others twice."""
        if operator in _UNREADABLE:
            raise Unclear(f"it redirects with {operator!r}")
        self.at += len(operator)
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        start = self.at
        target = self._word()
        if target is None or not _TARGET.fullmatch(self.text[start : self.at]):
            raise Unclear("it redirects to a place that is no plain word")
        if operator in (">&", "<&") and not _DESCRIPTOR.fullmatch(target):
            raise Unclear(f"shells do not agree on {operator!r} with a file")
        if operator in (">&", "<&") or target in _QUIET:
            return
        if self.moved and not target.startswith("/"):
            raise Unclear("it redirects to a relative path after a change of folder")
        draft.redirections.append(Redirection("read" if operator == "<" else "edit", target))

    def _word(self) -> Word:
        """One word; None where the shell would make something else of it."""
        start, pieces, known = self.at, list[str](), True
        while self.at < len(self.text) and self.text[self.at] not in _BREAKS:
            char = self.text[self.at]
            if char == "'":
                pieces.append(self._single())
            elif char == '"':
                known = self._double(pieces) and known
            elif char == "\\":
                pieces.append(self._escaped())
            elif char in "$`":
                known = self._expansion(pieces, quoted=False) and known
            else:
                known = known and not self._is_expanded(char, start)
                pieces.append(char)
                self.at += 1
        if self.at == start and self.at < len(self.text):
            raise Unclear("a word is missing")
        raw = self.text[start : self.at]
        return "".join(pieces) if known or raw in ("[", "]", "{", "}") else None

    def _is_expanded(self, char: str, start: int) -> bool:
        if char == "~":
            return self.at == start or self.text[self.at - 1] in "=:"
        if self.text.startswith("{}", self.at - (char == "}")) and char in "{}":
            return False
        return char in _EXPANDED or (char == "=" and self.at == start)

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unclear("a quote is left open")
        inside, self.at = self.text[self.at + 1 : end], end + 1
        return inside

    def _escaped(self) -> str:
        if self.at + 1 >= len(self.text):
            raise Unclear("it ends in a backslash")
        char, self.at = self.text[self.at + 1], self.at + 2
        if char == "\n":
            raise Unclear("a line goes on in the middle of a word")
        return char

    def _double(self, pieces: list[str]) -> bool:
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
                pieces.append(self._escaped() if following in '$`"\\\n' else self._plain())
            elif char in "$`":
                known = self._expansion(pieces, quoted=True) and known
            else:
                pieces.append(self._plain())
        raise Unclear("a quote is left open")

    def _plain(self) -> str:
        self.at += 1
        return self.text[self.at - 1]

    def _expansion(self, pieces: list[str], *, quoted: bool) -> bool:
        """What stands at a dollar or a backtick; whether it is plain text after all."""
        if self.text[self.at] == "`":
            self._backticks()
            return False
        if variable := _VARIABLE.match(self.text, self.at):
            self.at = variable.end()
            return False
        following = self.text[self.at + 1 : self.at + 2]
        if following == "(" and not self.text.startswith("$((", self.at):
            self._substitution()
            return False
        if following and (following in "({[" or (not quoted and following in "'\"")):
            raise Unclear(f"it expands with {self.text[self.at : self.at + 3]!r}")
        pieces.append(self._plain())
        return True

    def _substitution(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unclear("commands stand too deep within commands")
        self.at += 2
        self.commands(")")
        self.depth -= 1

    def _backticks(self) -> None:
        end = self.text.find("`", self.at + 1)
        inside = self.text[self.at + 1 : end]
        if end < 0 or "\\" in inside or self.moved:
            raise Unclear("its backticks cannot be read")
        reading = read_shell(inside, self.depth + 1)
        self.found += reading.commands
        if reading.unclear:
            raise Unclear(reading.unclear)
        self.at = end + 1
