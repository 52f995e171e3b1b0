"""The web framework, with the one model system that the Edge uses.

Where pydantic happens to be installed, Litestar loads both of its generations at every start, to be
able to read models that no handler here has. That is more work than all else a start does.
"""

from litestar import Litestar
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin


class MsgspecLitestar(Litestar):
    """Litestar for handlers whose bodies and answers are msgspec's."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]
