"""The web framework, with the one model system that the Edge uses.

Where pydantic happens to be installed, Litestar loads both of its generations at every start, to be
able to read models that no handler here has. That is more work than all else a start does.
"""

from typing import Any, Final

from litestar import Litestar
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin

ANSWERS: Final = "answers"
"""Key of `opt`: the type of what a handler answers, where its bytes are made elsewhere."""

CONTENT: Final = "content"
"""Key of `opt`: the media type of an answer that is bytes of somebody else's."""

ALSO: Final = "also"
"""Key of `opt`: other statuses that carry the same type."""


class MsgspecLitestar(Litestar):
    """Litestar for handlers whose bodies and answers are msgspec's."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


def declare_answer(kind: type[Any]) -> dict[str, Any]:
    """The `opt` of a handler whose bytes are a `kind`."""
    return {ANSWERS: kind}


def declare_bytes(media_type: str = "application/octet-stream") -> dict[str, Any]:
    """The `opt` of a handler that answers with content."""
    return {CONTENT: media_type}
