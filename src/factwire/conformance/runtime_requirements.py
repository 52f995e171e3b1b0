"""What the runtime promises: policy, turns, steering, programs and the built-in agents."""

from typing import Final

from factwire.conformance.suite_requirements import Requirement, requirements

_POLICY: Final = requirements(
    "edge.md Runs; guarantees.md S8",
    {
        "runtime.policy.syntax": "A rule is a tool and maybe a pattern; anything else is refused.",
        "runtime.policy.rules": "Deny beats ask beats allow, and what decided is named.",
        "runtime.policy.modes": "A mode decides where no rule does; none asks where none may.",
        "runtime.policy.effects": "A tool does the worst of what name, caller and content say.",
        "runtime.policy.paths": "Paths match in normal form; a relative rule allows none outside.",
        "runtime.policy.hosts": "A URL has a host only where every reader of URLs would agree.",
        "runtime.policy.commands": "A command is allowed only when every command in it is.",
        "runtime.policy.laws": "No rule that forbids widens, none that allows overrides one.",
        "runtime.policy.proposals": "A proposed rule is the narrowest that allows the request.",
        "runtime.policy.risk": "The risk of a request is that of its worst part, by a table.",
        "runtime.policy.shown": "What a person is shown hides nothing of what runs.",
        "runtime.policy.args-hash": "The hash of an approval changes with anything shown.",
        "runtime.policy.facts": "Evaluations and denials are valid facts without secrets.",
        "runtime.policy.programs": "What a command may run unseen asks; few usual ones do.",
        "runtime.policy.path-rules": "A path that a rule could be about asks, resolved or not.",
        "runtime.policy.code-later": "No mode alone accepts edits of files that run code later.",
        "runtime.policy.corpus": "Of hundreds of lines none reaches what rules deny.",
        "runtime.programs.planted": "A program whose name leads into a workspace is never one of "
        "Factwire's own, no rule allows a command by such a name, and no known program starts it.",
        "runtime.policy.unenforced": "Where no sandbox enforces rules for paths, that is shown.",
    },
)

_CONFIGURATION: Final = requirements(
    "design.md",
    {
        "runtime.configuration.precedence": "Flags, variables, project, user, defaults, in order.",
        "runtime.configuration.gathered": "Rules that ask or deny add up over all sources.",
        "runtime.configuration.agents": "An agent is put together field by field.",
        "runtime.configuration.files": "The nearest project file and the user's file are found.",
        "runtime.configuration.errors": "Every problem names its place, what was expected and "
        "what was found.",
        "runtime.configuration.trust": "A project's file counts only where and as a person "
        "trusted it.",
        "runtime.configuration.secrets": "No secret is shown, not even where it is wrong.",
        "cli.config": "Every setting is shown with its value and its source.",
    },
)

RUNTIME_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_POLICY, *_CONFIGURATION)


_TURNS: Final = requirements(
    "facts.md Provider; edge.md Runs",
    {
        "runtime.threads.idle": "Threads on which nothing happens leave memory, and are the same "
        "when they come back.",
        "runtime.threads.start": "What a start needs of all threads is read on from where it was "
        "saved.",
        "runtime.turn.id-taken": "A fact with a taken id is left out with a warning; turns go on.",
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
        "runtime.approval.withdrawn": "A call that its agent cancels takes its open requests "
        "along, and whoever waits for an answer hears it.",
        "runtime.approval.after-cancel": "An answer after the turn was cancelled is refused.",
        "runtime.approval.requester": "A delegated request names the subagent that asks.",
        "runtime.approval.restart": "A request survives a restart and can be answered then.",
        "runtime.approval.exact": "A card shows what runs: with its masks filled in it is the text "
        "that the hash covers, and what is no longer in memory can only be denied.",
        "runtime.approval.place": "What was shown for one folder does not run in another one that "
        "was put in its place.",
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
        "runtime.recording.edge": "A recorder writes to a running Edge as to a journal, and says "
        "what was refused.",
    },
)

TURN_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *_TURNS,
    *_APPROVALS,
    *_GATES,
    *_RECORDING,
)


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
        "runtime.steer.demo": "The demo agent takes steers between its steps and acknowledges "
        "them.",
        "runtime.queue.whole": "A queued turn runs on all of its prompt, after a restart too.",
        "runtime.queue.concurrent": "Turns that come at once are each run once, in some order.",
        "runtime.queue.cannot-start": "A queued turn that cannot start any more ends as failed.",
        "cli.queue.held": "What a cancel has held is listed as held and starts only when it "
        "is continued.",
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
        "runtime.handover.risk": "The risk of a request is that of what runs, or what the agent "
        "says where that is higher.",
        "runtime.handover.lost": "A decision that does not arrive is reported, and the tool fails.",
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
        "runtime.sharing.told": "A restart ends no turn of a thread that another runtime writes.",
        "runtime.journal-failure": "A thread whose journal failed goes on once it takes facts.",
        "runtime.watchers": "A watcher that raises is dropped with a warning; nothing else fails.",
    },
)

_STANDING: Final = requirements(
    "edge.md Runs; guarantees.md S8",
    {
        "runtime.standing.lasts": "Always lasts for a thread or a workspace, across restarts.",
        "runtime.standing.exact": "Always is offered for what one exact rule can say.",
        "runtime.standing.forged": "A grant that an agent makes up counts for nothing.",
        "runtime.standing.revoked": "What was always allowed can be taken back.",
        "runtime.standing.folder": "Always holds in the folder that it was granted in alone.",
        "runtime.standing.expires": "Always may expire, by the clock of the runtime.",
        "runtime.standing.broad": "A rule that leaves open what runs is never granted.",
        "runtime.standing.editable": "A proposed rule names the files that the agent may edit.",
    },
)

_SERVING: Final = requirements(
    "edge.md Runs and Commands",
    {
        "runtime.full": "A submission that would exceed the limit can be refused instead of wait.",
        "runtime.workspaces": "A turn works in a folder of an allowed workspace, or not at all.",
        "runtime.close": "Closing takes nothing new, loses nothing, and leaves what waits.",
        "runtime.toolbox.run-changes": "What a command changed is reported with diffs, up to a "
        "limit.",
        "runtime.read-thread": "Every built-in agent answers for its thread; a runtime answers for "
        "an agent that cannot.",
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
        "runtime.process.exit": "Exit code and signal are reported as they were.",
        "runtime.process.stop.ladder": "Stopping asks by protocol, then SIGTERM, then SIGKILL.",
        "runtime.process.stop.group": "Grandchildren that stay in the group end with it.",
        "runtime.process.stop.sandbox": "Everything in a sandbox gets SIGTERM and the same time to "
        "end, however soon the command itself ends.",
        "runtime.process.time-limit": "A program that runs past its limit is stopped.",
        "runtime.process.cancel": "A caller that fails or is cancelled leaves nothing behind.",
        "runtime.process.no-leaks": "Programs leave no file, no zombie and no task.",
        "runtime.process.reaper": "What a killed Factwire left running is ended at the next start.",
        "runtime.process.reaper.recycled": "A process that only has the same number is never "
        "killed.",
        "runtime.process.facts": "A process is recorded as valid facts from its start to its end.",
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
        "runtime.sandbox.probe": "Whether a sandbox works is tested, and if not, the reason is "
        "given.",
        "runtime.sandbox.policy": "If a required sandbox is unavailable, the program is refused.",
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
        "runtime.sandbox.path-rules": "What rules deny to read or edit cannot be, by any name.",
    },
)

_GIT: Final = requirements(
    "guarantees, S11",
    {
        "runtime.git.hostile-settings": "Git runs nothing that a repository's settings name.",
        "runtime.git.diff": "Changed and untracked files are reported with a bounded diff.",
        "runtime.git.unavailable": "Where git cannot tell, the diff is unavailable with a reason.",
        "runtime.git.big-files": "A big file of another size is reported without being read.",
    },
)

PROCESS_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *_PROCESSES,
    *_SECRETS,
    *_SANDBOX,
    *_GIT,
)


_TOOLBOX: Final = requirements(
    "edge, Runs; guarantees, S8 and S10 to S13",
    {
        "runtime.toolbox.call": "A call is started, judged, done and ended, in facts in order.",
        "runtime.toolbox.read": "A file is read whole or by lines.",
        "runtime.toolbox.write": "A written file is recorded with its diff, and its content by "
        "refs.",
        "runtime.toolbox.patch": "A patch changes all its files or none.",
        "runtime.toolbox.search": "A search is bounded, and passes over what may not be read.",
        "runtime.toolbox.approval": "A person is asked about exactly what is done; no answer is "
        "a no, and what changed meanwhile is left alone.",
        "runtime.toolbox.resume": "A call that waits is done after a restart, if it still is what "
        "was shown and the policy still lets it.",
        "runtime.toolbox.denied": "What the policy denies is not done, and nobody is asked.",
        "runtime.toolbox.workspace": "No path leads out of the workspace, by dots or links.",
        "runtime.toolbox.secrets": "A secret in a file or in output is kept nowhere.",
        "runtime.toolbox.big-output": "Long output is behind a ref.",
        "runtime.toolbox.failures": "A call that fails has a category that never changes.",
        "runtime.toolbox.sandbox": "Commands run in the sandbox, or not at all where it is needed.",
        "runtime.toolbox.command-lines": "A line is arguments where that is certain, and else text "
        "for a shell; the policy judges what is run.",
    },
)

_AGENTS: Final = requirements(
    "facts, Provider; edge, Runs",
    {
        "runtime.agents.shell": "A prompt is a command line; its exit code ends the turn.",
        "runtime.agents.shell.cancel": "Cancelling ends the whole process group.",
        "runtime.agents.shell.resume": "A command waits for its approval across a restart, and "
        "runs only if it is still what was shown.",
        "runtime.agents.demo.surfaces": "A tour puts something true on every surface.",
        "runtime.agents.demo.team": "Two subagents do work of their own, and one hands over.",
        "runtime.agents.demo.approval": "A command and a plan wait for a person's answer.",
        "runtime.agents.demo.files": "Files are written, patched and read, with their diffs.",
        "runtime.agents.demo.fail": "A demo fails on request, with a category and a hint.",
        "runtime.agents.demo.long": "Five megabytes of real output are behind a ref.",
        "runtime.agents.demo.cancel": "A demo can be stopped while it runs or speaks.",
        "runtime.agents.demo.resume": "A demo goes on after a restart at whatever it asked.",
        "runtime.agents.demo.themes": "A word chooses the theme, help lists all, speech is paced.",
        "runtime.agents.demo.supervisor": "Told the state of a team, it decides from that alone: "
        "it corrects a refused route, sends work back once, approves and finishes.",
        "runtime.agents.demo.workers": "Its workers build, review, rework and recheck.",
        "runtime.agents.manifest": "Every agent states what it can in a sound manifest.",
    },
)

_OUTPUT: Final = requirements(
    "facts.md §5; hub.md Teams",
    {
        "runtime.output.schema": "A turn with an output schema ends with JSON that fits it, which "
        "each agent gets by the mechanism of its own SDK or program.",
        "runtime.output.invalid": "Output that is missing or does not fit fails the turn, after "
        "the SDK's own retries; nothing is read out of prose.",
        "runtime.output.refused": "An agent that cannot follow a schema says so in its manifest, "
        "and a turn with one is refused before it begins; so is what is no schema.",
        "runtime.output.strict": "Models that take only strict schemas are given a strict one, and "
        "null counts as absent in what they answer.",
    },
)

_REGISTRY: Final = requirements(
    "design.md; configuration, agents",
    {
        "runtime.agents.registry": "Agents are registered by configuration and by entry point.",
        "runtime.agents.registry.errors": "An agent that cannot be had says why, by a stable code, "
        "and leaves the others.",
        "runtime.agents.registry.lazy": "An agent is made when it is asked for; what is installed "
        "and not used is not imported.",
        "runtime.agents.registry.wrappers": "What a kind names may be an agent, an object of an "
        "SDK that a wrapper knows, or a callable that makes either.",
        "runtime.agents.registry.means": "Policy, sandbox, limits and workspaces of agents are "
        "those of the configuration.",
    },
)

AGENT_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_TOOLBOX, *_AGENTS, *_OUTPUT, *_REGISTRY)


_TURN: Final = requirements(
    "facts, Provider; sources, Targets; edge, Runs",
    {
        "runtime.agents.openai.answer": "An answer streams by pieces of one part, and ends with "
        "its whole text.",
        "runtime.agents.openai.reasoning": "Raw reasoning is counted; it is in no fact and in no "
        "answer.",
        "runtime.agents.openai.tools": "A model gets the toolbox from one table; its calls "
        "are made under the policy, and it hears what came of them.",
        "runtime.agents.openai.parallel": "Calls of one answer that only look run together; what "
        "changes something runs alone.",
        "runtime.agents.openai.bad-calls": "A call that nobody can read fails with a category, and "
        "the model hears why.",
        "runtime.agents.openai.denied": "A denied call is not made; the model hears that it was "
        "denied and why, and the turn goes on.",
        "runtime.agents.openai.usage": "What the endpoint says it took is recorded, and nothing "
        "that it does not say.",
        "runtime.agents.openai.steps": "A model that comes to no end is stopped after its steps.",
        "runtime.agents.openai.cancel": "Cancelling ends the request to the endpoint, and the "
        "tools that run or wait.",
        "runtime.agents.openai.resume": "A call that waits for a person is made after a restart, "
        "and the conversation goes on from there.",
        "runtime.agents.openai.options": "A turn may set other options than the configuration, "
        "and raises no limit by that.",
    },
)

_PAST: Final = requirements(
    "facts, Projection; edge, Runs",
    {
        "runtime.agents.openai.history": "A model gets the earlier turns of its thread, each "
        "call with its result.",
        "runtime.agents.openai.window": "The oldest of a long past is left out, whole calls at a "
        "time, and a fact records it.",
        "runtime.agents.openai.attachments": "Text and images are given to the model; anything "
        "else is refused before it is asked.",
    },
)

_ENDPOINT: Final = requirements(
    "facts, Provider; guarantees, 9 and S13",
    {
        "runtime.agents.openai.failures": "Whatever an endpoint does wrong fails the turn with a "
        "category that never changes, and with a hint.",
        "runtime.agents.openai.interrupted": "An answer that breaks off is a failed turn, never a "
        "short answer.",
        "runtime.agents.openai.retries": "Every refusal for too many requests and every further "
        "attempt is a fact.",
        "runtime.agents.openai.key": "The key is in no fact, log, message or file, and goes to no "
        "other endpoint.",
        "runtime.agents.openai.wire": "Proxies, headers and keys of the environment reach no "
        "endpoint on this machine.",
        "runtime.agents.openai.setup": "Endpoint, model and options come from the configuration "
        "or from flags; a missing extra is named.",
        "runtime.agents.openai.doctor": "The doctor says which model is where, and whether its key "
        "is there.",
    },
)

OPENAI_AGENT_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_TURN, *_PAST, *_ENDPOINT)


_CALLS: Final = requirements(
    "sources, Targets and MCP; facts, Provider",
    {
        "runtime.mcp.call": "A tool of a server is called by stdio or HTTP, recorded as any call: "
        "started, progress, and one end.",
        "runtime.mcp.lazy": "No server is started before a tool of it is wanted.",
        "runtime.mcp.policy": "The policy judges every call before it is made; what a server hints "
        "at decides nothing.",
        "runtime.mcp.results": "Pictures, sounds, files and links of a result become artifacts and "
        "refs; no bytes are in a fact.",
        "runtime.mcp.failures": "A failure that the tool states, a refusal by the protocol and a "
        "missing tool are three categories, each with a hint.",
        "runtime.mcp.lists": "The lists of the configuration say which tools of a server count.",
        "runtime.mcp.changed-list": "A list of tools that changes is asked for again.",
        "runtime.mcp.log": "What a server logs as a warning or worse is a warning; the rest is "
        "left out.",
        "runtime.mcp.agent": "The openai agent offers its model the tools of every server that can "
        "be had, and goes on without the others.",
        "runtime.mcp.not-offered": "A server is given the workspace as its root, and no model.",
    },
)

_PEOPLE: Final = requirements(
    "sources, Targets; facts, Provider",
    {
        "runtime.mcp.questions": "What a server asks is put to a person with its form or link, "
        "outside of the time of the call, and the answer goes back as the protocol has it.",
        "runtime.mcp.cancel": "Cancelling ends a call here and tells the server so.",
        "runtime.mcp.resume": "After a restart an approved call is made once, and one that was "
        "under way is not made again.",
    },
)

_HARM: Final = requirements(
    "sources, MCP; guarantees, 9 and S13",
    {
        "runtime.mcp.death": "A server that dies costs the call that ran; the next one starts it "
        "again.",
        "runtime.mcp.start": "A server that does not start in time, or at all, says why in bounded "
        "words.",
        "runtime.mcp.timeout": "A call that takes too long is cancelled at the server and fails as "
        "a timeout.",
        "runtime.mcp.garbage": "What a server writes that is no message is passed over.",
        "runtime.mcp.bounds": "Messages, lists, results and schemas of a server are bounded, and "
        "none of its patterns is run.",
        "runtime.mcp.names": "A tool has one safe name, which no other tool of any server has.",
        "runtime.mcp.secrets": "Secrets are references to variables; they reach the server, and no "
        "fact, message or model.",
        "runtime.mcp.extra": "A missing library is named with the extra that brings it.",
        "runtime.mcp.configuration": "A server is a program or a URL; a secret in a file is "
        "refused without being repeated.",
        "runtime.mcp.doctor": "The doctor says what each server needs and lacks, and starts none.",
    },
)

MCP_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_CALLS, *_PEOPLE, *_HARM)
