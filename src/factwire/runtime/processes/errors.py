"""What a process refuses, and how it says so.

    ProcessError
    ├── InvalidSpec        argv, environment or a number is not of the form
    ├── FolderRefused      the working directory is not inside an allowed workspace
    ├── ProgramNotFound    no such program, or not one that may be run
    ├── NotStarted         the system refused to start it
    ├── InputClosed        the program takes no input, or no longer
    ├── LogUnavailable     no log is kept of this process or stream
    └── ProcessStuck       it is still there after SIGKILL

Codes are stable; messages may change.
"""


class ProcessError(Exception):
    """The root of every error that `factwire.runtime.processes` raises; `code` is stable."""

    code: str = "process_error"


class InvalidSpec(ProcessError):
    code = "invalid_spec"


class FolderRefused(ProcessError):
    code = "folder_refused"


class ProgramNotFound(ProcessError):
    code = "program_not_found"


class NotStarted(ProcessError):
    code = "not_started"


class InputClosed(ProcessError):
    code = "input_closed"


class LogUnavailable(ProcessError):
    code = "log_unavailable"


class ProcessStuck(ProcessError):
    code = "process_stuck"
