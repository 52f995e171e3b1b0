"""Why a program cannot be observed, each with a stable code.

ObserveError
├── NothingToObserve   no SDK that is known is installed, or none of this name
├── AlreadyObserving   this process is observed already
└── NoPlace            neither or both of an Edge and a journal were named
"""

from collections.abc import Iterable


class ObserveError(Exception):
    """The root; `code` never changes, the words may."""

    code = "observe_error"


class NothingToObserve(ObserveError):
    code = "nothing_to_observe"

    def __init__(self, extras: Iterable[str]) -> None:
        wanted = " or ".join(f"'factwire[{extra}]'" for extra in extras)
        super().__init__(f"nothing that could be observed is installed; install {wanted}")


class AlreadyObserving(ObserveError):
    code = "already_observing"

    def __init__(self) -> None:
        super().__init__("this process is observed already; close that first")


class NoPlace(ObserveError):
    code = "no_place"

    def __init__(self, given: str) -> None:
        super().__init__(
            f"expected edge='http://…' or journal='sqlite:…' to send facts to, got {given}"
        )
