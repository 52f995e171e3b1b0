"""Processes: programs that agents run, what they say, and their certain end."""

from factwire.runtime.processes.batches import STREAMS, Stream
from factwire.runtime.processes.environment import child_environment
from factwire.runtime.processes.errors import (
    FolderRefused,
    InputClosed,
    InvalidSpec,
    LogUnavailable,
    NotStarted,
    ProcessError,
    ProcessStuck,
    ProgramNotFound,
)
from factwire.runtime.processes.host import Processes
from factwire.runtime.processes.log import LogFolder
from factwire.runtime.processes.output import Event
from factwire.runtime.processes.process import Interrupt, Process
from factwire.runtime.processes.reaper import Reaped
from factwire.runtime.processes.spec import (
    Exit,
    InputPiece,
    Ladder,
    OutputMode,
    OutputPiece,
    ProcessSpec,
)
from factwire.runtime.processes.telling import process_facts

__all__ = [
    "STREAMS",
    "Event",
    "Exit",
    "FolderRefused",
    "InputClosed",
    "InputPiece",
    "Interrupt",
    "InvalidSpec",
    "Ladder",
    "LogFolder",
    "LogUnavailable",
    "NotStarted",
    "OutputMode",
    "OutputPiece",
    "Process",
    "ProcessError",
    "ProcessSpec",
    "ProcessStuck",
    "Processes",
    "ProgramNotFound",
    "Reaped",
    "Stream",
    "child_environment",
    "process_facts",
]
