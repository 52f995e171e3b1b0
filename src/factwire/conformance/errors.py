"""Why something cannot be tried at all, each with a stable code.

ConformanceError
├── UnknownModule    the module of `module:factory` is not there, or fails to load
├── UnknownFactory   the module has nothing of that name
├── BrokenFactory    the factory raised
├── NotAProvider     what the factory made lacks what a provider has
├── NotAReducer      what `module:function` names cannot be called
├── UnknownMinimum   a prompt is given for something that is no minimum
└── EmptyStream      there is not one fact to judge
"""


class ConformanceError(Exception):
    """The root; `code` never changes, the words may."""

    code = "conformance_error"


class UnknownModule(ConformanceError):
    code = "unknown_module"


class UnknownFactory(ConformanceError):
    code = "unknown_factory"


class BrokenFactory(ConformanceError):
    code = "broken_factory"


class NotAProvider(ConformanceError):
    code = "not_a_provider"


class NotAReducer(ConformanceError):
    code = "not_a_reducer"


class UnknownMinimum(ConformanceError):
    code = "unknown_minimum"


class EmptyStream(ConformanceError):
    code = "empty_stream"
