"""Cards: exactly what a person decides about, and the place that it is bound to.

A fact is redacted before it is stored, and a mask over a secret may cover more than the secret: in
`echo cookie: a=1234; touch x` everything behind the colon. So a decision is made from a card. Its
text comes from the memory of the runtime that asks. A secret on it is masked only within one word,
never past a blank, an operator, a quote, a substitution or a line break, and never where the word
could be the program that runs. An agent chooses the names of files, and may choose one that looks
like a token: `make ghp_…`. So a mask also needs something in front of it, such as `TOKEN=` or a
header, that says that a credential follows. What cannot be masked under these rules is shown, and
marked. With the masks filled in, the text is the one that the hash of the request covers.
"""

import os
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from factwire.facts import Fact
from factwire.facts.json_values import text_at
from factwire.facts.resources import DecisionCard
from factwire.facts.secret_key_names import REDACTED
from factwire.facts.secret_shapes import Secret, find_secrets
from factwire.projection.actions import Action
from factwire.runtime.policy import PolicyRequest, hash_shown, make_visible
from factwire.runtime.policy.command_wrappers import WRAPPERS
from factwire.runtime.policy.shell_syntax import (
    CHANGING,
    INTERPRETERS,
    KEYWORDS,
    PRIVILEGED,
    RUNNING,
    SHELLS,
)

MASK: Final = "⟦masked⟧"
"""Stands for a secret. In what a request shows, `⟦` is always ours: one in the text is marked."""

UNAVAILABLE: Final = (
    "the exact text of this request is no longer in memory, because the runtime that asked was "
    "restarted; deny it, and have the agent ask again"
)

_OPENING_QUOTES: Final = re.compile(r"\\?[\"']*")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
"""What a mask may cover: characters that no shell gives a meaning to."""

_CLOSING_QUOTES: Final = re.compile(r"(?:\\?[\"'])*")
_COMMAND_START: Final = re.compile(r"[;&|(){}`<>\n]")
_ASSIGNMENT: Final = re.compile(r"[\"']*[A-Za-z_][A-Za-z0-9_]*\+?=")
_QUOTES: Final = "\"'\\"

_RUNS_OTHERS: Final = frozenset(
    {*WRAPPERS, *CHANGING, *INTERPRETERS, *KEYWORDS, *PRIVILEGED, *RUNNING, *SHELLS, "find"}
)
"""Words behind which another word may be a program."""

_NAMED_RULES: Final = frozenset({"assignment", "login", "option", "url-password"})
"""Rules of redaction by which what is in front of a value says that it is a credential."""

_CREDENTIAL_PLACE: Final = re.compile(
    r"://(?:[^\s/@:\"']*:)?$|[\"'][A-Za-z0-9_-]+: (?:[A-Za-z]+ )?$"
)
"""What is in front of a credential in an address or in a quoted header."""

_RUNNING_NAME: Final = re.compile(
    r"(?i)(?:command|cmd|process|helper|program|askpass|exec|script|hook|editor|pager|shell)"
    r"[\"']*[=:,\s]*[\"']*$"
)
"""A name whose value is something to run, whatever else the name says: `PASSWORD_COMMAND`."""

_PATH: Final = re.compile(r"\.{0,2}/")
_ARGUMENTS: Final = "argv: ["
_ARGUMENT: Final = re.compile(r"\"((?:[^\"\\]|\\.)*)\"?")
_LONGEST_LEAD: Final = 200

_SEARCHED_AGAIN: Final = 10_000
"""Characters of what a mask left open that are searched for further secrets."""


class ShownRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a request shows, exactly, and the hash that binds the answer to it."""

    prompt: str
    shown: str
    args_hash: str


def shown_hash(prompt: str, args: object) -> tuple[str, str]:
    """The text to show, and its hash. Keys are sorted, so that the same arguments look the same; a
    text is shown as its lines, with nothing in them that could not be seen.
    """
    if args is None:
        shown = prompt
    elif isinstance(args, str):
        shown = "\n".join([prompt, *map(make_visible, args.split("\n"))])
    else:
        text = msgspec.json.format(msgspec.json.encode(args, order="sorted"), indent=2)
        shown = f"{prompt}\n{text.decode()}"
    return shown, _hash_text(shown)


_ABOUT: Final = ("toolName", "command", "cwd", "args", "path", "diffRef", "options", "request")
"""What a request shows beside its question."""

REQUEST_FIELDS: Final = frozenset({*_ABOUT, "prompt", "shown", "argsHash", "place"})
"""Fields by which an agent states, or changes, what it asks."""


def merge_request(before: Mapping[str, Any], update: Fact) -> Fact:
    """What a request states after an update, which leaves out what it does not change. A text that
    was made of the request as it was is not the text of one that changed.
    """
    changed = REQUEST_FIELDS & update.payload.keys()
    made = {"shown", "argsHash"} if changed - {"argsHash"} else set[str]()
    kept = {name: before[name] for name in REQUEST_FIELDS - made if name in before}
    return msgspec.structs.replace(update, payload={**kept, **update.payload})


def find_request_hash(request: Fact, before: str | None = None) -> str | None:
    """The hash that an answer is bound to: the one that the sender states, else ours. An update
    that changes what is asked, `before` being the hash until then, gets another one.
    """
    stated = text_at(request.payload, "argsHash")
    if stated is not None or (before is not None and REQUEST_FIELDS.isdisjoint(request.payload)):
        return stated or before
    shown = read_shown(request).args_hash
    return shown if before is None else _hash_text(f"{before}\n{shown}")


def read_shown(request: Fact) -> ShownRequest:
    """What a request that an agent made by its own stream shows: the text that it hashed as we do,
    or else everything that it is about.
    """
    fields = request.payload
    prompt = str(fields.get("prompt") or request.title or "")
    shown, args_hash = text_at(fields, "shown") or "", text_at(fields, "argsHash") or ""
    if not is_hash_of(args_hash, shown):
        about = {name: fields[name] for name in _ABOUT if name in fields} or None
        shown, args_hash = shown_hash(shown or prompt, about)
    return ShownRequest(prompt=prompt, shown=shown, args_hash=args_hash)


class MaskedText(msgspec.Struct, frozen=True, kw_only=True):
    """A text with `MASK` in place of each of `secrets`, in order; `is_partly_open` where a secret,
    or a part of one, had to be shown.
    """

    text: str
    secrets: tuple[str, ...] = ()
    is_partly_open: bool = False


def mask_secrets(text: str) -> MaskedText:
    """The text with the secrets masked that can be, each within its own word."""
    waiting = find_secrets(text)[::-1]
    if not waiting or MASK in text:
        return MaskedText(text=text, is_partly_open=bool(waiting))
    pieces: list[str] = []
    secrets: list[str] = []
    at, is_partly_open = 0, False
    while waiting:
        secret = waiting.pop()
        end = secret.end
        first, last = _clip(text, secret)
        if first < last:
            pieces += text[at:first], MASK
            secrets.append(text[first:last])
            at = last
        if not _CLOSING_QUOTES.fullmatch(text, last, end):
            is_partly_open = True
            waiting += _find_behind(text, last, end) if first < last else ()
    pieces.append(text[at:])
    return MaskedText(text="".join(pieces), secrets=tuple(secrets), is_partly_open=is_partly_open)


def _find_behind(text: str, start: int, end: int) -> list[Secret]:
    """The secrets in what is left of a secret behind its mask, the last one first."""
    rest = text[start:end] if end - start <= _SEARCHED_AGAIN else ""
    return [
        Secret(start + secret.start, start + secret.end, secret.rule)
        for secret in reversed(find_secrets(rest))
    ]


def _clip(text: str, secret: Secret) -> tuple[int, int]:
    """The part of a secret that a mask may cover; empty where it may cover none."""
    start, end = secret.start, secret.end
    quotes = _OPENING_QUOTES.match(text, start, end)
    first = start if quotes is None else quotes.end()
    token = _TOKEN.match(text, first, end)
    if token is None or not _is_credential(text, first, token.end(), secret.rule):
        return start, start
    return first, token.end()


def _is_credential(text: str, first: int, last: int, rule: str) -> bool:
    """Whether a word that looks like a secret is certain to be one: it is not a program, not the
    name of something to run or to open, and what is in front of it names a credential.
    """
    before = text[max(first - _LONGEST_LEAD, 0) : first]
    if _PATH.match(text, first) or _RUNNING_NAME.search(before) or _may_be_program(text, first):
        return False
    if rule in _NAMED_RULES:
        return True
    place = _CREDENTIAL_PLACE.search(before)
    return place is not None and (place[0][0] != ":" or text[last : last + 1] == "@")


def _may_be_program(text: str, place: int) -> bool:
    """Whether a word that begins here may be a program: before it is nothing but assignments, or a
    program that runs others.
    """
    before = text[max(place - _SEARCHED_AGAIN, 0) : place]
    if place > _SEARCHED_AGAIN and "\n" not in before:
        return True
    line = before[before.rfind("\n") + 1 :]
    if line.startswith(_ARGUMENTS):
        *words, last = _ARGUMENT.findall(line, len(_ARGUMENTS)) or [""]
        before = last if last.strip() else " ".join([*words, ""])
    starts = [match.end() for match in _COMMAND_START.finditer(before)]
    command = before[starts[-1] if starts else 0 :]
    bare = command.rstrip(_QUOTES)
    if bare and not bare[-1].isspace():
        return False
    words = [word for word in command.split() if word.strip(_QUOTES)]
    programs = [word for word in words if not _ASSIGNMENT.match(word)]
    return not programs or programs[0].strip(_QUOTES).rpartition("/")[2] in _RUNS_OTHERS


def build_action_card(action: Action, exact: ShownRequest | None) -> DecisionCard:
    """The card of an action; `exact` is what it shows, where that is in memory. Without it the card
    is what was recorded, provided that nothing of it was hidden.
    """
    args_hash = action.args_hash or ""
    if (exact is None or exact.args_hash != args_hash) and _is_recorded_whole(action):
        prompt = action.prompt or action.title or ""
        exact = ShownRequest(prompt=prompt, shown=action.shown or "", args_hash=args_hash)
    return build_card(action.action_id, args_hash, exact)


def build_card(request_id: str, args_hash: str, exact: ShownRequest | None) -> DecisionCard:
    """The card of a request; without the exact text of what has this hash, one that says so."""
    if exact is None or exact.args_hash != args_hash:
        return DecisionCard(request_id=request_id, args_hash=args_hash, reason=UNAVAILABLE)
    prompt, shown = mask_secrets(exact.prompt), mask_secrets(exact.shown)
    return DecisionCard(
        request_id=request_id,
        args_hash=args_hash,
        prompt=prompt.text,
        shown=shown.text,
        masks=len(prompt.secrets) + len(shown.secrets),
        has_open_secret=prompt.is_partly_open or shown.is_partly_open,
    )


def _is_recorded_whole(action: Action) -> bool:
    is_hidden = REDACTED in f"{action.prompt or action.title} {action.shown}"
    return not is_hidden and is_hash_of(action.args_hash, action.shown or "")


def is_hash_of(args_hash: str | None, shown: str) -> bool:
    """Whether a hash is the one of this text, as a tool's request or as a plain question."""
    return args_hash in (hash_shown(shown), _hash_text(shown))


def _hash_text(text: str) -> str:
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def bind_place(request: PolicyRequest) -> PolicyRequest:
    """The request, bound to the folders that its workspace and its folder are now."""
    if request.place is not None:
        return request
    return msgspec.structs.replace(request, place=read_place(request.workspace, request.cwd))


def is_same_place(request: PolicyRequest) -> bool:
    """Whether a request that was bound would still be done in the same folders."""
    return request.place is None or request.place == read_place(request.workspace, request.cwd)


def read_place(*folders: str | None) -> str | None:
    """Which folders these are now, by device and inode, so that another one in their place is
    noticed; None where one of them cannot be read.
    """
    try:
        found = [os.stat(folder) for folder in dict.fromkeys(folders) if folder is not None]  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return ", ".join(f"{folder.st_dev}:{folder.st_ino}" for folder in found)
