"""A projection's state in lines, part by part: a state goes in, lines come out.

Only as much is looked at as is shown, so that a long run costs about what a short one costs.
"""

from factwire.cli.sections.conversation import conversation
from factwire.cli.sections.lines import Section
from factwire.cli.sections.process import open_actions, process, tools
from factwire.cli.sections.status import hydration, status
from factwire.cli.sections.team import team
from factwire.cli.sections.work import artifacts, diagnostics, evidence, tasks

__all__ = [
    "Section",
    "artifacts",
    "conversation",
    "diagnostics",
    "evidence",
    "hydration",
    "open_actions",
    "process",
    "status",
    "tasks",
    "team",
    "tools",
]
