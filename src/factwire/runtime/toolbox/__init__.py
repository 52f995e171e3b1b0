"""The toolbox: what agents act through, each call under the policy and told as facts."""

from factwire.runtime.toolbox.outcomes import TOOL_FAILURES, Outcome
from factwire.runtime.toolbox.toolbox import TOOLS, Toolbox

__all__ = ["TOOLS", "TOOL_FAILURES", "Outcome", "Toolbox"]
