"""What a person is shown, and the hash that binds the answer to exactly that.

The attack: an approval for one command used for another, or a screen that shows less than runs.
`shown` holds everything that a request is made of, each line of a long value behind a bar so that
no value can pass for a field, and nothing hidden. No two requests are shown alike, so the hash of
the text is the hash of the request.
"""

import hashlib
import json
from typing import Final

from factwire.runtime.policy.requests import Request
from factwire.runtime.policy.visibility import visible

_DOMAIN: Final = "factwire-shown/v1\n"
"""What is hashed in front of the text, so that the hash is of nothing else."""


def shown(request: Request) -> str:
    """The canonical text of a request."""
    lines = [
        _field("tool", request.tool),
        _field("effect", request.effect),
        _field("workspace", request.workspace),
        _field("cwd", request.cwd),
        *_command(request.command),
        *(_field("path", path) for path in request.paths),
        _field("url", request.url),
        *_block("diff", request.diff, strict=False),
    ]
    if request.args:
        lines.append(_field("args", canonical_json(request.args)))
    return "\n".join(line for line in lines if line is not None)


def args_hash(request: Request) -> str:
    """SHA-256 of what is shown, as `sha256:` and 64 hexadecimal digits."""
    text = (_DOMAIN + shown(request)).encode()
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def canonical_json(value: object) -> str:
    """One text for one value: keys sorted, no blanks, characters as they are."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=repr
    )


def _command(command: str | tuple[str, ...] | None) -> list[str]:
    if isinstance(command, tuple):
        return [f"argv: {visible(canonical_json(list(command)))}"]
    return _block("command", command, strict=True)


def _field(name: str, value: str | None) -> str | None:
    return None if value is None else f"{name}: {visible(value)}"


def _block(name: str, value: str | None, *, strict: bool) -> list[str]:
    if value is None:
        return []
    text = visible(value, strict=strict, lines=True)
    return [f"{name}:", *(f"| {line}" for line in text.split("\n"))]
