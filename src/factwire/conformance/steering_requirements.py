"""What a runtime promises about steering, retries, handed-over decisions, sharing and closing."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

_STEERING: Final = requirements(
    "facts.md Vocabulary (control steer) and Projection",
    {
        "runtime.steer.taken": "A steer is durable first, is taken once, and then is a message.",
        "runtime.steer.idempotent": "A steer that is given twice under one id is said once.",
        "runtime.steer.unsupported": "An agent that cannot be steered is not; it is refused or "
        "queued.",
        "runtime.steer.left-over": "A steer that a turn never took is the next turn, in order.",
        "runtime.steer.queued-turn": "A queued turn can be said to the running one instead.",
        "runtime.steer.bounded": "A steer stays whole in its fact; more, or too many, is refused.",
        "runtime.steer.kill": "A steer survives a kill: it was taken, or is the next turn.",
        "runtime.steer.demo": "The demo agent takes steers between its steps and says so.",
        "runtime.queue.whole": "A queued turn runs on all of its prompt, after a restart too.",
        "runtime.queue.concurrent": "Turns that come at once are each run once, in some order.",
        "runtime.queue.cannot-start": "A queued turn that cannot start any more ends as failed.",
        "cli.steer": "A turn is steered, and its queue changed, from another terminal.",
    },
)

_RETRIES: Final = requirements(
    "facts.md Provider (no second turn started by a retry); edge.md Envelope (api_retry)",
    {
        "runtime.retry.attempts": "A failure that passes is tried again, each attempt kept.",
        "runtime.retry.categories": "Only failures that are named are tried again, so often.",
        "runtime.retry.delay": "Each wait is longer than the one before, up to a bound.",
        "runtime.retry.effects": "What may have changed something is not repeated, and that is "
        "said.",
        "runtime.retry.first": "A retry goes before what waits, and with what was said to it.",
        "runtime.retry.cancel": "A retry that waits for its time can be cancelled.",
        "runtime.retry.kill": "A retry that was due happens after a kill, once.",
        "runtime.retry.configuration": "Retries are set for all agents, or for one.",
    },
)

_HANDOVER: Final = requirements(
    "facts.md Provider (respond_action)",
    {
        "runtime.handover.decided": "A decision is handed to an agent that asked by its stream; "
        "decided and applied are two facts.",
        "runtime.handover.bound": "Such a request expires, and is bound to what is shown.",
        "runtime.handover.expired": "A request that expires is handed over as a no.",
        "runtime.handover.lost": "A decision that does not arrive is told; the tool fails.",
        "runtime.handover.once": "A decision that the agent repeats or made itself is not doubled.",
        "runtime.handover.restart": "A request is answered and handed over after a restart.",
    },
)

_SHARING: Final = requirements(
    "guarantees.md Promises; edge.md Runs",
    {
        "runtime.sharing.claims": "What another runtime may run is not touched, unless taken over.",
        "runtime.sharing.dead": "What a dead process of the same data folder claimed is free.",
        "runtime.sharing.stale": "A thread on which somebody else wrote is read again.",
        "runtime.sharing.exclusive": "Where nobody else can write, what others claimed is free.",
        "runtime.sharing.told": "A restart ends no turn of a thread that another runtime tells.",
        "runtime.journal-failure": "A thread whose journal failed goes on once it takes facts.",
        "runtime.watchers": "A watcher that raises is dismissed and told; nothing else fails.",
    },
)

_STANDING: Final = requirements(
    "edge.md Runs; guarantees.md S8",
    {
        "runtime.standing.lasts": "Always lasts for a thread or a workspace, across restarts.",
        "runtime.standing.exact": "Always is offered for what one exact rule can say.",
        "runtime.standing.forged": "A grant that an agent makes up counts for nothing.",
        "runtime.standing.revoked": "What was always allowed can be taken back.",
    },
)

_SERVING: Final = requirements(
    "edge.md Runs and Commands",
    {
        "runtime.full": "A submission that would exceed the limit can be refused instead of wait.",
        "runtime.workspaces": "A turn works in a folder of an allowed workspace, or not at all.",
        "runtime.close": "Closing takes nothing new, loses nothing, and leaves what waits.",
        "runtime.toolbox.run-changes": "What a command changed is told, bounded, with diffs.",
    },
)

STEERING_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *_STEERING,
    *_RETRIES,
    *_HANDOVER,
    *_SHARING,
    *_STANDING,
    *_SERVING,
)
