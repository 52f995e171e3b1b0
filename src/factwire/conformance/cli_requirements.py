"""What the `factwire` command and the Python client promise."""

from typing import Final

from factwire.conformance.suite_requirements import Requirement, requirements

_FACTS: Final = requirements(
    "docs/command-line.md",
    {
        "cli.validate.forms": "One fact, an array, one fact to a line and a fixture are all read.",
        "cli.validate.json": "With --json the report is one object of valid, issues and facts.",
        "cli.validate.table": "For people the report is a table of code, path and message.",
        "cli.validate.shape": "The shape is found by itself or given.",
        "cli.validate.mode": "The lifecycle is collected, failed closed or not looked at.",
        "cli.validate.unreadable": "Input that cannot be read is named with line and reason.",
        "cli.validate.stdin": "A dash reads standard input.",
        "cli.validate.constant-memory": "A longer stream does not take more memory.",
        "cli.validate.progress": "A terminal sees a progress bar, a pipe does not.",
        "cli.validate.bounded-issues": "Issues past a bound are counted, not listed.",
        "cli.exit-codes": "Valid is 0, issues are 1, unusable input or usage is 2.",
        "cli.convert.shapes": "Facts are converted between all shapes, one to a line.",
        "cli.convert.live": "A pipe, and a file that is followed, is converted as it comes.",
        "cli.convert.ui-events": "Converting to the UI writes the UI events of each fact.",
        "cli.convert.problems": "What cannot be converted is named and the exit code is 1.",
        "cli.schema": "Each schema is printed, or all are written to a folder.",
        "cli.errors.no-traceback": "Every failure is a line for people, never a traceback.",
        "cli.errors.harmless-text": "Text from the input cannot steer the terminal.",
        "cli.errors.closed-pipe": "A reader that leaves early is no failure worth words.",
        "cli.help": "Every command has help, and the version can be printed.",
    },
)

_PROJECT: Final = requirements(
    "facts.md §4",
    {
        "cli.project.forms": "Every form, shape and backend of the same facts gives one state.",
        "cli.project.json": "With --json the snapshot is printed, and nothing else.",
        "cli.project.summary": "For people each part of the state that says something is shown.",
        "cli.project.threads": "One thread is taken by itself, several are listed to choose from.",
        "cli.project.children": "Child threads are part of their parent, others are left out.",
        "cli.project.at": "A state up to a place shows every fact up to it and none beyond.",
        "cli.project.journal": "Of a journal only the thread and its children are read.",
        "cli.project.compacted": "A compacted journal shows what the whole one did.",
        "cli.project.constant-memory": "A longer journal takes no more memory than its state.",
        "cli.project.empty": "Input without facts is an empty state and a note.",
        "cli.project.invalid": "Facts that break rules are shown as far as that goes.",
        "cli.project.unreadable": "What is no fact is named with its line or its number.",
    },
)

_PLAY: Final = requirements(
    "facts.md §4",
    {
        "cli.play.view": "Conversation, process, approvals, team and position are seen.",
        "cli.play.sizes": "Every size of terminal shows something, and none more than it can.",
        "cli.play.pace": "Facts follow each other as recorded, scaled, with long pauses cut.",
        "cli.play.keys": "Keys pause, step, jump, seek, change the speed, help and quit.",
        "cli.play.seek": "A place looks the same whichever way one got there.",
        "cli.play.bounded-seek": "Going back replays a bounded stretch, not the run.",
        "cli.play.plain": "Without a terminal the last view is printed once, as text.",
        "cli.play.terminal": "The terminal is restored however the command ends.",
        "cli.play.harmless": "Nothing in a fact steers the terminal or ends the command.",
    },
)

_RUN: Final = requirements(
    "design.md; edge.md Runs",
    {
        "cli.run.view": "The answer and the tools of a turn are printed as they come, once each.",
        "cli.run.terminal": "On a terminal all stays as text that scrolls; no screen is taken.",
        "cli.run.harmless": "Nothing that an agent says or asks for steers the terminal.",
        "cli.run.asked": "An approval shows all that it is bound to, and only a key pressed after "
        "the question answers it.",
        "cli.rules": "Rules are shown before they are granted; they are listed, and revoked.",
        "cli.run.always": "Always makes the narrowest rule, and is offered only where that helps.",
        "cli.run.interrupt": "One interrupt cancels the turn, a second one quits at once.",
        "cli.run.json": "With --json the facts are printed once they are durable, nothing else.",
        "cli.run.exit-codes": "Completed is 0, failed 1, what cannot start 2, cancelled 130.",
        "cli.run.named": "An agent is named as module:name from the current folder, by the command "
        "line alone.",
        "cli.run.thread": "A named thread goes on with what was said on it before.",
        "cli.run.first-use": "The demo runs on a fresh machine without any setup.",
        "cli.run.busy": "A journal that another run holds is named with a code.",
        "cli.run.killed": "A run that was killed is closed, answered, resumed or cancelled later.",
        "cli.resume": "A thread is shown and goes on: what waits, what is queued, what is asked.",
    },
)

_CONTROL: Final = requirements(
    "design.md; edge.md Runs; guarantees.md S8",
    {
        "cli.answers.live": "Another process decides and cancels in the one that runs.",
        "cli.answers.refused": "What cannot be answered is refused with a stable code.",
        "runtime.control.requests": "Deciding, cancelling and asking work over the channel.",
        "runtime.control.codes": "Every refusal of the channel has a stable code.",
        "runtime.control.elsewhere": "What is not live is found in the journal.",
        "runtime.control.private": "Only processes of the same user are listened to.",
        "runtime.control.hostile": "Garbage, long lines and slow clients harm nobody.",
        "runtime.control.left-over": "A socket that a killed process left is taken away.",
        "runtime.control.long-path": "The channel works where the path is too long for one.",
        "cli.answers.unattended": "Without a terminal, what waits and how to answer it is printed, "
        "beside NDJSON on standard error; --approve never and policy answer without a person.",
        "cli.answers.exact": "What is allowed from another terminal is named by the hash of what "
        "was shown.",
    },
)

_LOOKING: Final = requirements(
    "design.md",
    {
        "cli.threads": "Threads are listed with status, first prompt, time and open approvals.",
        "cli.threads.pages": "A list of threads goes on where the page before it ended.",
        "cli.threads.stale": "A thread that reads as running and that nobody runs is stale.",
        "cli.doctor": "It reports what is installed and configured, and how to fix what is not.",
        "cli.doctor.agents": "Of each outside agent the version and the place are shown, or how to "
        "install it.",
        "cli.doctor.fails": "What fails is said with a fix, and makes the exit code 1.",
    },
)

CLI_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *_FACTS,
    *_PROJECT,
    *_PLAY,
    *_RUN,
    *_CONTROL,
    *_LOOKING,
)


CLIENT_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "design.md Packages; edge.md Commands, Cursor and resume, Who may talk to it",
    {
        "client.addresses": "Every address of an Edge is a typed method of both clients.",
        "client.resources": "What a client reads is what the Edge says it answers.",
        "client.tolerance": "Fields that a client does not know are passed over.",
        "client.paging": "A list is gone through whole, page by page, nothing twice.",
        "client.retries": "What is safe to repeat is tried again in time, and nothing else is.",
        "client.idempotency": "A POST carries one fresh key, the same for all of its tries.",
        "client.problems": "What an Edge refuses is raised with its status, code and trace id.",
        "client.unreachable": "If no server answers, the error explains it and what to do.",
        "client.token": "A token is found in named places, and shown in none.",
        "client.one-place": "A token goes to the Edge it was given for, and follows no redirect.",
        "client.content": "Content of any length is handed over in pieces of bounded size.",
        "client.resume": "A cut stream comes back by itself: nothing missing, nothing twice.",
        "client.cursor-lost": "A stream that cannot be resumed exactly says where to begin anew.",
        "client.now": "A stream that begins now misses nothing that its block sets off.",
        "client.document": "A state kept by changes is the state that the Edge has.",
        "client.extra": "Without its libraries the client says which extra to install.",
        "client.wait": "Waiting for a run outlives the connection and the Edge, up to a time.",
        "client.facts": "Facts are posted as objects or as mappings.",
        "client.payloads": "The client's types of event payloads are those that an Edge emits.",
        "client.hub.device": "The Edge of a device is used by way of a Hub like an Edge itself.",
        "client.hub.away": "What a device has written is read at the Hub while the device is away.",
        "client.hub.find-device": "A device is found by its id, its name, or as the only one, and "
        "never one of somebody else's.",
        "client.hub.tasks": "Tasks are given, waited for and cancelled, and approvals decided, by "
        "way of a Hub.",
        "client.hub.later": "A task, a decision and a cancel are left at a Hub for a device that "
        "is away, and the answer says so.",
        "client.hub.patience": "A device that does not answer is asked again under the same key, "
        "for as long as the client was told to wait.",
        "client.hub.events": "What a Hub tells a person comes live and resumes after a cursor.",
        "client.hub.renewal": "A session at a Hub is renewed when it must be, by one program for "
        "all that use it.",
        "client.hub.sessions": "Sessions are read from a file that nobody else may open, and no "
        "token is shown.",
    },
) + requirements(
    "design.md Packages; edge.md Commands",
    {
        "cli.edge.target": "One rule finds the Edge and its token, for every command.",
        "cli.edge.run": "A run on an Edge is watched, answered and cancelled as one here.",
        "cli.edge.answers": "Approvals, cancels, steers and queues reach an Edge's runs.",
        "cli.edge.threads": "The threads of an Edge are listed with what they wait for.",
        "cli.edge.tail": "An Edge is followed live, and again from a cursor.",
        "cli.edge.conformance": "The facts of an Edge's thread are tried like a recording.",
        "cli.hub.target": "One rule finds the Hub and the device, for every command, and what is "
        "wrong with them is said in one line with a stable code.",
        "cli.hub.run": "A run on a device is watched, answered and cancelled as one here.",
        "cli.hub.later": "For a device that is away a run, a decision, a cancel and a message are "
        "left at the Hub; what it waits for is said, and the exit code is 3.",
        "cli.hub.answers": "Approvals, cancels, threads and events of a device are reached by way "
        "of a Hub.",
        "cli.trust": "A project's settings are shown before they are trusted; until then, no "
        "command follows them or runs anything of the project.",
    },
)
