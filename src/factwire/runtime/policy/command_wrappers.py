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

from factwire.runtime.policy.command_table import SYSTEM_FOLDERS, check_program
from factwire.runtime.policy.shell_syntax import (
    ANYTHING,
    CHANGING,
    DEEPEST,
    PRIVILEGED,
    RUNNING,
    SHELLS,
    ShellReading,
    ShellWord,
    SimpleCommand,
    UnclearShell,
    read_shell,
)


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
        alone=re.compile(r"-[0rtx]|-[nPL][0-9]+|-I.+|--no-run-if-empty|--null"),
        valued=frozenset({"-n", "-P", "-L", "-I", "-d"}),
        unknown_after=True,
    ),
    "sudo": Wrapper(
        alone=re.compile(r"-[nEHSkb]+|--"), valued=frozenset({"-u", "-g"}), assigns=True
    ),
    "doas": Wrapper(alone=re.compile(r"-n|--"), valued=frozenset({"-u"})),
}
"""Transparent wrappers by name. A program's path in front of its name makes it another program."""

ENVIRONMENTS: Final = frozenset(
    {("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("pipenv", "run"), ("bundle", "exec")}
)
"""Tools that run a program among the packages of a project, by their first two words."""

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_SCRIPT: Final = re.compile(r"-[a-z]*c[a-z]*")
_SHELL_OPTION: Final = re.compile(r"-[aefhlnuvx]+")
_LOADER: Final = re.compile(r"ld(?:64|-linux|-musl|-[0-9.]+)?.*\.so.*")
_REPLACING: Final = re.compile(r"-I(.+)|-i(.*)|--replace(?:=(.*))?", re.DOTALL)
_EXECUTING: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_WRITING: Final = frozenset({"-fprint", "-fprint0", "-fprintf", "-fls"})


def read_command(command: str | tuple[str, ...]) -> ShellReading:
    """Every simple command that a shell text or an argv runs in the end; never raises."""
    if isinstance(command, str):
        return _unwrap(read_shell(command), 0)
    if not command or not command[0] or not command[0].isascii():
        return ShellReading((), "it names no program")
    return _unwrap(ShellReading((SimpleCommand(words=command),)), 0)


def _unwrap(reading: ShellReading, depth: int) -> ShellReading:
    found: list[SimpleCommand] = []
    unclear = reading.unclear
    for command in reading.commands:
        try:
            found += _expand(command, depth)
        except UnclearShell as reason:
            found.append(command)
            unclear = unclear or str(reason)
    return ShellReading(tuple(found), unclear)


def _expand(command: SimpleCommand, depth: int) -> list[SimpleCommand]:
    if depth > DEEPEST:
        raise UnclearShell("commands are nested too deeply")
    if not command.words:
        return [command]
    name = command.words[0] or ""
    base = name.rpartition("/")[2]
    if base in CHANGING or base in RUNNING or _LOADER.match(base):
        raise UnclearShell(f"{base} changes what is run, or runs something that cannot be checked")
    if base in SHELLS:
        return _expand_shell(command, depth)
    if base in PRIVILEGED:
        return _expand_privileged(command, base, depth)
    if base in WRAPPERS:
        return _expand_wrapper(command, base, depth)
    if command.words[:2] in ENVIRONMENTS and len(command.words) > len(("uv", "run")):
        return _expand_environment(command, depth)
    return _expand_find(command, depth) if base == "find" else [check_program(command)]


def _expand_shell(command: SimpleCommand, depth: int) -> list[SimpleCommand]:
    """`bash -c TEXT` runs the text, and `bash FILE` a file that nobody has read. A shell that is
    called with neither runs what it is fed.
    """
    for place, word in enumerate(command.words[1:], 1):
        if word is None:
            raise UnclearShell("a shell receives arguments that are known only when it runs")
        if _SCRIPT.fullmatch(word):
            script = command.words[place + 1 : place + 2]
            return _expand_script(command, script, depth)
        if word.startswith(("-", "+")) and not _SHELL_OPTION.fullmatch(word):
            raise UnclearShell(f"a shell is called with the option {word[:40]!r}")
        if not word.startswith("-"):
            return [msgspec.structs.replace(command, opaque=True)]
    raise UnclearShell("a shell runs what it reads from its input")


def _expand_script(
    command: SimpleCommand, script: tuple[ShellWord, ...], depth: int
) -> list[SimpleCommand]:
    if not script or script[0] is None or command.assignments:
        raise UnclearShell("a shell runs a script that cannot be checked")
    folder = (command.words[0] or "").rpartition("/")[0]
    if folder not in SYSTEM_FOLDERS:
        raise UnclearShell(f"{command.words[0]} may not be a shell")
    inside = _unwrap(read_shell(script[0], depth + 1), depth + 1)
    outer = SimpleCommand(words=command.words)
    found = [
        msgspec.structs.replace(_forbiddable_as(each, outer), moved=each.moved or command.moved)
        for each in inside.commands
    ]
    if inside.unclear:
        raise UnclearShell(inside.unclear)
    if command.redirections:
        found.append(SimpleCommand(words=(), redirections=command.redirections))
    return found


def _expand_privileged(command: SimpleCommand, name: str, depth: int) -> list[SimpleCommand]:
    """The whole line has to be allowed; what it runs can still be forbidden."""
    inside = _expand(_strip_wrapper(command, WRAPPERS[name]), depth + 1)
    if len(inside) != 1 or inside[0].also:
        raise UnclearShell(f"{name} runs more than one plain command")
    return [msgspec.structs.replace(command, also=tuple(inside), opaque=inside[0].opaque)]


def _expand_wrapper(command: SimpleCommand, name: str, depth: int) -> list[SimpleCommand]:
    if len(command.words) == 1 or (name == "command" and command.words[1] in ("-v", "-V")):
        return [command]
    if command.words[0] != name:
        raise UnclearShell(f"{command.words[0]} may not be {name}")
    outer = SimpleCommand(words=command.words)
    inside = _expand(_strip_wrapper(command, WRAPPERS[name]), depth + 1)
    return [_forbiddable_as(each, outer) for each in inside]


def _expand_environment(command: SimpleCommand, depth: int) -> list[SimpleCommand]:
    """`uv run PROGRAM`; with options of its own it may run anything."""
    outer = SimpleCommand(words=command.words)
    first = command.words[2]
    if first is None or first.startswith("-") or not first.isascii():
        return [check_program(command)]
    inside = _expand(msgspec.structs.replace(command, words=command.words[2:]), depth + 1)
    return [_forbiddable_as(each, outer) for each in inside]


def _forbiddable_as(command: SimpleCommand, outer: SimpleCommand) -> SimpleCommand:
    return msgspec.structs.replace(command, also=(*command.also, outer))


def _strip_wrapper(command: SimpleCommand, wrapper: Wrapper) -> SimpleCommand:
    """The command inside; raises `UnclearShell` at the first word that is not understood."""
    words = list(command.words[1:])
    if wrapper.unknown_after:
        words = _replace_inputs(words)
    assignments = list(command.assignments)
    before = wrapper.before
    while words and (taken := _option(words, wrapper, before)):
        if wrapper.assigns and _ASSIGNMENT.fullmatch(words[0] or ""):
            assignments.append(words[0])
        before -= 1 if not (words[0] or "").startswith("-") and before else 0
        del words[:taken]
    if not words or not words[0] or not words[0].isascii():
        raise UnclearShell(f"what {command.words[0]} runs cannot be determined")
    after = [None] if wrapper.unknown_after else []
    shapes = (*command.shapes, ANYTHING) if wrapper.unknown_after else command.shapes
    return msgspec.structs.replace(
        command, words=(*words, *after), assignments=tuple(assignments), also=(), shapes=shapes
    )


def _replace_inputs(words: list[ShellWord]) -> list[ShellWord]:
    """The words of xargs, with nothing known of those in which it replaces something."""
    for place, word in enumerate(words):
        text = words[place + 1 : place + 2] if word == "-I" else []
        found = _REPLACING.fullmatch(word or "")
        mark = text[0] if text else next(filter(None, found.groups()), "{}") if found else ""
        if mark is None:
            raise UnclearShell("what xargs replaces cannot be determined")
        if mark:
            start = place + 1 + len(text)
            rest = (None if other is None or mark in other else other for other in words[start:])
            return [*words[:start], *rest]
    return words


def _option(words: list[ShellWord], wrapper: Wrapper, before: int) -> int:
    """How many words in front belong to the wrapper."""
    word = words[0]
    if word is None:
        raise UnclearShell("a wrapper receives arguments that are known only when it runs")
    if word in wrapper.valued:
        return 2
    if wrapper.alone.fullmatch(word) or (wrapper.assigns and _ASSIGNMENT.fullmatch(word)):
        return 1
    if word.startswith("-") or (wrapper.assigns and "=" in word):
        raise UnclearShell(f"a wrapper is called with {word[:40]!r}")
    return 1 if before > 0 else 0


def _expand_find(command: SimpleCommand, depth: int) -> list[SimpleCommand]:
    """`find -exec` runs what follows, `-delete` removes, `-fprint` writes."""
    words = command.words
    if any(word is None or word in _WRITING for word in words):
        raise UnclearShell(
            "find writes to a file, or receives arguments that are known only when it runs"
        )
    found = [command]
    if "-delete" in words:
        found.append(SimpleCommand(words=("rm", None), shapes=(ANYTHING,)))
    for place, word in enumerate(words):
        if word in _EXECUTING:
            found += _expand(_find_executed(words[place + 1 :]), depth + 1)
    return found


def _find_executed(words: tuple[ShellWord, ...]) -> SimpleCommand:
    pairs = enumerate(zip((None, *words), words, strict=False))
    ends = [place for place, pair in pairs if pair[1] == ";" or pair == ("{}", "+")]
    if not ends or not words[0] or "{}" in words[0]:
        raise UnclearShell("what find runs cannot be determined")
    inside = (None if word is None or "{}" in word else word for word in words[: ends[0]])
    return SimpleCommand(words=tuple(inside), shapes=(ANYTHING,), moved=True)
