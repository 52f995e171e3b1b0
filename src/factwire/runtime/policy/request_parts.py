"""A request taken apart: everything that it touches is matched with the rules by itself, for
certain or only possibly.
"""

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from factwire.runtime.policy.command_table import (
    FILELESS,
    carries_current_folder,
    carries_folders,
    leaves_names_open,
    moves_folders,
    name_of,
    reads_below,
)
from factwire.runtime.policy.command_wrappers import read_command
from factwire.runtime.policy.policy_request import (
    BELOW,
    PATHLESS,
    TOOL_EFFECTS,
    Effect,
    PolicyRequest,
    ReasonCode,
    effect_of,
    fold_tool_name,
    is_hidden,
)
from factwire.runtime.policy.policy_rules import (
    FAMILIES,
    PolicyRule,
    Steps,
    command_steps,
    command_tokens,
    covers_below,
    fold,
    matches,
    may_match,
    may_match_below,
    name_matches,
    path_pattern,
    path_steps,
)
from factwire.runtime.policy.shell_syntax import (
    ANYTHING,
    HARMLESS_VARIABLES,
    SOME,
    Redirection,
    ShellWord,
    SimpleCommand,
)
from factwire.runtime.program_lookup import find_planted_program

PROTECTED: Final[dict[str, str]] = {
    "version control": ".git .gitmodules .gitconfig .gitattributes .hg .hgrc .svn .bzr .jj"
    " .husky .githooks .lefthook* lefthook*.yml lefthook*.toml .pre-commit-config.y*ml"
    " .pre-commit-hooks.y*ml .lintstagedrc* lint-staged.config.*",
    "shells and what they load": ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases"
    " .profile .zshrc .zprofile .zshenv .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc config.fish"
    " .inputrc .envrc .direnvrc .mise.toml mise.toml .tool-versions .xprofile .xinitrc .ssh"
    " autostart/ *.desktop crontab",
    "debuggers and prompts": ".gdbinit .gdbearlyinit .lldbinit* .pdbrc* .pythonrc* .irbrc .pryrc"
    " .replrc .sqliterc .psqlrc .my.cnf .node_repl* .radare2rc",
    "editors": ".vscode *.code-workspace .idea .fleet .zed .devcontainer* devcontainer.json .vim"
    " .vimrc .nvimrc .exrc .nvim.lua .gvimrc .emacs .emacs.d .dir-locals*.el .projectile"
    " *.sublime-project .theia .helix",
    "agents": ".claude .claude.json claude.md claude.local.md .codex .opencode opencode.json*"
    " .cursor .cursorrules .windsurf .windsurfrules .gemini gemini.md .aider* .continue .cline*"
    " .clinerules .roo* .kiro .amp .goose* .goosehints .junie .qwen .factory agents.md agent.md"
    " .mcp.json mcp.json copilot-instructions.md .factwire factwire.toml",
    "continuous integration": ".github .gitlab-ci.y*ml .gitlab .gitea .forgejo .circleci"
    " .travis.yml .drone.y*ml .woodpecker* .buildkite .semaphore .appveyor.yml appveyor.yml"
    " azure-pipelines*.y*ml bitbucket-pipelines.yml jenkinsfile* .cirrus.y*ml cloudbuild.y*ml"
    " buildspec.y*ml .ci .teamcity",
    "builds": "makefile* gnumakefile *.mk *.mak cmakelists.txt *.cmake cmakepresets.json"
    " meson.build meson_options.txt build.ninja configure configure.ac build build.bazel *.bzl"
    " workspace workspace.bazel module.bazel .bazelrc justfile .justfile *.just taskfile*.y*ml"
    " rakefile *.rake sconstruct sconscript wscript build.xml pom.xml .mvn mvnw mvnw.cmd *.gradle"
    " *.gradle.kts gradle.properties gradle-wrapper.properties gradlew gradlew.bat build.sbt"
    " dockerfile* containerfile* *.dockerfile docker-compose*.y*ml compose*.y*ml vagrantfile"
    " procfile* tiltfile skaffold.y*ml flake.nix default.nix shell.nix dune-project earthfile"
    " dangerfile* fastfile",
    "Python": "conftest.py setup.py setup.cfg pyproject.toml tox.ini pytest.ini .pytest.ini"
    " noxfile.py sitecustomize.py usercustomize.py *.pth *.egg-link pip.conf pip.ini .pypirc"
    " fabfile.py dodo.py .coveragerc mypy.ini .mypy.ini .pylintrc pylintrc hatch_build.py"
    " __pycache__/ *.pyc site-packages/ uv.toml",
    "JavaScript": "package.json .npmrc .yarnrc* .pnpmfile.cjs pnpm-workspace.yaml .yarn"
    " node_modules/ *.config.js *.config.cjs *.config.mjs *.config.ts *.config.cts *.config.mts"
    " .babelrc* .eslintrc* .prettierrc* .mocharc* .swcrc .postcssrc* .stylelintrc* .nycrc*"
    " gruntfile.* gulpfile.* jakefile* bunfig.toml deno.json* nx.json turbo.json lerna.json"
    " .c8rc* .taprc wrangler.toml",
    "other languages": "cargo.toml .cargo build.rs rust-toolchain* gemfile *.gemspec .rspec"
    " composer.json .user.ini php.ini phpunit.xml* mix.exs rebar.config project.clj"
    " package.swift *.csproj *.fsproj *.vbproj *.sln *.props *.targets nuget.config global.json"
    " .perltidyrc .proverc .r*profile .renviron go.work build.zig stack.yaml *.cabal",
}
"""What runs it → names that run code later, or hold the policy itself; `*` is any characters. No
mode alone accepts an edit of such a file, nor of one below a name with a dot in front or a slash
behind it."""

_NAMES: Final = [name for names in PROTECTED.values() for name in names.split()]


def _compile_names(names: Iterable[str]) -> re.Pattern[str]:
    texts = (re.escape(name.removesuffix("/")).replace(r"\*", ".*") for name in names)
    return re.compile("|".join(texts))


_PROTECTED_FILES: Final = _compile_names(_NAMES)
_PROTECTED_FOLDERS: Final = _compile_names(
    name for name in _NAMES if name.startswith(".") or name.endswith("/")
)


class NormalPath(msgspec.Struct, frozen=True):
    """A normal path: absolute segments, and those below the workspace where it lies inside."""

    absolute: tuple[str, ...]
    relative: tuple[str, ...] | None

    @property
    def is_inside(self) -> bool:
        return self.relative is not None

    @property
    def is_protected(self) -> bool:
        names = self.absolute if self.relative is None else self.relative
        return any(_PROTECTED_FOLDERS.fullmatch(fold(name)) for name in names) or any(
            _PROTECTED_FILES.fullmatch(fold(name)) for name in names[-1:]
        )


def normalize_path(path: str, folder: str, workspace: str) -> NormalPath | None:
    """The place of a path, or None where it has no normal form."""
    if not path or not folder.startswith("/") or not workspace.startswith("/"):
        return None
    whole = posixpath.join(folder, path)
    if "\\" in path or path.startswith("~") or any(is_hidden(char) for char in whole):
        return None
    absolute, root = _segments(whole), _segments(workspace)
    inside = absolute[: len(root)] == root
    return NormalPath(absolute, absolute[len(root) :] if inside else None)


def _segments(path: str) -> tuple[str, ...]:
    return tuple(part for part in posixpath.normpath(path).split("/") if part)


def path_matches(rule: PolicyRule, place: NormalPath, *, below: bool) -> bool:
    """Whether a rule that allows covers a place, and all below it where the tool reaches it."""
    absolute, steps = path_steps(rule.pattern or "", folded=False)
    words = place.absolute if absolute else place.relative
    if words is None:
        return False
    return covers_below(steps, words) if below else matches(steps, words)


def path_forbids(rule: PolicyRule, place: NormalPath) -> bool:
    """Whether a rule that asks or denies is about a place; case and forms of letters aside."""
    words, steps = _fold_path(rule, place)
    return words is not None and matches(steps, words)


def path_may_forbid(rule: PolicyRule, place: NormalPath) -> bool:
    """Whether such a rule is about something below a place."""
    words, steps = _fold_path(rule, place)
    return words is not None and may_match_below(steps, words)


def _fold_path(rule: PolicyRule, place: NormalPath) -> tuple[tuple[str, ...] | None, Steps]:
    absolute, steps = path_steps(rule.pattern or "", folded=True)
    words = place.absolute if absolute else place.relative
    return None if words is None else tuple(map(fold, words)), steps


_URL: Final = re.compile(
    r"https?://(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)\.?(?::[0-9]{1,5})?(?:[/?#][\x21-\x5b\x5d-\x7e]*)?",
    re.IGNORECASE,
)


def parse_host(url: str) -> str | None:
    """The host in small letters; None for a URL that could be read in two ways."""
    found = _URL.fullmatch(url)
    if found is None or ".." in found["host"]:
        return None
    return found["host"].lower()


def host_matches(rule: PolicyRule, host: str) -> bool:
    """Whether a domain rule is about a host; `*.` stands for hosts below, not for the host."""
    if rule.domain.startswith("*."):
        return host.endswith(rule.domain[1:])
    return host == rule.domain


class RequestPart(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a request touches. `below` is whether a folder's content is reached, too;
    `touched` are places that words of a command name, if they are paths, and `shapes` what is known
    of those that cannot be resolved. A command that `carries` folders shows their content or gives
    it another name, which it keeps if they are `moved`: `carried` are those that it names.
    `redirected` marks a file that a command is redirected from or to; `confined` is as in the
    request; `unclear` says why nothing can allow the part.
    """

    effect: Effect
    label: str
    place: NormalPath | None = None
    below: bool = False
    command: SimpleCommand | None = None
    touched: tuple[NormalPath, ...] = ()
    carries: bool = False
    carried: tuple[NormalPath, ...] = ()
    moved: bool = False
    shapes: tuple[str, ...] = ()
    workspace: str = ""
    host: str | None = None
    redirected: bool = False
    confined: bool = False
    unclear: ReasonCode | None = None
    why: str | None = None


def split_request(request: PolicyRequest) -> list[RequestPart]:
    """At least one part, in the order in which the request names them."""
    parts = _command_parts(request) + _path_parts(request) + _url_parts(request)
    return parts or [_whole_part(request)]


def _whole_part(request: PolicyRequest) -> RequestPart:
    """A tool that names nothing it touches; one that works on files should have."""
    effect, name = effect_of(request), fold_tool_name(request.tool)
    missing = effect == "edit" or (name in TOOL_EFFECTS and effect == "read")
    unclear = "unclear_path" if missing and name not in PATHLESS else None
    return RequestPart(effect=effect, label=request.tool, unclear=unclear)


def _path_parts(request: PolicyRequest) -> list[RequestPart]:
    effect, below = effect_of(request), fold_tool_name(request.tool) in BELOW
    paths = request.paths
    if below and not paths and effect == "read":
        paths = (".",)
    return [_path_part(request, path, effect, below=below) for path in paths]


def _path_part(
    request: PolicyRequest,
    path: str,
    effect: Effect,
    *,
    below: bool = False,
    redirected: bool = False,
) -> RequestPart:
    place = normalize_path(path, request.folder, request.workspace)
    return RequestPart(
        effect=effect,
        label=path,
        place=place,
        below=below,
        redirected=redirected,
        unclear="unclear_path" if place is None else None,
    )


def _url_parts(request: PolicyRequest) -> list[RequestPart]:
    if request.url is None:
        return []
    host = parse_host(request.url)
    unclear = "unclear_url" if host is None else None
    return [RequestPart(effect=effect_of(request), label=request.url, host=host, unclear=unclear)]


def _command_parts(request: PolicyRequest) -> list[RequestPart]:
    if request.command is None:
        return []
    reading = read_command(request.command)
    parts = [part for command in reading.commands for part in _simple_parts(request, command)]
    if reading.unclear:
        label = request.command if isinstance(request.command, str) else " ".join(request.command)
        why = RequestPart(effect="run", label=label, unclear="unclear_command", why=reading.unclear)
        return [why, *parts]
    return parts


def is_readable(request: PolicyRequest) -> bool:
    """Whether it is certain what the command of a request runs, if it has one."""
    return all(part.unclear != "unclear_command" for part in split_request(request))


def runs_known_programs(request: PolicyRequest) -> bool:
    """Whether a command runs nothing but programs of which it is known what they run."""
    parts = split_request(request)
    return all(
        part.unclear is None and (part.command is None or not part.command.opaque) for part in parts
    )


def _simple_parts(request: PolicyRequest, command: SimpleCommand) -> list[RequestPart]:
    planted = sorted(_program_names(command) & request.planted.keys())
    run = RequestPart(
        effect="run",
        label=_label(command),
        command=command,
        below=reads_below(command),
        touched=_touched_paths(request, command),
        carries=carries_folders(command),
        carried=_carried_folders(request, command),
        moved=moves_folders(command),
        shapes=tuple(_path_shapes(request, command)),
        workspace=request.workspace,
        confined=request.confined,
        unclear="planted_program" if planted else None,
        why=request.planted[planted[0]] if planted else None,
    )
    files = [part for each in command.redirections for part in _redirection_parts(request, each)]
    return [run, *files] if command.words else files


def _program_names(command: SimpleCommand) -> set[str]:
    """The programs that a command runs, by names without a slash."""
    names = {each.words[0] for each in (command, *command.also) if each.words}
    return {name for name in names if name and "/" not in name}


def _redirection_parts(request: PolicyRequest, redirection: Redirection) -> list[RequestPart]:
    """The file by the name that it is opened by, and by that to which a link leads."""
    path, effect = redirection.path, redirection.access
    part = _path_part(request, path, effect, redirected=True)
    if part.place is not None and _is_of_process(part.place):
        part = msgspec.structs.replace(part, unclear="unclear_path")
    if path not in request.links:
        return [part]
    real = _path_part(request, request.links[path], effect, redirected=True)
    return [part, msgspec.structs.replace(real, why=f"{path} leads to it")]


def _label(command: SimpleCommand) -> str:
    return " ".join("..." if word is None else word for word in command.words)


def _touched_paths(request: PolicyRequest, command: SimpleCommand) -> tuple[NormalPath, ...]:
    """Each argument, and what stands behind its `=` and the like, as the path that it may be, and
    the folder that a command works in which reads folders.
    """
    texts = sorted(_path_texts(command)) + (["."] if reads_below(command) else [])
    texts += [request.links[text] for text in texts if text in request.links]
    places = (normalize_path(text, request.folder, request.workspace) for text in texts)
    return tuple(place for place in places if place is not None)


def _carried_folders(request: PolicyRequest, command: SimpleCommand) -> tuple[NormalPath, ...]:
    """The folders that a command reads or moves as a whole; any word may be one, unless somebody
    has looked.
    """
    if not carries_folders(command):
        return ()
    texts = sorted(
        text for text in _path_texts(command) if request.folders is None or text in request.folders
    )
    texts += [request.links[text] for text in texts if text in request.links]
    texts += ["."] if carries_current_folder(command) else []
    places = (normalize_path(text, request.folder, request.workspace) for text in texts)
    return tuple(place for place in places if place is not None)


_JOINING: Final = re.compile(r"[=:@,;<]")
_OPTION_ROW: Final = 10
_MOVING: Final = re.compile(r"-C.*|--(?:directory|chdir|cwd|work-tree|git-dir|root|prefix)\b.*")


def _path_texts(command: SimpleCommand) -> set[str]:
    """The literal words of a command that may be paths, or end in one."""
    return {text for word in command.words[1:] if word for text in _endings(word)}


def _endings(word: str) -> Iterator[str]:
    yield word
    if word.startswith("-"):
        # Behind a row of short options stands the value of the last one.
        yield from (word[place:] for place in range(2, min(len(word), _OPTION_ROW)))
    yield from (word[found.end() :] for found in _JOINING.finditer(word) if word[found.end() :])


def _path_shapes(request: PolicyRequest, command: SimpleCommand) -> Iterator[str]:
    """What is known of paths that only a run resolves: words that a shell expands, relative ones
    after a change of folder, and those that lead through a process.
    """
    if name_of(command) in _FILELESS:
        return
    for ending in (ending for shape in command.shapes for ending in _endings(shape)):
        whole = _join_folder(request, ending)
        yield f"{ANYTHING}/{whole.rpartition('/')[2]}" if _PROCESS.match(whole) else whole
    if leaves_names_open(command):
        yield ANYTHING
    moved = command.moved or any(word and _MOVING.fullmatch(word) for word in command.words[1:])
    for text in _path_texts(command):
        place = normalize_path(text, request.folder, request.workspace)
        if (place is not None and _is_of_process(place)) or (moved and not text.startswith("/")):
            yield f"{ANYTHING}/{text.rpartition('/')[2]}"


_FILELESS: Final = frozenset(("", name) for name in FILELESS)


def _join_folder(request: PolicyRequest, shape: str) -> str:
    """A shape as an absolute path; of what lies before a step upwards nothing is known."""
    whole = shape if shape.startswith(("/", ANYTHING)) else f"{request.folder}/{shape}"
    _, upwards, after = whole.rpartition("/..")
    return re.sub(r"/(?:\.?/)+", "/", f"{ANYTHING}{after}" if upwards else whole)


_PROCESS: Final = re.compile(r"/proc/|/dev/fd/")


def _is_of_process(place: NormalPath) -> bool:
    """Whether a path leads through a process, and so wherever that is."""
    return _PROCESS.match("/" + "/".join((*place.absolute, ""))) is not None


def follow_links(request: PolicyRequest) -> PolicyRequest:
    """The request, with where the words of its command really lead; looks at the disk."""
    if request.command is None:
        return request
    links: dict[str, str] = {}
    folders: set[str] = set()
    planted: dict[str, str] = {}
    for command in read_command(request.command).commands:
        for name in _program_names(command):
            if "\0" not in name and (file := find_planted_program(name, request.workspace)):
                planted[name] = file
        names = {redirection.path for redirection in command.redirections}
        for text in names | _path_texts(command):
            named = os.path.normpath(os.path.join(request.folder, text))  # noqa: PTH118 - it may be no path
            if "\0" in named:
                continue
            if (real := os.path.realpath(named)) != named:
                links[text] = real
            if os.path.isdir(real):  # noqa: PTH112 - it may be no path
                folders.add(text)
    return msgspec.structs.replace(
        request, links=links, folders=frozenset(folders), planted=planted
    )


def has_new_planted_program(request: PolicyRequest) -> bool:
    """Whether a name of the command leads to another file of an agent's than when it was followed;
    looks at the disk.
    """
    return request.folders is not None and follow_links(request).planted != request.planted


_LONGEST_OVERLAP: Final = 200_000
"""Steps to compare a shape with a rule; more are taken for a match."""

_MOST_FORMS: Final = 16
"""Ways to leave out folders of a rule; a rule with more is taken for a match."""


def _shape_may_be(rule: PolicyRule, shape: str, workspace: str) -> bool:
    """Whether a shape could be a path that a rule is about."""
    absolute, segments = path_pattern(rule.pattern or "")
    forms = {"" if absolute else fold(workspace.rstrip("/"))}
    for part in segments:
        if part == "**":
            forms |= {f"{form}/{ANYTHING}" for form in forms}
        else:
            forms = {f"{form}/{fold(part).replace('*', SOME)}" for form in forms}
        if len(forms) > _MOST_FORMS:
            return True
    return any(may_overlap(fold(shape), form) for form in forms)


def may_overlap(one: str, other: str) -> bool:
    """Whether two shapes have a text in common."""
    if len(one) * len(other) > _LONGEST_OVERLAP:
        return True
    left, seen = [(0, 0)], set[tuple[int, int]]()
    while left:
        place = left.pop()
        if place == (len(one), len(other)):
            return True
        if place not in seen:
            seen.add(place)
            left += _steps_of_overlap(one, other, *place)
    return False


def _steps_of_overlap(one: str, other: str, at: int, to: int) -> Iterator[tuple[int, int]]:
    first, second = one[at : at + 1], other[to : to + 1]
    if first in _WILD:
        yield at + 1, to
        if second and (first == ANYTHING or second != "/"):
            yield at, to + 1
    if second in _WILD:
        yield at, to + 1
        if first and (second == ANYTHING or first != "/"):
            yield at + 1, to
    if first and first == second:
        yield at + 1, to + 1


_WILD: Final = frozenset({SOME, ANYTHING})


def allows(rule: PolicyRule, tool: str, part: RequestPart) -> bool:
    """Whether a rule of the allow list covers the part for certain."""
    if part.unclear or not _may_speak_for(rule, tool, part):
        return False
    if rule.pattern is None:
        return True
    if part.command is not None:
        return rule.kind == "command" and _command_allowed(rule.pattern, part.command)
    if part.place is not None:
        return rule.kind == "path" and path_matches(rule, part.place, below=part.below)
    return part.host is not None and rule.kind == "domain" and host_matches(rule, part.host)


def forbids(rule: PolicyRule, tool: str, part: RequestPart) -> bool:
    """Whether a rule of the ask or deny list is about the part for certain."""
    if not _is_about(rule, tool, part):
        return False
    if rule.pattern is None:
        return True
    if part.command is not None and rule.kind == "command":
        steps = command_steps(rule.pattern)
        return any(matches(steps, words) for words in _readings_of(part.command))
    if part.place is not None and rule.kind == "path":
        return path_forbids(rule, part.place)
    return part.host is not None and rule.kind == "domain" and host_matches(rule, part.host)


def may_forbid(rule: PolicyRule, tool: str, part: RequestPart) -> bool:
    """Whether such a rule could be about the part, about something below it, or about a file that
    a command names.
    """
    if part.command is not None and is_path_rule(rule):
        return _may_touch(rule, part)
    if rule.pattern is None or not _is_about(rule, tool, part):
        return False
    if part.command is not None and rule.kind == "command":
        return _command_may_be(command_steps(rule.pattern), part.command)
    if part.place is not None and rule.kind == "path":
        return part.below and path_may_forbid(rule, part.place)
    return False


def _may_touch(rule: PolicyRule, part: RequestPart) -> bool:
    """Whether a command could reach a file that a rule is about. Nothing below a folder counts
    where the sandbox hides it.
    """
    return (
        any(path_forbids(rule, place) for place in part.touched)
        or any(_shape_may_be(rule, shape, part.workspace) for shape in part.shapes)
        or (
            part.below
            and not part.confined
            and any(path_may_forbid(rule, place) for place in part.touched)
        )
        or (part.carries and _may_carry(rule, part))
    )


def _may_carry(rule: PolicyRule, part: RequestPart) -> bool:
    """Whether a folder that a command carries could hold a file that a rule is about. What the
    sandbox hides is not shown, but what was moved may no longer be hidden afterwards.
    """
    if _holds_anywhere(rule) if part.moved else part.confined:
        return False
    inside = (f"{shape}/{ANYTHING}" for shape in part.shapes)
    return any(path_may_forbid(rule, place) for place in part.carried) or any(
        _shape_may_be(rule, shape, part.workspace) for shape in inside
    )


def _holds_anywhere(rule: PolicyRule) -> bool:
    """Whether a rule is about a name in any folder, so that it still holds after a move."""
    _, segments = path_pattern(rule.pattern or "")
    return segments[:1] == ["**"] and "**" not in segments[1:] and len(segments) <= len(("**", ""))


def may_run_forbidden(rule: PolicyRule, part: RequestPart) -> bool:
    """Whether a rule is about something that a program of which nothing is known could do."""
    if part.command is None or not part.command.opaque:
        return False
    return rule.kind == "command" or (is_path_rule(rule) and not part.confined)


def names_program(rule: PolicyRule) -> bool:
    """Whether a rule speaks about one program, by its name."""
    if rule.kind != "command":
        return False
    tokens = command_tokens(rule.pattern or "")
    first = next((token for token in tokens if not _ASSIGNMENT.match(token[0] or "")), (None,))
    return None not in first


_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def is_path_rule(rule: PolicyRule) -> bool:
    """Whether a rule is about paths, whichever tool reads or edits them."""
    return rule.kind == "path" and fold_tool_name(rule.tool) in FAMILIES


def _may_speak_for(rule: PolicyRule, tool: str, part: RequestPart) -> bool:
    """A family's name allows that effect alone, whatever a tool calls itself."""
    family = FAMILIES.get(fold_tool_name(rule.tool))
    if family is None or (family == "run" and part.redirected):
        return _is_about(rule, tool, part)
    return family == part.effect


def _is_about(rule: PolicyRule, tool: str, part: RequestPart) -> bool:
    """By the tool's name, or by the name of a whole family. A redirected file is the tool's own
    doing, but a pattern for commands says nothing about it.
    """
    if FAMILIES.get(fold_tool_name(rule.tool)) == part.effect:
        return True
    return name_matches(rule, tool) and not (part.redirected and rule.pattern is not None)


def _command_allowed(pattern: str, command: SimpleCommand) -> bool:
    risky = tuple(word for word in command.assignments if not _is_harmless(word))
    return matches(command_steps(pattern), (*risky, *command.words))


def _is_harmless(assignment: ShellWord) -> bool:
    return assignment is not None and assignment.partition("=")[0] in HARMLESS_VARIABLES


def _readings_of(command: SimpleCommand) -> list[tuple[ShellWord, ...]]:
    readings: list[tuple[ShellWord, ...]] = []
    for each in (command, *command.also):
        base = (each.words[0] or "").rpartition("/")[2] if each.words else ""
        readings += each.words, (*each.assignments, *each.words), (base, *each.words[1:])
    return readings


def _command_may_be(steps: Steps, command: SimpleCommand) -> bool:
    """By what a shell makes of its words; and an opaque program may run those behind its name."""
    readings = _readings_of(command)
    if command.opaque and any(
        may_match(steps, command.words[place:]) for place in range(1, len(command.words))
    ):
        return True
    return any(None in words and may_match(steps, words) for words in readings)
