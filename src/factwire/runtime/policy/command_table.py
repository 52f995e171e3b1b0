"""What programs do with their arguments, as far as that is known: whether they run something else.

The tables are allow-lists. A program that is in none of them may run anything, so it is opaque: no
rule that leaves out its name speaks for it. A word that makes a program run a command that the line
itself contains, where no reader finds it, makes the line unclear, whatever the rule.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from factwire.runtime.policy.shell_syntax import (
    HARMLESS_VARIABLES,
    ShellWord,
    SimpleCommand,
    UnclearShell,
)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


HARMLESS: Final = _names(
    ": [ base32 base64 basename break cal cat cd chgrp chmod chown cksum clear cmp column comm"
    " continue cp csplit curl cut date dd df diff dirname dos2unix du echo egrep env exit expand"
    " expr factor false fgrep file find fmt fold free getconf gofmt grep groups gunzip gzip head"
    " hexdump hostname iconv id install join jq kill link ln locale logname ls lsblk lscpu md5sum"
    " mkdir mkfifo mktemp mv nl nproc numfmt od paste pgrep pidof pkill popd pr printenv printf ps"
    " pushd pwd readlink realpath return rev rg rm rmdir rustfmt sed awk gawk mawk seq sha1sum"
    " sha224sum sha256sum sha384sum sha512sum shift shred shuf sleep sort split stat strings sum"
    " sync tac tail tar tee test touch tput tr tree true truncate tsort tty type uname unexpand"
    " uniq unlink unzip uptime users wc which who whoami xargs xxd yes zcat"
)
"""Programs and builtins that run nothing, unless a word of `RUNNING_WORDS` makes them."""

PROJECT_TOOLS: Final[dict[str, re.Pattern[str]]] = {
    name: re.compile(f"(?:{'|'.join(verbs.split())}|-V|--version)" if verbs else r"(?s:.*)")
    for name, verbs in {
        "black": "",
        "cargo": "b bench build c check clean clippy doc fetch fmt metadata search t test tree",
        "eslint": "",
        "flake8": "",
        "go": "build clean doc fmt list mod test version vet",
        "isort": "",
        "jest": "",
        "mypy": "",
        "npm": "audit ci i info install ls outdated run t test view",
        "pip": "check freeze install list show",
        "pnpm": "i install list ls outdated run t test",
        "prettier": "",
        "pylint": "",
        "pyright": "",
        "pytest": "",
        "ruff": "check format rule",
        "tsc": "",
        "uv": "lock pip sync tree",
        "vitest": "",
        "yarn": "install list outdated run test",
    }.items()
}
"""Tools that test, build or check a project, with the verbs that do no more than that. They run the
project's own code; what makes them run other code is an option, and then they are opaque.
"""

_ODD_OPTION: Final = re.compile(
    r"-?-(?:asmflags|compiler|config|conf-file|confcutdir|cwd|dir|directory|editor|exec|gccgo|gcflags|git|global|import|ini"
    r"|init|ldflags|load|manifest|modfile|node|overlay|override|parser|plugin|prefix|preset|project"
    r"|python|require|resolve|root|rules|script|setup|shell|toolexec|use|userconfig|vettool).*"
    r"|-[cCpZo]\S*",
)

RUNNING_WORDS: Final[dict[str, re.Pattern[str]]] = {
    name: re.compile(words, re.DOTALL)
    for names, words in {
        "sort": r"--co.*",
        "rg": r"--pre(?!t).*|--hostname-bin.*",
        "tar": (
            r"-[A-Za-z]*[IF].*|[A-Za-z]*[IF][A-Za-z]*|--(?!(?:create|extract|get|list|file|verbose"
            r"|gzip|bzip2|xz|zstd|directory|exclude|strip-components)(?:=.*)?$).*"
        ),
        "zip unzip": r"-[A-Za-z]*T.*|--(?:unzip|test|temp).*",
        "ssh scp sftp rsync": r"-o.*|-[A-Za-z0-9]*[oFDSJe].*|--(?:rs|e$).*",
        "wget": r"--use-a.*|-e.*|--execute.*|--config.*",
        "curl": r"-K.*|--config.*",
        "vi vim nvim view ex ed emacs nano": r"[+-].*",
        "less more man info most": r"[+-].*",
        "make gmake": r"--e.*|-[A-Za-z]*[fI].*|--(?:f|m|i).*|.*=.*|-E.*",
        "test [": r"-[vR]|.*[$`].*",
        "printf": r"-v.*",
        "install": r"--str.*|-[A-Za-z]*s.*",
        "split": r"--f.*",
        "psql mysql sqlite3": r".*[\\|!].*|\.sh.*|\.sys.*|-c.*",
    }.items()
    for name in names.split()
}
"""Program → words that make it run a command, of which no other reader knows."""

_GIT_VERBS: Final = _names(
    "add annotate apply blame branch cat-file check-attr check-ignore checkout cherry cherry-pick"
    " clean commit count-objects describe diff diff-index diff-tree for-each-ref format-patch fsck"
    " gc hash-object log ls-files ls-tree merge merge-base mv name-rev notes prune range-diff"
    " reflog remote reset restore rev-list rev-parse revert rm shortlog show show-branch show-ref"
    " stash status switch symbolic-ref tag update-index var version worktree write-tree"
)
"""Of git: what runs nothing but the hooks of the repository."""

_GIT_CAREFUL: Final[dict[str, str]] = {
    "archive": r"--(?:exec|re).*",
    "clone": r"-[A-Za-z]*[cu].*",
    "config": r"(?!--get|--list|-l$|--show)(?:-.*|.*[ =!].*|(?!user\.).*)",
    "fetch": r"(?!)",
    "grep": r"-[A-Za-z]*O.*",
    "init": r"(?!)",
    "ls-remote": r"(?!)",
    "pull": r"(?!)",
    "push": r"(?!)",
    "rebase": r"-[A-Za-z]*x.*",
    "submodule": r"foreach|--foreach",
}
"""Of git: verbs that run something with these words, or with an option of `_GIT_RUNNING`."""

_GIT_RUNNING: Final = _names(
    "config exec ext-diff open-files-in-pager receive-pack template textconv upload-pack"
)
"""Long options of git that run something with one verb or another."""

_GIT_ANYWHERE: Final = re.compile(r".*\bext::.*", re.DOTALL)
_GIT_FIRST: Final = _names("--no-pager -P --no-optional-locks --literal-pathspecs")

_AWK_RUNS: Final = re.compile(r"system|getline|@|ARG[CV]")
_AWK_WRITES: Final = re.compile(r"(?<!\|)\|(?!\|)|>")
_AWK_OPTION: Final = re.compile(r"-F.*|-v.*")
_SED_OPTION: Final = re.compile(
    r"-[nErsuz]+|-n?i(?:\.[a-z]+)?|-[nErz]*e|--(?:quiet|silent|null-data)"
)


def _up_to(mark: str) -> str:
    """A regular expression of sed's up to its mark, which is no mark inside brackets."""
    return rf"(?:[^{mark}\\\n\[]|\\.|\[\^?\]?[^\]{mark}\n]*\])*\{mark}"


_ADDRESS: Final = rf"(?:\d+(?:~\d+)?|\$|/{_up_to('/')}I?)"
_SED_COMMAND: Final = (
    rf"[ \t]*(?:{_ADDRESS}(?:,(?:[+~]?\d+|{_ADDRESS}))?)?[ \t]*!?[ \t]*"
    r"(?:[pdPDnNgGhHxlz=]|q\d*"
    rf"|s/{_up_to('/')}(?:[^/\\]|\\.)*/[gpiIM0-9]*"
    rf"|s\|{_up_to('|')}(?:[^|\\]|\\.)*\|[gpiIM0-9]*"
    rf"|s#{_up_to('#')}(?:[^#\\]|\\.)*#[gpiIM0-9]*"
    r"|[aic](?:\\\n| )[^\n]*)?[ \t]*"
)
_SED_SCRIPT: Final = re.compile(rf"{_SED_COMMAND}(?:[;\n]{_SED_COMMAND})*", re.DOTALL)

SYSTEM_FOLDERS: Final = frozenset({"", "/bin", "/usr/bin"})
"""Folders whose programs are what their names say."""

FILELESS: Final = _names(
    ": break cd continue echo exit expr false id kill logname nproc popd printenv printf ps pushd"
    " pwd return seq shift sleep tput true tty type uname uptime which whoami yes"
)
"""Of the harmless ones: those that open no file that they are called with."""

_LISTING: Final = {
    **dict.fromkeys(("du", "sort", "wc"), _names("files0-from")),
    "git": _names("pathspec-from-file stdin-paths"),
}
"""Program → long options with which it takes the names of files from its input."""

_GIT_DEEP: Final = _names("--no-index --untracked")
_DEEP: Final = _names("rg tar")
_DEEP_WITH: Final = _names("chgrp chmod chown cp du egrep fgrep grep rm")
_CARRYING: Final = _names("diff ln mv")
_GIT_CARRYING: Final = _names("add mv stash")
_ALL_OPTION: Final = re.compile(r"-[A-Za-z]*[Aua].*|--(?:a|u|i).*")
_DEEP_OPTION: Final = re.compile(r"-[A-Za-z]*[rRa].*|-d.*|--(?:rec|deref|arch|dir).*")


def name_of(command: SimpleCommand) -> tuple[str, str]:
    """The folder and the name of a command's program."""
    folder, _, base = (command.words[0] or "").rpartition("/") if command.words else ("", "", "")
    return folder, base


def check_program(command: SimpleCommand) -> SimpleCommand:
    """The command, marked where it may run anything; raises `UnclearShell` where it contains a
    command that cannot be read.
    """
    folder, base = name_of(command)
    running = RUNNING_WORDS.get(base)
    for word in command.words[1:]:
        if word is not None and running is not None and running.fullmatch(word):
            raise UnclearShell(f"{base} may run something with {word[:40]!r}")
    assigned = {(word or "").partition("=")[0] for word in command.assignments}
    is_harmless = (
        assigned <= HARMLESS_VARIABLES
        and folder in SYSTEM_FOLDERS
        and _is_harmless(base, command.words[1:])
    )
    return command if is_harmless else msgspec.structs.replace(command, opaque=True)


def _is_harmless(base: str, words: tuple[ShellWord, ...]) -> bool:
    if words in (("--version",), ("--help",)):
        return True
    if check := _CHECKS.get(base):
        return check(words)
    if base in PROJECT_TOOLS:
        return _check_project_tool(base, words)
    return base in HARMLESS and not (base in RUNNING_WORDS and None in words)


def _check_project_tool(base: str, words: tuple[ShellWord, ...]) -> bool:
    verb = next((word for word in words if word is None or not word.startswith("-")), "")
    odd = any(word is not None and _ODD_OPTION.fullmatch(word) for word in words)
    return not odd and verb is not None and bool(PROJECT_TOOLS[base].fullmatch(verb))


def _check_python(words: tuple[ShellWord, ...]) -> bool:
    """`python -m pytest` is pytest; anything else is a program of its own."""
    module = words[1] if len(words) > 1 and words[0] == "-m" else None
    return module in PROJECT_TOOLS and _check_project_tool(module or "", words[2:])


def _abbreviates(word: str, options: frozenset[str]) -> bool:
    """Whether a word is one of these long options, or a beginning that programs take for it."""
    name = word.removeprefix("--").partition("=")[0]
    return word.startswith("--") and any(name and each.startswith(name) for each in options)


def _check_git(words: tuple[ShellWord, ...]) -> bool:
    place = 0
    while place < len(words) and (words[place] in _GIT_FIRST or words[place] == "-C"):
        place += 1 + (words[place] == "-C")
    rest = words[place:]
    if not rest or rest[0] in ("--version", "--help"):
        return True
    verb = rest[0]
    if verb is None:
        return False
    careful = _GIT_CAREFUL.get(verb)
    if verb not in _GIT_VERBS and careful is None:
        raise UnclearShell(f"git {verb[:40]!r} may be an alias, or run something")
    for word in rest[1:]:
        if word is not None and (
            _GIT_ANYWHERE.fullmatch(word)
            or (word != "--text" and _abbreviates(word, _GIT_RUNNING))
            or (careful and re.fullmatch(careful, word, re.DOTALL))
        ):
            raise UnclearShell(f"git {verb} may run something with {word[:40]!r}")
    return careful is None or None not in rest


def reads_below(command: SimpleCommand) -> bool:
    """Whether a command reaches what lies in the folders that it names, or in the current one."""
    _, base = name_of(command)
    words = command.words[1:]
    if base in _DEEP:
        return True
    if base == "git":
        return not _GIT_DEEP.isdisjoint(words)
    return base in _DEEP_WITH and any(word and _DEEP_OPTION.fullmatch(word) for word in words)


_URL_PATTERN: Final = re.compile(r"(?:--url=)?(?:file:|/).*[%\[{]", re.IGNORECASE | re.DOTALL)


def leaves_names_open(command: SimpleCommand) -> bool:
    """Whether the files of a command are named by its input, or by a pattern that it expands."""
    _, base = name_of(command)
    words = tuple(filter(None, command.words[1:]))
    if base == "curl":
        return any(_URL_PATTERN.match(word) or word.startswith("--proto-d") for word in words)
    return any(_abbreviates(word, _LISTING.get(base, frozenset())) for word in words)


def carries_folders(command: SimpleCommand) -> bool:
    """Whether a command shows what lies in the folders that it names, or gives it another name."""
    return name_of(command)[1] in _CARRYING or _git_verb(command) in _GIT_CARRYING


def moves_folders(command: SimpleCommand) -> bool:
    """Whether a folder has another name afterwards, under which a rule may not find its content."""
    return name_of(command)[1] == "mv" or _git_verb(command) == "mv"


def carries_current_folder(command: SimpleCommand) -> bool:
    """Whether a command of git takes everything below the current folder."""
    takes_all = any(word and _ALL_OPTION.match(word) for word in command.words)
    return takes_all and _git_verb(command) in ("add", "stash")


def _git_verb(command: SimpleCommand) -> ShellWord:
    """What a command of git does; it may be called in another folder."""
    if name_of(command)[1] != "git":
        return None
    verbs = _GIT_CARRYING.intersection(command.words[1 : 2 + len(("-C", "FOLDER"))])
    return next(iter(sorted(filter(None, verbs))), None)


def _check_script(
    words: tuple[ShellWord, ...],
    option: re.Pattern[str],
    is_plain: Callable[[str], bool],
    name: str,
) -> bool:
    """Whether the script of sed or awk is known to run nothing; an unknown one is opaque."""
    operands: list[ShellWord] = []
    scripts: list[ShellWord] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word is None or not word.startswith("-") or word == "-" or (name != "sed" and operands):
            operands.append(word)
        elif not option.fullmatch(word):
            raise UnclearShell(f"{name} may run something with {word[:40]!r}")
        elif name == "sed" and word.endswith("e"):
            scripts += left[:1]
            del left[:1]
        elif word in ("-F", "-v"):
            del left[:1]
    scripts = scripts or operands[:1]
    if None in scripts or (name == "sed" and None in operands):
        return False
    if not all(is_plain(script or "") for script in scripts):
        raise UnclearShell(f"the script of {name} may run something")
    return True


def _is_plain_awk(script: str) -> bool:
    """Without a command, a file of its own choice, or a printing that goes elsewhere."""
    _, _, printed = script.partition("print")
    return _AWK_RUNS.search(script) is None and _AWK_WRITES.search(printed) is None


def _is_plain_sed(script: str) -> bool:
    return len(script) <= _LONGEST_SCRIPT and _SED_SCRIPT.fullmatch(script) is not None


_LONGEST_SCRIPT: Final = 500
"""Characters of a sed script that are read."""


def _check_awk(words: tuple[ShellWord, ...]) -> bool:
    return _check_script(words, _AWK_OPTION, _is_plain_awk, "awk")


def _check_sed(words: tuple[ShellWord, ...]) -> bool:
    return _check_script(words, _SED_OPTION, _is_plain_sed, "sed")


_CHECKS: Final[dict[str, Callable[[tuple[ShellWord, ...]], bool]]] = {
    **dict.fromkeys(("awk", "gawk", "mawk"), _check_awk),
    **dict.fromkeys(("python", "python3"), _check_python),
    "git": _check_git,
    "sed": _check_sed,
}
"""Program → whether it runs nothing with these words, for those that a pattern does not tell of."""
