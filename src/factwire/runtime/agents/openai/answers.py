"""What a model hears of a call: what came of it, or that it was denied, or why it failed.

The same words for a call that was just made and for one out of the history.
"""

from typing import Final

from factwire.projection.tools import Tool
from factwire.runtime.agents.openai.limits import RESULT_CHARACTERS
from factwire.runtime.toolbox import Outcome

NOTHING: Final = "(no output)"


def heard(outcome: Outcome) -> str:
    """A call that was just made."""
    code = outcome.data.get("exitCode")
    return _told(outcome.category, outcome.text, code if isinstance(code, int) else None)


def heard_of(tool: Tool, output: str) -> str:
    """A call of the past, with the output that is known of it."""
    if tool.completed_at is None:
        return "Interrupted: nobody knows whether it was done."
    said = output or tool.message or tool.summary or ""
    return _told(tool.failure_category, said, tool.exit_code)


def _told(category: str | None, text: str, exit_code: int | None) -> str:
    shown = _shortened(text)
    if category is None:
        return shown or NOTHING
    if category == "permission_denied":
        return f"Denied: {shown or 'not allowed'}. It was not done."
    code = f", exit code {exit_code}" if exit_code is not None else ""
    return f"Failed ({category}{code}): {shown or NOTHING}"


def _shortened(text: str) -> str:
    """Both ends of a long text: files say most at their beginning, programs at their end."""
    if len(text) <= RESULT_CHARACTERS:
        return text
    tail = RESULT_CHARACTERS // 3
    head = RESULT_CHARACTERS - tail
    left_out = len(text) - RESULT_CHARACTERS
    return f"{text[:head]}\n… {left_out} characters left out …\n{text[-tail:]}"
