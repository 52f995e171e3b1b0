"""A request taken apart: everything that it touches is matched with the rules by itself, for
certain or only possibly.
"""

import posixpath
import re
from typing import Final

import msgspec

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
    covers_below,
    fold,
    matches,
    may_match,
    may_match_below,
    name_matches,
    path_steps,
)
from factwire.runtime.policy.shell_syntax import (
    HARMLESS_VARIABLES,
    Redirection,
    ShellWord,
    SimpleCommand,
)

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
        return any(fold(name) in PROTECTED for name in names)


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
    `touched` are places that words of a command name, if they are paths; `redirected` marks a file
    that a command is redirected from or to; `unclear` says why nothing can allow the part.
    """

    effect: Effect
    label: str
    place: NormalPath | None = None
    below: bool = False
    command: SimpleCommand | None = None
    touched: tuple[NormalPath, ...] = ()
    host: str | None = None
    redirected: bool = False
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


def _simple_parts(request: PolicyRequest, command: SimpleCommand) -> list[RequestPart]:
    touched = _touched_paths(request, command)
    run = RequestPart(effect="run", label=_label(command), command=command, touched=touched)
    files = [_redirection_part(request, each) for each in command.redirections]
    return [run, *files] if command.words else files


def _redirection_part(request: PolicyRequest, redirection: Redirection) -> RequestPart:
    return _path_part(request, redirection.path, redirection.access, redirected=True)


def _label(command: SimpleCommand) -> str:
    return " ".join("..." if word is None else word for word in command.words)


def _touched_paths(request: PolicyRequest, command: SimpleCommand) -> tuple[NormalPath, ...]:
    """Each argument, and what stands behind its `=`, as the path that it may be."""
    texts = {word for word in command.words[1:] if word}
    texts |= {text.partition("=")[2] for text in texts}
    places = (normalize_path(text, request.folder, request.workspace) for text in sorted(texts))
    return tuple(place for place in places if place is not None)


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
    if rule.kind == "path" and FAMILIES.get(fold_tool_name(rule.tool)) is not None and part.touched:
        return any(path_forbids(rule, place) for place in part.touched)
    if rule.pattern is None or not _is_about(rule, tool, part):
        return False
    if part.command is not None and rule.kind == "command":
        return _command_may_be(command_steps(rule.pattern), part.command)
    if part.place is not None and rule.kind == "path":
        return part.below and path_may_forbid(rule, part.place)
    return False


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
    return any(None in words and may_match(steps, words) for words in _readings_of(command))
