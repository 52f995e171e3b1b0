"""The toolbox: what agents act through, each call under the policy and told as facts."""

from factwire.runtime.toolbox.tool_calls import TOOL_FAILURES, ToolOutcome
from factwire.runtime.toolbox.toolbox import TOOLS, Toolbox

__all__ = ["TOOLS", "TOOL_FAILURES", "ToolOutcome", "Toolbox"]
