"""What a runtime promises about turns, approvals, gates, recovery and recording."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

_TURNS: Final = requirements(
    "facts.md Provider; edge.md Runs",
    {
        "runtime.turn.id-taken": "A fact whose id is taken is left out and told; the turn goes on.",
        "runtime.turn.result": "The snapshot after a turn says how long it took and what it used.",
        "runtime.turn.order": "A turn is submitted, started and ended in order, in valid facts.",
        "runtime.turn.idempotent": "A turn id that is known is not run again.",
        "runtime.turn.interrupted": "A stream without a terminal ends as stream_interrupted.",
        "runtime.turn.failed": "Whatever an agent raises ends its turn with a stable category.",
        "runtime.turn.invalid-fact": "A fact that a gate refuses ends the turn, unwritten.",
        "runtime.turn.timeout": "A turn that takes too long fails, and what it opened is closed.",
        "runtime.turn.cancel": "A cancelled turn stops its agent and closes what was open.",
        "runtime.turn.one-active": "A thread has one active turn; another is queued or refused.",
        "runtime.turn.limit": "No more turns run at once than allowed.",
        "runtime.turn.retry": "A retry is a new turn that names the old one, which is kept.",
        "runtime.turn.room": "A turn that waits for a person keeps no other from working.",
        "runtime.turn.secrets": "A secret in a fact never reaches the journal.",
        "runtime.queue": "Queued turns run in order, and can be promoted and removed.",
        "runtime.agents.unknown": "An unknown agent is refused with those that there are.",
        "runtime.kill": "A killed runtime leaves facts whole, turns closed and no program behind.",
        "runtime.no-leaks": "Turn after turn leaves no task and no file open.",
        "runtime.recovery": "After a restart a turn is closed, waits on, or starts.",
    },
)

_APPROVALS: Final = requirements(
    "facts.md Validation (append gates); edge.md Runs; guarantees.md S8",
    {
        "runtime.approval.allowed": "An approved tool runs; decided and applied are two facts.",
        "runtime.approval.denied": "A denied tool does not run.",
        "runtime.approval.gate": "No result passes for a tool that was not allowed.",
        "runtime.approval.expired": "A request that nobody answers in time is denied.",
        "runtime.approval.once": "A request is answered once; of answers that race one counts.",
        "runtime.approval.bound": "An answer counts only for exactly what was shown.",
        "runtime.approval.unknown": "An answer to nothing, or no answer at all, is refused.",
        "runtime.approval.after-cancel": "An answer after the turn was cancelled is refused.",
        "runtime.approval.requester": "A delegated request names the subagent that asks.",
        "runtime.approval.restart": "A request survives a restart and can be answered then.",
    },
)

_GATES: Final = requirements(
    "facts.md Validation (append gates)",
    {
        "runtime.gate.schema": "A fact without what its class needs is refused.",
        "runtime.gate.sequence": "Sequences that an agent states rise by one.",
        "runtime.gate.tool": "Only a started tool has input, output and an end.",
        "runtime.gate.approval": "No output while a decision is open, no result after a no.",
        "runtime.gate.turn": "One turn at a time, and nothing is done in one that has ended.",
        "runtime.gate.atomic": "One bad fact refuses its batch, and changes nothing.",
        "runtime.gate.rebuilt": "Gates follow from the state of a thread alone.",
    },
)

_RECORDING: Final = requirements(
    "facts.md Provider",
    {
        "runtime.recording.turn": "A recorded turn is whole and valid, whatever is in it.",
        "runtime.recording.crash": "A crash becomes a failed turn with a category, and goes on.",
        "runtime.recording.ask": "A recorded request is answered by whoever is there.",
        "runtime.recording.blocking": "Plain code records the same as async code.",
        "runtime.recording.goes-on": "A recorder goes on with a thread that it finds.",
    },
)

TURN_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *_TURNS,
    *_APPROVALS,
    *_GATES,
    *_RECORDING,
)
