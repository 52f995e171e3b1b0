"""How a call of a server's tool fails, and what helps.

`isError` is the tool's own word about its work. Everything else is about the way to it, and never
passes for an answer of the tool.
"""

from typing import Final

from factwire.runtime.toolbox.outcomes import ToolRefused

HINTS: Final = {
    "tool_error": "Read what the tool says, mend the arguments, and call it again.",
    "missing_extra": "Install it: pip install 'factwire[mcp]'.",
    "server_unavailable": "Check the server's command or URL, and what it needs, with `factwire "
    "doctor`.",
    "server_died": "Call it again: the server is started anew. What the call did before is not "
    "known.",
    "protocol_error": "The server refused the call or does not keep to the protocol; look into "
    "its own log.",
    "timeout": "Raise `seconds` of the server in the configuration, or ask for less at once.",
    "unknown_tool": "Use one of the tools that the server offers now.",
}
"""Category → what to do."""


def refusal(category: str, message: str) -> ToolRefused:
    return ToolRefused(category, message, hint=HINTS.get(category))
