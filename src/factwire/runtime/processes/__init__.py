"""Processes: programs that agents run, what they say, and their certain end."""

from factwire.runtime.processes.process_host import Processes, stream_process_facts
from factwire.runtime.processes.process_launch import child_environment
from factwire.runtime.processes.process_output import LogFolder, ProcessEvent
from factwire.runtime.processes.process_reaper import Reaped
from factwire.runtime.processes.process_spec import (
    STREAMS,
    Exit,
    FolderRefused,
    InputClosed,
    InputPiece,
    InvalidSpec,
    LogUnavailable,
    NotStarted,
    OutputMode,
    OutputPiece,
    ProcessError,
    ProcessSpec,
    ProcessStuck,
    ProgramNotFound,
    StopEscalation,
    Stream,
)
from factwire.runtime.processes.running_process import Interrupt, RunningProcess

__all__ = [
    "STREAMS",
    "Exit",
    "FolderRefused",
    "InputClosed",
    "InputPiece",
    "Interrupt",
    "InvalidSpec",
    "LogFolder",
    "LogUnavailable",
    "NotStarted",
    "OutputMode",
    "OutputPiece",
    "ProcessError",
    "ProcessEvent",
    "ProcessSpec",
    "ProcessStuck",
    "Processes",
    "ProgramNotFound",
    "Reaped",
    "RunningProcess",
    "StopEscalation",
    "Stream",
    "child_environment",
    "stream_process_facts",
]
