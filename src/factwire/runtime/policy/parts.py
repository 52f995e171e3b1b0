"""A request taken apart: everything that it touches is judged by itself.

Each path, each simple command, each redirected file and the URL is a part with an effect of its
own. A request is allowed when every part is.
"""

import msgspec

from factwire.runtime.policy.commands import Redirection, Simple
from factwire.runtime.policy.hosts import host_of
from factwire.runtime.policy.paths import Place, place_of
from factwire.runtime.policy.reasons import ReasonCode
from factwire.runtime.policy.requests import (
    BELOW,
    PATHLESS,
    TOOL_EFFECTS,
    Effect,
    Request,
    effect_of,
    lowered,
)
from factwire.runtime.policy.wrappers import read_command


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a request touches. `below` is whether a folder's content is reached, too;
    `touched` are places that words of a command name, if they are paths; `redirected` marks a file
    that a command is redirected from or to; `unclear` says why nothing can allow the part.
    """

    effect: Effect
    label: str
    place: Place | None = None
    below: bool = False
    command: Simple | None = None
    touched: tuple[Place, ...] = ()
    host: str | None = None
    redirected: bool = False
    unclear: ReasonCode | None = None
    why: str | None = None


def parts_of(request: Request) -> list[Part]:
    """At least one part, in the order in which the request names them."""
    parts = _command_parts(request) + _path_parts(request) + _url_parts(request)
    return parts or [_whole(request)]


def _whole(request: Request) -> Part:
    """A tool that names nothing it touches; one that works on files should have."""
    effect, name = effect_of(request), lowered(request.tool)
    missing = effect == "edit" or (name in TOOL_EFFECTS and effect == "read")
    unclear = "unclear_path" if missing and name not in PATHLESS else None
    return Part(effect=effect, label=request.tool, unclear=unclear)


def _path_parts(request: Request) -> list[Part]:
    effect, below = effect_of(request), lowered(request.tool) in BELOW
    paths = request.paths
    if below and not paths and effect == "read":
        paths = (".",)
    return [_path_part(request, path, effect, below=below) for path in paths]


def _path_part(
    request: Request, path: str, effect: Effect, *, below: bool = False, redirected: bool = False
) -> Part:
    place = place_of(path, request.folder, request.workspace)
    return Part(
        effect=effect,
        label=path,
        place=place,
        below=below,
        redirected=redirected,
        unclear="unclear_path" if place is None else None,
    )


def _url_parts(request: Request) -> list[Part]:
    if request.url is None:
        return []
    host = host_of(request.url)
    unclear = "unclear_url" if host is None else None
    return [Part(effect=effect_of(request), label=request.url, host=host, unclear=unclear)]


def _command_parts(request: Request) -> list[Part]:
    if request.command is None:
        return []
    reading = read_command(request.command)
    parts = [part for command in reading.commands for part in _simple_parts(request, command)]
    if reading.unclear:
        label = request.command if isinstance(request.command, str) else " ".join(request.command)
        why = Part(effect="run", label=label, unclear="unclear_command", why=reading.unclear)
        return [why, *parts]
    return parts


def _simple_parts(request: Request, command: Simple) -> list[Part]:
    touched = _touched(request, command)
    run = Part(effect="run", label=_label(command), command=command, touched=touched)
    files = [_redirected(request, each) for each in command.redirections]
    return [run, *files] if command.words else files


def _redirected(request: Request, redirection: Redirection) -> Part:
    return _path_part(request, redirection.path, redirection.way, redirected=True)


def _label(command: Simple) -> str:
    return " ".join("..." if word is None else word for word in command.words)


def _touched(request: Request, command: Simple) -> tuple[Place, ...]:
    """Each argument, and what stands behind its `=`, as the path that it may be."""
    texts = {word for word in command.words[1:] if word}
    texts |= {text.partition("=")[2] for text in texts}
    places = (place_of(text, request.folder, request.workspace) for text in sorted(texts))
    return tuple(place for place in places if place is not None)
