"""Codex, as `codex app-server` speaks it: JSON-RPC lines, of both sides where both were recorded.

It is the whole protocol: pieces of text and output, approvals and their answers, diffs, plans and
subagents, with the time of each notification.
"""

from factwire.sources.codex_app_server.mapping import SOURCE

__all__ = ["SOURCE"]
