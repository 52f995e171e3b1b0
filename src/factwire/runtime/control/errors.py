"""What a control channel refuses, each with a stable code.

ControlError
  ControlUnavailable   the channel cannot be set up here, or not safely
  NobodyRunning        no runtime listens in this data folder
  NoAnswer             a runtime listens and does not answer, or not in the form that it should
"""


class ControlError(Exception):
    """The root; `code` never changes, the words may."""

    code = "control_error"


class ControlUnavailable(ControlError):
    code = "control_unavailable"


class NobodyRunning(ControlError):
    code = "nobody_running"


class NoAnswer(ControlError):
    code = "no_answer"
