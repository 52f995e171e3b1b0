"""Why something was decided, as codes that never change."""

from typing import Final, Literal

Decision = Literal["allow", "ask", "deny"]
Mode = Literal["default", "acceptEdits", "plan", "dontAsk"]

MODES: Final[tuple[Mode, ...]] = ("default", "acceptEdits", "plan", "dontAsk")

ReasonCode = Literal[
    "rule_allow",
    "reading",
    "edit_in_workspace",
    "rule_ask",
    "edit_asks",
    "command_asks",
    "network_asks",
    "tool_asks",
    "outside_workspace",
    "protected_path",
    "may_reach_forbidden",
    "unclear_command",
    "unclear_path",
    "unclear_url",
    "rule_deny",
    "plan_mode",
    "dont_ask",
]

REASONS: Final[dict[ReasonCode, tuple[Decision, str]]] = {
    "rule_allow": ("allow", "a rule allows it"),
    "reading": ("allow", "it only reads, inside the workspace"),
    "edit_in_workspace": ("allow", "edits inside the workspace are accepted"),
    "rule_ask": ("ask", "a rule wants a person to be asked"),
    "edit_asks": ("ask", "it changes files, and no rule decides"),
    "command_asks": ("ask", "it runs a command, and no rule decides"),
    "network_asks": ("ask", "it reaches the network, and no rule decides"),
    "tool_asks": ("ask", "nobody knows what the tool does, and no rule decides"),
    "outside_workspace": ("ask", "the path lies outside the workspace, and no rule decides"),
    "protected_path": ("ask", "the path can make other programs run something"),
    "may_reach_forbidden": ("ask", "it could reach what a rule asks about or denies"),
    "unclear_command": ("ask", "it is not certain what the command runs"),
    "unclear_path": ("ask", "the path is missing or has no normal form"),
    "unclear_url": ("ask", "it is not certain which host the URL names"),
    "rule_deny": ("deny", "a rule denies it"),
    "plan_mode": ("deny", "while planning, nothing but reading is allowed"),
    "dont_ask": ("deny", "somebody would have to be asked, and nobody is to be"),
}
"""Code → the decision that it stands for, and why, in words."""
