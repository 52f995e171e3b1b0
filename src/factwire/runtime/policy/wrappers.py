"""Programs that run other programs: a rule speaks about what is run in the end.

The attack: `timeout 5 rm -rf ~`, `bash -c '…'`, `xargs rm`, under a rule for the outer program. A
wrapper whose options are known is taken off, and what it runs has to be allowed; the wrapper itself
can still be forbidden. With rights of another user the whole line has to be allowed by name. A
wrapper with anything unknown in it, and any builtin that changes what later commands mean, makes
the text unclear.
"""

import re
from typing import Final

import msgspec

from factwire.runtime.policy.commands import DEEPEST, Reading, Simple, Unclear, Word
from factwire.runtime.policy.programs import CHANGING, PRIVILEGED, RUNNING, SHELLS
from factwire.runtime.policy.shell import read_shell


class Wrapper(msgspec.Struct, frozen=True, kw_only=True):
    """A wrapper's options, alone or with a value behind them, and its words before the command."""

    alone: re.Pattern[str] = re.compile(r"(?!)")
    valued: frozenset[str] = frozenset()
    before: int = 0
    assigns: bool = False
    unknown_after: bool = False


WRAPPERS: Final[dict[str, Wrapper]] = {
    "env": Wrapper(alone=re.compile(r"-i|-|--"), valued=frozenset({"-u"}), assigns=True),
    "nohup": Wrapper(),
    "setsid": Wrapper(alone=re.compile(r"-[cfw]")),
    "time": Wrapper(alone=re.compile(r"-p")),
    "nice": Wrapper(alone=re.compile(r"-n?-?[0-9]+"), valued=frozenset({"-n"})),
    "stdbuf": Wrapper(alone=re.compile(r"-[ioe][0-9LKMG]+"), valued=frozenset({"-i", "-o", "-e"})),
    "timeout": Wrapper(
        alone=re.compile(r"-v|--foreground|--preserve-status|-[ks][A-Z0-9.smhd]+"),
        valued=frozenset({"-k", "-s"}),
        before=1,
    ),
    "command": Wrapper(alone=re.compile(r"--")),
    "xargs": Wrapper(
        alone=re.compile(r"-[0rtx]|-[nPL][0-9]+|-I\{\}|--no-run-if-empty|--null"),
        valued=frozenset({"-n", "-P", "-L", "-I", "-d"}),
        unknown_after=True,
    ),
    "sudo": Wrapper(
        alone=re.compile(r"-[nEHSkb]+|--"), valued=frozenset({"-u", "-g"}), assigns=True
    ),
    "doas": Wrapper(alone=re.compile(r"-n|--"), valued=frozenset({"-u"})),
}
"""Transparent wrappers by name. A program's path in front of its name makes it another program."""

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_SCRIPT: Final = re.compile(r"-[a-z]*c[a-z]*")
_SHELL_OPTION: Final = re.compile(r"-[aefhlnuvx]+")
_SYSTEM: Final = frozenset({"", "/bin", "/usr/bin"})
_EXECUTING: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_WRITING: Final = frozenset({"-fprint", "-fprint0", "-fprintf", "-fls"})


def read_command(command: str | tuple[str, ...]) -> Reading:
    """Every simple command that a shell text or an argv runs in the end; never raises."""
    if isinstance(command, str):
        return _unwrapped(read_shell(command), 0)
    if not command or not command[0] or not command[0].isascii():
        return Reading((), "it names no program")
    return _unwrapped(Reading((Simple(words=command),)), 0)


def _unwrapped(reading: Reading, depth: int) -> Reading:
    found: list[Simple] = []
    unclear = reading.unclear
    for command in reading.commands:
        try:
            found += _expanded(command, depth)
        except Unclear as reason:
            found.append(command)
            unclear = unclear or str(reason)
    return Reading(tuple(found), unclear)


def _expanded(command: Simple, depth: int) -> list[Simple]:
    if depth > DEEPEST:
        raise Unclear("commands stand too deep within commands")
    if not command.words:
        return [command]
    name = command.words[0] or ""
    base = name.rpartition("/")[2]
    if base in CHANGING or base in RUNNING or (base == "printf" and "-v" in command.words):
        raise Unclear(f"{base} changes what is run, or runs what cannot be seen")
    if base in SHELLS:
        return _of_shell(command, depth)
    if base in PRIVILEGED:
        return _of_privileged(command, base, depth)
    if base in WRAPPERS:
        return _of_wrapper(command, base, depth)
    return _of_find(command, depth) if base == "find" else [command]


def _of_shell(command: Simple, depth: int) -> list[Simple]:
    """`bash -c TEXT` runs the text; `bash FILE` is a command like any other."""
    for place, word in enumerate(command.words[1:], 1):
        if word is None:
            raise Unclear("a shell is given words that only the shell will know")
        if _SCRIPT.fullmatch(word):
            script = command.words[place + 1 : place + 2]
            return _scripted(command, script, depth)
        if word.startswith(("-", "+")) and not _SHELL_OPTION.fullmatch(word):
            raise Unclear(f"a shell is given the option {word[:40]!r}")
        if not word.startswith("-"):
            break
    return [command]


def _scripted(command: Simple, script: tuple[Word, ...], depth: int) -> list[Simple]:
    if not script or script[0] is None or command.assignments:
        raise Unclear("a shell is given a text that cannot be seen")
    folder = (command.words[0] or "").rpartition("/")[0]
    if folder not in _SYSTEM:
        raise Unclear(f"{command.words[0]} may be another program than a shell")
    inside = _unwrapped(read_shell(script[0], depth + 1), depth + 1)
    outer = Simple(words=command.words)
    found = [_forbiddable_as(each, outer) for each in inside.commands]
    if inside.unclear:
        raise Unclear(inside.unclear)
    if command.redirections:
        found.append(Simple(words=(), redirections=command.redirections))
    return found


def _of_privileged(command: Simple, name: str, depth: int) -> list[Simple]:
    """The whole line has to be allowed; what it runs can still be forbidden."""
    inside = _expanded(_taken_off(command, WRAPPERS[name]), depth + 1)
    if len(inside) != 1 or inside[0].also:
        raise Unclear(f"{name} runs more than one plain command")
    return [msgspec.structs.replace(command, also=tuple(inside))]


def _of_wrapper(command: Simple, name: str, depth: int) -> list[Simple]:
    if len(command.words) == 1 or (name == "command" and command.words[1] in ("-v", "-V")):
        return [command]
    if command.words[0] != name:
        raise Unclear(f"{command.words[0]} may be another program than {name}")
    outer = Simple(words=command.words)
    inside = _expanded(_taken_off(command, WRAPPERS[name]), depth + 1)
    return [_forbiddable_as(each, outer) for each in inside]


def _forbiddable_as(command: Simple, outer: Simple) -> Simple:
    return msgspec.structs.replace(command, also=(*command.also, outer))


def _taken_off(command: Simple, wrapper: Wrapper) -> Simple:
    """The command inside; raises `Unclear` at the first word that is not understood."""
    words = list(command.words[1:])
    assignments = list(command.assignments)
    before = wrapper.before
    while words and (taken := _option(words, wrapper, before)):
        if wrapper.assigns and _ASSIGNMENT.fullmatch(words[0] or ""):
            assignments.append(words[0])
        before -= 1 if not (words[0] or "").startswith("-") and before else 0
        del words[:taken]
    if not words or not words[0] or not words[0].isascii():
        raise Unclear(f"it cannot be seen what {command.words[0]} runs")
    after = [None] if wrapper.unknown_after else []
    return msgspec.structs.replace(
        command, words=(*words, *after), assignments=tuple(assignments), also=()
    )


def _option(words: list[Word], wrapper: Wrapper, before: int) -> int:
    """How many words in front belong to the wrapper."""
    word = words[0]
    if word is None:
        raise Unclear("a wrapper is given words that only the shell will know")
    if word in wrapper.valued:
        return 2
    if wrapper.alone.fullmatch(word) or (wrapper.assigns and _ASSIGNMENT.fullmatch(word)):
        return 1
    if word.startswith("-") or (wrapper.assigns and "=" in word):
        raise Unclear(f"a wrapper is given {word[:40]!r}")
    return 1 if before > 0 else 0


def _of_find(command: Simple, depth: int) -> list[Simple]:
    """`find -exec` runs what follows, `-delete` removes, `-fprint` writes."""
    words = command.words
    if any(word is None or word in _WRITING for word in words):
        raise Unclear("find writes to a file, or is given words that only the shell will know")
    found = [command]
    if "-delete" in words:
        found.append(Simple(words=("rm", None)))
    for place, word in enumerate(words):
        if word in _EXECUTING:
            found += _expanded(_executed(words[place + 1 :]), depth + 1)
    return found


def _executed(words: tuple[Word, ...]) -> Simple:
    pairs = enumerate(zip((None, *words), words, strict=False))
    ends = [place for place, pair in pairs if pair[1] == ";" or pair == ("{}", "+")]
    if not ends or not words[0] or "{}" in words[0]:
        raise Unclear("it cannot be seen what find runs")
    inside = (None if word is None or "{}" in word else word for word in words[: ends[0]])
    return Simple(words=tuple(inside))
