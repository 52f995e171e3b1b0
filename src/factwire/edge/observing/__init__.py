"""Observing: what an Edge tells those who run it, in figures, traces and lines of log.

Nothing here is asked per message: figures are read when somebody wants them, and spans are made of
facts only where an SDK takes them.
"""

from factwire.edge.observing.observed import Observed
from factwire.edge.observing.observing import Observing
from factwire.edge.observing.run_spans import follow_runs
from factwire.edge.observing.templates import UNMATCHED, Templates
from factwire.edge.observing.tracer import Tracing
from factwire.edge.observing.vitals import Vitals, recovered, unfinished

__all__ = [
    "UNMATCHED",
    "Observed",
    "Observing",
    "Templates",
    "Tracing",
    "Vitals",
    "follow_runs",
    "recovered",
    "unfinished",
]
