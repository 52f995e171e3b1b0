"""What a Hub promises: mirrors of Edges, people and their doors, sockets, devices, tasks, chats,
approvals and notifications.
"""

from typing import Final

from factwire.conformance.suite_requirements import Requirement, requirements

MIRROR_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "hub, The link; guarantees R16",
    {
        "mirror.same-chain": "However uploads are cut, repeated and interrupted, a mirror has the "
        "bytes, the seqs, the epoch and the chain of the Edge's journal.",
        "mirror.keeps": "A mirror keeps what its Edge removes later, and verifies with what was "
        "removed before it came.",
        "mirror.conflict": "Other bytes at a place that a mirror holds are refused, kept aside "
        "and listed.",
        "mirror.fenced": "A newer session of an Edge's uploads ends all before it.",
        "mirror.verified": "What does not match the chain's hashes never gets into a mirror.",
        "mirror.read-only": "A mirror makes no facts of its own.",
        "mirror.refusals": "Each upload that a Hub refuses has a stable code, and a gap names the "
        "seq that is expected.",
        "mirror.upload": "An Edge uploads its journal and the content that it refers to as they "
        "grow, and goes on where it was after restarts of either side.",
        "mirror.backoff": "After a failure an Edge waits from half a second to half a minute, each "
        "time longer, shortened by chance.",
        "mirror.hold": "Retention of an Edge waits for what the Hub has acknowledged, up to a "
        "bound.",
        "mirror.reading": "Everything that is read from an Edge's journal is read the same from "
        "its mirror, with the same cursors, also while the Edge is off.",
        "mirror.private": "Of private threads, those below them and whatever names them, a mirror "
        "gets nothing but the place in the chain; it verifies without them and says how many facts "
        "it lacks.",
        "mirror.device": "What needs the device is refused by its mirror with a code that says so.",
        "mirror.free": "An Edge without a Hub loads, holds and writes nothing for one.",
        "mirror.killed": "After kills of Edge, Hub and both under load, nothing acknowledged is "
        "lost, and the mirror equals the original byte for byte.",
    },
)


_PEOPLE: Final = requirements(
    "hub, People and doors",
    {
        "hub.records.contract": "SQLite and PostgreSQL hold the same records by one schema, which "
        "migrations make; a newer schema is refused.",
        "hub.events.log": "Events have one order, that of commits; somebody reads exactly those "
        "that an audience got while they were in it, and a list is true as of its cursor.",
        "hub.records.durable": "What a Hub has acknowledged survives its kill.",
        "hub.first-admin": "The first start prints a link for the first admin that works once and "
        "expires; the next start makes the one before void.",
        "hub.invitations": "An invitation creates as many accounts as it says, until it expires or "
        "is revoked, however many ask at once.",
        "hub.passwords": "A wrong name, a wrong password and a disabled account get one answer "
        "after the same work.",
        "hub.sessions": "People list and end their sessions; signing out, a new password and "
        "disabling an account end sessions at once.",
        "hub.refresh": "A refresh token works once; its reuse ends the session, and a repeat of a "
        "lost answer does not.",
        "hub.passkeys": "A passkey made for this Hub, with its user verified, signs in once for "
        "each challenge; one that may be a copy does not.",
        "hub.providers": "An identity that a configured provider proves for this very sign-in "
        "opens the account that it is linked to; no claim finds an account or gives a role.",
        "hub.methods": "Who signed in a moment ago adds and removes ways to sign in, of which one "
        "is always left; sessions name theirs, and end when it is removed.",
        "hub.runners": "A Hub starts a bounded number of Edges for people by the operator's "
        "command; each joins with a secret that works once, stops when idle, comes back after "
        "kills of the Hub or of itself, and leaves no process and no folder.",
        "hub.retention": "What has ended is removed after a time that the operator sets; what is "
        "pending, and what tells a repeat from something new, stays.",
        "hub.growth": "What a Hub looks for again and again, to remove, send, stop or close it, is "
        "found without reading what has ended, or what else somebody has.",
        "hub.runners.targets": "A task can be aimed at a runner: the Hub starts one if its owner "
        "has none, the task waits for exactly this one, and ends with it.",
        "hub.roles": "Each route needs a role, which holds from the next request on; one admin is "
        "always left.",
        "hub.audit": "Who did what, when and from where is written with what was done, and holds "
        "no secret.",
        "hub.idempotency": "A POST under one key of one person is done once.",
        "hub.command": "Accounts, invitations and the audit log are managed on the Hub's machine, "
        "whether it runs or not.",
    },
)

_ATTACKS: Final = requirements(
    "guarantees S1, S3, S4, S6, S14, S15, S20, R13",
    {
        "hub.tokens.forged": "An access token that this Hub did not issue as it is, is refused.",
        "hub.owners": "Without a token every route is refused; another person's id is not found.",
        "hub.limits": "Requests, sign-ins and registrations of one address are limited; what a "
        "client says of its address counts only behind a named proxy.",
        "hub.secrets": "No secret that a Hub issues is in its database, its log or its lists.",
        "hub.start": "A Hub that would not be safe, or that cannot use its files, does not start, "
        "and says why.",
        "hub.openapi": "Every answer is one that the OpenAPI document lists, whatever is sent.",
        "hub.join-page": "The link of an invitation opens a page that creates the account and runs "
        "nothing but its own script.",
    },
)

_SOCKET: Final = requirements(
    "hub, Frames; guarantees R6, R8, R11, S3, S5, S14",
    {
        "hub.socket.events": "A socket is told each event of its person once, in order, from "
        "joining an audience to leaving it, also what another process wrote.",
        "hub.socket.resume": "A socket resumes exactly after its cursor, wherever it was cut, or "
        "is told that it has to read a snapshot, and nothing else.",
        "hub.socket.killed": "Readers that resume after kills of the Hub miss and repeat nothing.",
        "hub.socket.slow": "A reader that takes nothing holds at most 1 MiB, is closed with a code "
        "to reconnect, and slows no other.",
        "hub.socket.tickets": "A ticket in an address opens one socket, soon, for a session that "
        "is open; an access token there needs the operator's consent.",
        "hub.socket.revoked": "A socket is closed soon after its session or device has ended, and "
        "cannot be resumed.",
        "hub.socket.frames": "Nothing is sent or taken that is not in the table of frames; "
        "whatever else comes is answered with a documented code.",
        "hub.socket.limits": "Sockets of an address and of a person, and frames by size and rate, "
        "are limited.",
        "hub.socket.typing": "Who is typing is told to the other members of a chat, so often and "
        "no more, and kept nowhere.",
        "hub.socket.presence": "People see which of their screens come and go.",
        "hub.socket.devices": "A device has one socket, which speaks with its handlers; a newer "
        "one ends it, and who may see the device sees it come and go.",
        "hub.events.retention": "Events older than the operator keeps them are removed, and a "
        "cursor from before them has expired.",
    },
)


LINK_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "hub, The link",
    {
        "link.exact-device": "Under any order of connecting, cutting, replacing, killing and "
        "starting, a task is done once by its own device, or expires, and its end is told once.",
        "link.cuts": "A link that is cut every 90 seconds for 38 hours loses and doubles nothing.",
        "link.killed": "After kills of Edge, Hub and both while tasks are given and done, every "
        "task has ended, by one run, and nothing was told twice.",
        "link.dispatch": "A task starts one run on its device in the name of who gave it, and the "
        "events of that run are told as the Edge tells them, each once, in order.",
        "link.stale-state": "An old list of tasks and the events after it are the new list.",
        "link.control": "A decision goes to the device whose agent asked, bound to the hash of "
        "what was shown, and is acknowledged once it is on disk, or refused with the reason.",
        "link.cancel": "A task is cancelled at once while its device has not heard of it, else by "
        "its device.",
        "link.refusals": "A task for another person's device, for an agent that the device does "
        "not offer, without a prompt or beyond the queue's bound is refused with a code.",
        "link.targets": "A task on a target, also from a chat, has the target's agent, project and "
        "folder; a grant on the target allows no other, no thread begun elsewhere and no model "
        "parameters.",
        "link.target-names": "The name of a target is checked like that of a device.",
        "link.owners": "Tasks, targets, queues and relayed requests of another person's device are "
        "not found.",
        "link.retries": "A delivery that is not acknowledged is sent again after 2 seconds, twice "
        "as long each time up to 30, and becomes a dead letter after 20 times.",
        "link.expiry": "A task expires by itself only where its device cannot have heard of it, "
        "else by the device's word.",
        "link.silence": "A task whose Edge says nothing for its heartbeat time is unknown until "
        "the Edge speaks.",
        "link.timeout": "A task that takes longer than it may is stopped by its device.",
        "link.stops": "A task that is to stop is unknown while its device does not answer, and is "
        "closed with the reason after a day; what its device reports later still counts.",
        "link.joined-again": "An Edge that joins again ends, and is asked to stop, what its former "
        "device was given, and gets nothing that its former device never got.",
        "link.growth": "What is due, which runs go on and which rules hold is found without "
        "reading what has ended.",
        "link.end-order": "The end of a task is told after whatever the mirror has of its run, or "
        "after ten seconds, once.",
        "link.ends": "The end of a task is taken once and acknowledged each time it comes.",
        "link.replaced": "An Edge whose socket was replaced by another one of its device does not "
        "connect again; its health and `factwire doctor` say why.",
        "link.own-words": "What a device says counts for its own tasks and deliveries alone.",
        "link.relay": "What only the device can do is asked of it in the person's name, done once "
        "under one key, and answered as the device answers, however large that is.",
        "link.relay-repeats": "A repeat under one key gets the device's answer again, or is told "
        "that the command was carried out; another command under that key is refused.",
        "link.answers-bounded": "An Edge keeps the ids of deliveries for ever, and of its answers "
        "only so many bytes for so long.",
        "link.shown": "A relayed command is answered once the mirror shows what it did.",
        "link.relay-closed": "A Hub passes on nothing that would open the Edge beside it: tokens, "
        "tickets, facts, retention and figures.",
        "link.rights": "What waits for a device is sent only while everybody whom it is from may "
        "still do it; else it is closed with a code and an event. Nobody sees more of a task than "
        "they may see of its device, thread or target, nor an answer that they may not ask for.",
        "link.private": "For whoever comes by way of a Hub, private threads and whatever belongs "
        "to them do not exist: nothing of them is read, decided, started or told.",
        "link.grants": "What is shared with somebody decides what is relayed for them.",
        "link.offline": "A request to a device that is away is refused, or waits where the client "
        "prefers that; a task waits and replays to that device.",
    },
)

_DEVICES: Final = requirements(
    "hub, People and doors; guarantees R17, S6, S16, S20",
    {
        "hub.joining": "A machine joins by a short code that somebody confirms; the code works "
        "once and for minutes, the token is made when it is collected, and the id of an Edge stays "
        "its owner's.",
        "hub.pairing": "A phone signs in by a code on a signed-in screen, where what claims it is "
        "shown and confirmed; the code alone opens nothing.",
        "hub.pages": "Whoever is signed in confirms machines, pairs a phone, starts agents, "
        "decides what they ask and reads what they did in a browser, also while a machine is off.",
        "hub.status-words": "Pages and command line show the status of a device, a task, an "
        "approval and a thread by one table of words.",
        "hub.devices": "People list, name and revoke their devices, and are told what changes; a "
        "revoked device is refused from then on.",
        "hub.grants": "A device, a thread or a target is shared by a grant, which opens exactly "
        "that, is listed, and ends when it is revoked.",
        "hub.law": "What a screen showed of devices, grants, tasks, approvals, notifications and "
        "runners, with the events since, is what a new screen shows.",
        "hub.mirrors": "A mirror is filled by its own device alone and read by its owner and those "
        "it is shared with; open streams end with the right to them.",
        "hub.join-command": "The command `join` links an Edge that runs or will run with a Hub; "
        "what the Edge did can be read there after it is killed.",
    },
)


HUB_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_PEOPLE, *_ATTACKS, *_DEVICES, *_SOCKET)


HUB_APPROVAL_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "hub, Approvals from anywhere; guarantees S6, S8, S17, R17",
    {
        "hub.outgoing": "A request to an address that somebody named goes to a checked address of "
        "the public internet, to what is listed or to what the operator allows, and nowhere else.",
        "hub.push": "A push carries an id, a type and a title, encrypted for one browser as the "
        "RFCs say, and never reaches a browser that is signed out.",
        "hub.webhooks": "A webhook is signed as Standard Webhooks say, with a secret that is shown "
        "once.",
        "hub.mail": "A mail address is used once its owner has entered the code that was sent to "
        "it; a code can be guessed a few times only.",
        "hub.notifications": "The ledger calls delivered what the other side acknowledged, and "
        "nothing else; a target that is gone is forgotten.",
        "hub.notifications.fallback": "The next channel is used when nobody has acknowledged by "
        "the one before, or every one before has failed.",
        "hub.notifications.ledger": "Each attempt is counted before it is made, shared by all "
        "processes, and made again after a crash; what was seen, opened or expired is written.",
        "hub.notifications.settings": "People choose channels for each type, and quiet hours by "
        "the clock of their time zone.",
        "hub.approvals.steps": "An approval goes from asked to applied, or to another end, by one "
        "table; decided, sent and applied are never confused.",
        "hub.approvals.once": "The first decision holds; the same again is sent again, the "
        "opposite is refused.",
        "hub.approvals.attacks": "A decision that is forged, replayed, late, or of somebody who "
        "may not decide is refused.",
        "hub.approvals.exact": "What can be allowed was shown exactly; the rest can only be "
        "denied.",
        "hub.approvals.edge-address": "A decision at the address of an Edge is one person's at the "
        "Hub, bound to the hash of what was shown.",
        "hub.approvals.several": "Where several people must allow, each counts once and only while "
        "they may decide, all are named, and one who denies is enough.",
        "hub.approvals.lost": "A decision that does not reach its device ends its approval with "
        "the reason; it can be sent again, and people can decide again while the device asks.",
        "hub.approvals.expiry": "An approval expires at its time by the clock of the Hub, with its "
        "event; what the device reports of it later is what happened.",
        "hub.approvals.joined-again": "What an Edge asked is seen and decided after it has joined "
        "again, by the same rules, and the decision goes to the device that it is now.",
        "hub.approvals.targets": "Approvers and operators of a target see and decide what its "
        "tasks ask, and nothing else of the device.",
        "hub.approvals.kept": "Approvals of a device that was revoked stay, and can no longer be "
        "decided.",
        "hub.approvals.events": "A list of approvals or notifications and the events after it are "
        "what is read anew.",
        "hub.approvals.killed": "A Hub that is killed while somebody decides has the decision and "
        "its delivery, or neither.",
        "hub.followers": "Each fact of a mirror is taken once, also after a crash or a restart.",
    },
)


CHAT_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "hub, Chats; guarantees R17, S6",
    {
        "hub.chats.friends": "People find each other by exact name alone, a few times a minute, "
        "and are friends once both want it; a private chat is that of two friends.",
        "hub.chats.members": "Somebody's events of a chat are those between joining and leaving; "
        "what was said before can be read; a group always has an owner, or is dissolved.",
        "hub.chats.private": "Whoever is not in a chat gets the same answer as for one that does "
        "not exist, whatever they try with its ids.",
        "hub.chats.messages.once": "A message that is sent again is the first one, and the "
        "messages of a chat are numbered without gaps, however many send at once.",
        "hub.chats.windows": "A sender edits for 15 minutes and recalls for 5; the owner of a "
        "group recalls at any time.",
        "hub.chats.recall": "A recalled message is gone from lists, search, files and the log of "
        "events.",
        "hub.chats.pins": "Pins and reactions are each once and stay within their numbers.",
        "hub.chats.reading": "Messages are read before, after and around a number; a read mark "
        "never goes back.",
        "hub.chats.search": "A search finds the same on both databases, in the person's own chats "
        "alone.",
        "hub.chats.content": "What people write is typed, and kept as they wrote it.",
        "hub.chats.attachments": "An attachment is read by members of its chat alone, saved and "
        "never shown; what no message names is removed.",
        "hub.chats.agents": "An agent that a message mentions by id or exact name gets a task "
        "with the message, or neither is written; what it says is one message that is kept "
        "current.",
        "hub.chats.threads": "The chat of a thread is for those who may see the thread, for as "
        "long as they may.",
        "hub.chats.roles": "A viewer reads the chats they are in, and does not write.",
        "hub.chats.limits": "Messages of a person in a minute, and the size of what they send, "
        "are limited.",
        "hub.chats.sync": "Without a socket, events are read from a cursor on exactly, or the "
        "reader is told to load again.",
        "hub.chats.law": "What a screen showed, with the events since, is what a new screen shows.",
    },
)


TEAM_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "hub, Teams",
    {
        "teams.members": "A team is its owner's; a member is an agent on devices that its owner "
        "may operate, and a run chooses one of them once.",
        "teams.guardrails": "A decision crosses guardrails in one order; the first one refuses it "
        "with its code, told and on record, and nothing else is written.",
        "teams.lock": "Decisions about a run that come at once are taken one after the other.",
        "teams.decisions": "An accepted decision, its team task, its assignment and the task on "
        "the member's device are one transaction; the same decision again is the first.",
        "teams.outcomes": "The end of a task is that of its assignment, in one transaction, and "
        "what it used counts towards the budget.",
        "teams.control": "A run is paused, resumed and cancelled with its workers in order; work "
        "is given to another member, also to one who came in the middle.",
        "teams.supervisors": "An agent that supervises is asked with the state of its run after "
        "each outcome, and its decision is taken exactly once, like any other.",
        "teams.supervisors.astray": "A supervising agent that repeats itself, lies about workers, "
        "never answers or answers prose is told so, and after some turns a person is needed.",
        "teams.takeover": "A person takes over from a supervising agent and hands back to it; "
        "meanwhile the agent is not asked, and what it says does not count.",
        "teams.law": "A state of a run, or a list of teams or runs, and the events after it are "
        "what is read anew.",
        "teams.facts": "Each event of a run is in the Hub's journal once, in order, as facts that "
        "project to roster, board, handoffs and reviews, wherever a Hub stops.",
        "teams.approvals": "What is decided of what an agent of a run asks is told to those who "
        "see the run.",
        "teams.live": "Members on real devices do what a supervisor decides by REST, from the "
        "first delegation to the end of the run.",
        "teams.killed": "A Hub that is killed at any point of a run goes on with it exactly once.",
        "teams.worktrees": "Each assignment of an executor works in a worktree of its own and "
        "tells what it changed; work that goes back goes on there, and a folder outside of any "
        "repository is said to be one.",
        "teams.review_diff": "A reviewer gets the files and the diff on any device; of a long one "
        "the beginning, and where the whole is.",
        "teams.merge": "Work is merged on its device once, only if it was approved and "
        "not changed since, by whoever may operate the device; conflicts are reported, and no "
        "worktree is removed unasked.",
        "teams.pack": "A pack of a run has its own thread and those of all members, verifies as "
        "one file, and names what was left out.",
        "teams.files_killed": "An Edge that is killed between the end of work and its report, and "
        "either side that is killed during a merge, lose nothing and do nothing twice.",
        "teams.demo": "The demo of a Hub has a team that delegates, is refused a route, sends work "
        "back after a review, asks for an approval and finishes, without a key.",
        "teams.command": "A team is made, run, watched, decided about and stopped from the command "
        "line and from Python.",
    },
)
