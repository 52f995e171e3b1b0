"""`Controls`: what a person may do to turns, wherever these run.

The requests and replies of the control channel are the one vocabulary for it. A runtime in this
process, the runtimes behind the sockets of a data folder and an Edge are asked in the same words,
and refuse by the same codes. Pure.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from factwire.runtime.control.control_messages import (
    CancelReply,
    CancelRequest,
    CardReply,
    CardRequest,
    ControlRefusal,
    ControlReply,
    ControlRequest,
    DecideReply,
    DecideRequest,
    QueueReply,
    QueueRequest,
    StatusReply,
    StatusRequest,
    SteerReply,
    SteerRequest,
    build_refusal,
)


class Controls(Protocol):
    """A refusal is a reply, with a code of `REFUSALS`. Raised is only what kept everybody from
    replying: a `ControlError`, or the error of the way there.
    """

    async def decide(self, request: DecideRequest) -> DecideReply | ControlRefusal: ...

    async def card(self, request: CardRequest) -> CardReply | ControlRefusal: ...

    async def cancel(self, request: CancelRequest) -> CancelReply | ControlRefusal: ...

    async def steer(self, request: SteerRequest) -> SteerReply | ControlRefusal: ...

    async def queue(self, request: QueueRequest) -> QueueReply | ControlRefusal: ...

    async def status(self) -> tuple[StatusReply, ...]:
        """What each runtime does now; empty where none says so."""
        ...


async def answer_request(controls: Controls, request: ControlRequest) -> ControlReply:
    """Send a request to the method that it is for."""
    return await _METHODS[type(request)](controls, request)


async def _answer_status(controls: Controls, request: StatusRequest) -> ControlReply:
    del request
    replies = await controls.status()
    return replies[0] if replies else build_refusal("malformed")


_METHODS: Final[dict[type[ControlRequest], Callable[[Controls, Any], Awaitable[ControlReply]]]] = {
    DecideRequest: lambda controls, request: controls.decide(request),
    CardRequest: lambda controls, request: controls.card(request),
    CancelRequest: lambda controls, request: controls.cancel(request),
    SteerRequest: lambda controls, request: controls.steer(request),
    QueueRequest: lambda controls, request: controls.queue(request),
    StatusRequest: _answer_status,
}
