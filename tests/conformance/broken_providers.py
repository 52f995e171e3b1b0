"""Agents that each break exactly one requirement, and are otherwise the reference."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

import msgspec

from factwire.facts import Fact, content_ref
from factwire.projection import ThreadReadModel
from factwire.runtime import CancelTurn, Decision, ReadThread, StartTurn
from tests.conformance.reference_provider import ANSWER, Fresh, Reference

BLOCKED_SECONDS = 5
SECRET = "sk-ant-api03-" + "aB3dE5fG7h" * 9 + "AA"


class DoublesText(Fresh):
    """Streams the whole text once more before it is final."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        if fact.event_class != "model.completed":
            return [fact]
        again = self.build_fact(
            turn, "model.delta", {"delta": "".join(ANSWER)}, message_id=fact.message_id
        )
        return [again, msgspec.structs.replace(fact, sequence=3)]


class DoublesFinal(Fresh):
    """Says twice that a text is final."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        if fact.event_class != "model.completed":
            return [fact]
        return [
            fact,
            self.build_fact(turn, "model.completed", fact.payload, message_id=fact.message_id),
        ]


class RenamesMessage(Fresh):
    """Ends a message under another id than it streamed under."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        if fact.event_class != "model.completed":
            return [fact]
        return [msgspec.structs.replace(fact, message_id="msg_other")]


class RenamesCalls(Fresh):
    """Knows its calls by other ids than it told."""

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        model = await super().read_thread(read)
        for call in model.tool_calls if model is not None else ():
            call.tool_call_id += "_again"
        return model


class LosesContent(Fresh):
    """Names content that it never kept."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        if "outputRef" not in fact.payload:
            return [fact]
        lost = {**fact.payload, "outputRef": content_ref("output", b"never kept")}
        return [msgspec.structs.replace(fact, payload=lost)]


class GuessesStatus(Fresh):
    """Calls a tool completed that has only been started."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        if fact.event_class != "tool.started":
            return [fact]
        return [msgspec.structs.replace(fact, status="completed")]


class FinishesEarly(Fresh):
    """Calls its run completed, and goes on."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        if fact.event_class != "tool.started":
            return [fact]
        return [self.build_fact(turn, "run.status", {"status": "completed"}), fact]


class InventsCompletion(Fresh):
    """Has a result of a call that it never started."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        started = fact.event_class == "tool.started" and fact.payload["toolName"] == "seq"
        return [] if started else [fact]


class SpeaksOn(Fresh):
    """Says something after the end of its turn."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        if fact.event_class != "turn.completed":
            return [fact]
        more = self.build_fact(turn, "model.delta", {"delta": "PS"}, message_id="msg_more")
        return [fact, more]


class EndsTwice(Fresh):
    """Ends its turn twice."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        if fact.event_class != "turn.completed":
            return [fact]
        return [fact, self.build_fact(turn, "turn.completed")]


class NeverEnds(Fresh):
    """Stops without saying that its turn has ended."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        return [] if fact.event_class == "turn.completed" else [fact]


class LeaksSecret(Fresh):
    """Puts a key into the arguments of a tool."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        if fact.event_class != "tool.started":
            return [fact]
        leaking = {**fact.payload, "args": {"header": f"x-api-key: {SECRET}"}}
        return [msgspec.structs.replace(fact, payload=leaking)]


class InlinesOutput(Fresh):
    """Puts a megabyte into a fact, and leaves it to others to move it."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        if "outputRef" not in fact.payload:
            return [fact]
        return [msgspec.structs.replace(fact, payload={"output": "x" * 1_000_000})]

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        del read
        return None


class MixesOrder(Fresh):
    """Numbers its facts out of order."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        swapped = {2: 3, 3: 2}.get(fact.sequence or 0, fact.sequence)
        return [msgspec.structs.replace(fact, sequence=swapped)]


class RepeatsId(Fresh):
    """Gives two facts the same id."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        if fact.event_class != "tool.started":
            return [fact]
        status = self.build_fact(turn, "run.status", {"status": "running"})
        return [status, status, fact]


class YieldsDictionaries(Fresh):
    """Takes any object for a fact."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        return [{"type": "text"}] if fact.event_class == "model.delta" else [fact]


class ForgetsIds(Fresh):
    """Makes an artifact that has no id."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        if fact.event_class != "tool.started":
            return [fact]
        return [self.build_fact(turn, "artifact.created", {"kind": "document"}), fact]


class GivesNoHint(Fresh):
    """Fails without saying what could help."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        if fact.event_class != "turn.failed":
            return [fact]
        return [msgspec.structs.replace(fact, payload={"failureCategory": "quota_exceeded"})]


class Disobeys(Fresh):
    """Does what it was told not to do."""

    def deploy(self, turn: StartTurn, decision: Decision, call: dict[str, str]) -> list[Fact]:
        del decision
        return [self.build_fact(turn, "tool.result", {"summary": "deployed"}, **call)]


class NeverAsks(Fresh):
    """Does what it should ask about."""

    async def ask(self, turn: StartTurn, call: str) -> Decision:
        del turn, call
        return Decision(action_id="none", allowed=True, decision="approved")


class SaysNothing(Fresh):
    """Completes a turn without a word."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        says = (fact.event_class or "").startswith("model.") and turn_is_text(fact)
        return [] if says else [msgspec.structs.replace(fact, sequence=None)]


def turn_is_text(fact: Fact) -> bool:
    return "talk" not in (fact.message_id or "") and not (fact.turn_id or "").endswith("cancel")


class InlinesALittle(Fresh):
    """Has nothing to show that is behind a ref."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        if "outputRef" not in fact.payload:
            return [fact]
        return [msgspec.structs.replace(fact, payload={"output": "12345678"})]


class NeverCalls(Fresh):
    """Speaks of a tool instead of calling it."""

    async def _tool(self, turn: StartTurn) -> AsyncIterator[Fact]:
        yield self.build_fact(turn, "model.completed", {"text": "I counted."}, message_id="msg")
        yield self.build_fact(turn, "turn.completed")


class EndsAtOnce(Fresh):
    """Has nothing to say that takes long enough to be cancelled."""

    async def _cancel(self, turn: StartTurn) -> AsyncIterator[Fact]:
        yield self.build_fact(turn, "turn.completed")


class ForgetsCalls(Fresh):
    """Has no calls in its own thread."""

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        model = await super().read_thread(read)
        return None if model is None else msgspec.structs.replace(model, tool_calls=[])


class ChangesItsMind(Fresh):
    """Has another thread each time it is read."""

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        model = await super().read_thread(read)
        if model is not None:
            model.history_cursor = f"page-{time.monotonic_ns()}"
        return model


class Raises(Fresh):
    """Fails by an exception that says nothing of what kind of failure it is."""

    async def _failure(self, turn: StartTurn) -> AsyncIterator[Fact]:
        yield self.build_fact(turn, "run.status", {"status": "running"})
        raise ValueError("out of quota")


class NeverFails(Fresh):
    """Completes what it was asked to fail at."""

    async def _failure(self, turn: StartTurn) -> AsyncIterator[Fact]:
        yield self.build_fact(turn, "turn.completed")


class StartsAnother(Fresh):
    """Tries again by itself, in a turn of its own."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        if fact.event_class != "tool.started":
            return [fact]
        again = self.build_fact(turn, "turn.started")
        return [msgspec.structs.replace(again, turn_id="trn_again"), fact]


class IgnoresCancel(Fresh):
    """Says that it can be cancelled, and cannot."""

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        del cancel
        return None


class ForgetsWhatItAsked(Fresh):
    """Says that it can go on after a restart, and gives up then."""

    async def _approval(self, turn: StartTurn) -> AsyncIterator[Fact]:
        if not turn.resumed:
            async for fact in super()._approval(turn):
                yield fact
            return
        call = {"tool_call_id": f"call_{turn.turn_id}"}
        failure = {"failureCategory": "state_lost", "recoveryHint": "Start again."}
        yield self.build_fact(turn, "tool.failed", failure, **call)
        yield self.build_fact(turn, "turn.failed", failure)


class Misremembers(Fresh):
    """Has another status in its own thread than it told."""

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        model = await super().read_thread(read)
        return None if model is None else msgspec.structs.replace(model, status="running")


class LosesRefs(Fresh):
    """Has lost in its own thread where the output is."""

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        model = await super().read_thread(read)
        for call in model.tool_calls if model is not None else ():
            call.output_ref = None
        return model


class ContradictsItself(Fresh):
    """Offers to be stopped, and says that it cannot be."""

    manifest = msgspec.structs.replace(Reference.manifest, cancel="no")


class Hangs(Fresh):
    """Never comes back from a tool."""

    async def _tool(self, turn: StartTurn) -> AsyncIterator[Fact]:
        yield self.build_fact(turn, "tool.started", {"toolName": "wait"}, tool_call_id="call")
        await asyncio.Event().wait()


class Blocks(Fresh):
    """Keeps everybody else from working while it does."""

    async def _tool(self, turn: StartTurn) -> AsyncIterator[Fact]:
        time.sleep(BLOCKED_SECONDS)  # noqa: ASYNC251 - that is what is wrong with it
        yield self.build_fact(turn, "turn.completed")


class Leaves(Fresh):
    """Ends the process in place of its turn, and once more beside it."""

    async def _tool(self, turn: StartTurn) -> AsyncIterator[Fact]:
        yield self.build_fact(turn, "tool.started", {"toolName": "exit"}, tool_call_id="call")
        raise SystemExit(7)

    async def _failure(self, turn: StartTurn) -> AsyncIterator[Fact]:
        async def leave() -> None:
            raise SystemExit(8)

        self.beside = asyncio.get_running_loop().create_task(leave())
        async for fact in super()._failure(turn):
            yield fact

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        del read
        raise SystemExit(9)


class OnlyRaises(Fresh):
    """Gives nothing, whatever it is asked for."""

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        raise ValueError(turn.prompt)
        yield


class OnlyHangs(Fresh):
    """Gives nothing, and does not come back."""

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        await asyncio.Event().wait()
        yield self.build_fact(turn, "turn.completed")


class CallsFailureResult(Fresh):
    """States a failure as a result whose status is failed."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        if "outputRef" not in fact.payload:
            return [fact]
        return [msgspec.structs.replace(fact, status="failed")]

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        del read
        return None


class LeaksInTitle(Fresh):
    """Puts a key into the title of a fact."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        if fact.event_class != "tool.started":
            return [fact]
        return [msgspec.structs.replace(fact, title=f"Call with {SECRET}")]


class LeaksInUnknownField(Fresh):
    """Puts a key into a field that nobody knows."""

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        del turn
        if fact.event_class != "tool.started":
            return [fact]
        return [msgspec.structs.replace(fact, extra={"debug": {"header": SECRET}})]


class AttachesLocalFile(Fresh):
    """Attaches a file by its path on this machine."""

    attachment: ClassVar[dict[str, str]] = {"type": "file", "path": "/home/me/plan.png"}

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        if fact.event_class != "tool.started":
            return [fact]
        payload = {"attachments": [self.attachment]}
        return [self.build_fact(turn, "context.attached", payload), fact]


class AttachesFileAddress(AttachesLocalFile):
    """Attaches a file by its address on this machine."""

    attachment: ClassVar[dict[str, str]] = {"type": "file", "url": "file:///home/me/plan.png"}


class AttachesBytes(AttachesLocalFile):
    """Attaches the bytes of an image."""

    attachment: ClassVar[dict[str, str]] = {"type": "image", "data": "iVBORw0KGgo="}


BROKEN: dict[Callable[[], Reference], set[str]] = {
    DoublesText: {"screen.final-text"},
    DoublesFinal: {"screen.final-text"},
    RenamesMessage: {"screen.stable-ids"},
    RenamesCalls: {"screen.stable-ids"},
    LosesContent: {"provider.refs"},
    GuessesStatus: {"stream.status"},
    FinishesEarly: {"stream.status"},
    InventsCompletion: {"stream.lifecycle"},
    SpeaksOn: {"stream.lifecycle"},
    EndsTwice: {"stream.terminal"},
    NeverEnds: {"stream.terminal"},
    LeaksSecret: {"stream.secrets"},
    InlinesOutput: {"stream.size"},
    MixesOrder: {"stream.sequence"},
    RepeatsId: {"stream.ids"},
    YieldsDictionaries: {"stream.schema"},
    ForgetsIds: {"stream.scope-ids"},
    GivesNoHint: {"stream.failure"},
    Disobeys: {"stream.approval"},
    NeverAsks: {"provider.approval", "provider.denial", "provider.resume"},
    NeverCalls: {"provider.tool"},
    EndsAtOnce: {"provider.cancel"},
    ForgetsCalls: {"provider.read-model"},
    ChangesItsMind: {"screen.stable-ids"},
    SaysNothing: {"provider.text"},
    InlinesALittle: {"provider.tool"},
    Raises: {"provider.failure"},
    NeverFails: {"provider.failure"},
    StartsAnother: {"provider.retry"},
    IgnoresCancel: {"provider.cancel"},
    ForgetsWhatItAsked: {"provider.resume"},
    Misremembers: {"provider.read-model"},
    LosesRefs: {"provider.read-model"},
    ContradictsItself: {"provider.manifest"},
    CallsFailureResult: {"stream.status"},
    LeaksInTitle: {"stream.secrets"},
    LeaksInUnknownField: {"stream.secrets"},
    AttachesLocalFile: {"stream.input"},
    AttachesFileAddress: {"stream.input"},
    AttachesBytes: {"stream.input"},
}
