"""What the runtime promises of programs: processes, sandbox, and what they changed."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

_PROCESSES: Final = requirements(
    "edge, Output and Runs",
    {
        "runtime.process.argv-only": "A program is a list of arguments; none is read as shell.",
        "runtime.process.folder": "A program works inside an allowed workspace, links followed; "
        "an empty list allows none.",
        "runtime.process.folder.race": "A folder that is swapped after the check is not used.",
        "runtime.process.environment": "The environment is an allow-list; names of secrets are "
        "dropped unless the agent declares them as its own.",
        "runtime.process.group": "A program leads its own session and process group.",
        "runtime.process.gate": "A program does not run before its record is on disk.",
        "runtime.process.input": "Input is written and closed, and never deadlocks with output.",
        "runtime.process.output.batches": "Output is merged for 50 ms or 8 KiB at most.",
        "runtime.process.output.utf8": "No character is split; invalid bytes are replaced.",
        "runtime.process.output.offsets": "Offsets count bytes and are contiguous per stream.",
        "runtime.process.output.cap": "Past the cap of a run, output goes to a blob and the fact "
        "carries its ref.",
        "runtime.process.output.constant-memory": "More output does not take more memory.",
        "runtime.process.log": "A log is read by byte range, while it grows and afterwards.",
        "runtime.process.log.redacted": "No secret reaches a log or a blob of output.",
        "runtime.process.protocol": "A protocol is complete and unchanged, is not kept, and makes "
        "its program wait for its reader.",
        "runtime.process.exit": "Exit code and signal are told as they were.",
        "runtime.process.stop.ladder": "Stopping asks by protocol, then SIGTERM, then SIGKILL.",
        "runtime.process.stop.group": "Grandchildren that stay in the group end with it.",
        "runtime.process.time-limit": "A program that runs past its limit is stopped.",
        "runtime.process.cancel": "A caller that fails or is cancelled leaves nothing behind.",
        "runtime.process.no-leaks": "Programs leave no file, no zombie and no task.",
        "runtime.process.reaper": "What a killed Factwire left running is ended at the next start.",
        "runtime.process.reaper.recycled": "A process that only has the same number is never "
        "killed.",
        "runtime.process.facts": "A process is told as valid facts from its start to its end.",
    },
)

_SECRETS: Final = requirements(
    "guarantees, S13",
    {
        "runtime.process.facts.secrets": "A secret that a program prints in two pieces is in no "
        "fact that was taken in.",
    },
)

_SANDBOX: Final = requirements(
    "guarantees, S12",
    {
        "runtime.sandbox.probe": "Whether a sandbox works is tried, and why not is told.",
        "runtime.sandbox.policy": "A required sandbox that cannot be had refuses the program.",
        "runtime.sandbox.account": "The account of a sandbox is exact, also of what is missing.",
        "runtime.sandbox.write-outside": "Nothing outside the workspace can be written.",
        "runtime.sandbox.hidden": "The home and known places of credentials cannot be read.",
        "runtime.sandbox.data-hidden": "Factwire's own data can be neither read nor written.",
        "runtime.sandbox.network": "No network and no server of this machine can be reached.",
        "runtime.sandbox.limits": "Processes, memory, file size and open files are bounded.",
        "runtime.sandbox.symlink": "A link out of the workspace gives no way to write there.",
        "runtime.sandbox.proc": "Other processes and the kernel's settings are out of reach.",
        "runtime.sandbox.setuid": "No user is gained by a file's bits, and no such file is left.",
        "runtime.sandbox.kill-outside": "A process outside cannot be killed.",
        "runtime.sandbox.no-leftovers": "Nothing inside outlives its sandbox or its Factwire.",
    },
)

_GIT: Final = requirements(
    "guarantees, S11",
    {
        "runtime.git.hostile-settings": "Git runs nothing that a repository's settings name.",
        "runtime.git.diff": "Changed and untracked files are told with a bounded diff.",
        "runtime.git.unavailable": "Where git cannot tell, the diff is unavailable with a reason.",
    },
)

PROCESS_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *_PROCESSES,
    *_SECRETS,
    *_SANDBOX,
    *_GIT,
)
