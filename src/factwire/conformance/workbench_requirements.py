"""What the workbench promises, and the Edge that serves it."""

from typing import Final

from factwire.conformance.suite_requirements import Requirement, requirements

WORKBENCH_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *requirements(
        "docs/workbench.md",
        {
            "workbench.page": "The page is served without a token, at its own addresses alone.",
            "workbench.files": "What is named after its content is kept for ever, all else asked "
            "for anew; what compresses is sent so.",
            "workbench.bounds": "No address leads out of the built files or takes one from REST.",
            "workbench.unbuilt": "Without built files, a page says what to do.",
            "workbench.built": "The built files are small, and name no other place.",
            "workbench.entrance": "One click signs in; the token is in no address that is sent.",
            "workbench.types": "The page's types are those of the contracts.",
            "workbench.search": "Threads are found by words of their title.",
            "workbench.upload": "An attachment is stored, and named by its ref in a message.",
            "workbench.moment": "A thread is read, and forked, as it was at any of its events.",
            "workbench.sign-in": "Without a token the page asks for one, and shows nothing else.",
        },
    ),
    *requirements(
        "guarantees.md S2",
        {
            "workbench.guard": "Foreign hosts, frames and pages get nothing; a link does.",
        },
    ),
    *requirements(
        "guarantees.md S9",
        {
            "workbench.policy": "The page runs its own files and talks to its own Edge alone.",
            "workbench.xss": "Nothing that an agent wrote becomes markup, script or a request.",
        },
    ),
)


WORKBENCH_QUALITY_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *requirements(
        "docs/workbench.md",
        {
            "workbench.reload": "A reload amid an answer doubles nothing and loses nothing.",
            "workbench.restart": "A page finds an Edge that was away again, exactly, and says how "
            "it is connected meanwhile.",
            "workbench.parts": "A part of the page that cannot be fetched fails alone.",
            "workbench.together": "Two browsers show the same, and a decision counts for both.",
            "workbench.long": "Fifty thousand facts are opened, scrolled and scrubbed in bounds.",
            "workbench.keyboard": "Everything can be done by keyboard, and no key is stolen.",
            "workbench.attachments": "Files go with a message as refs, and stay with its draft.",
            "workbench.drafts": "What is typed while a message is on its way is kept.",
            "workbench.finding": "The search of the page asks the Edge, so it finds every thread.",
            "workbench.accessible": "No screen has a serious finding of axe, in any theme or size.",
        },
    ),
    *requirements(
        "guarantees.md S9",
        {
            "workbench.hostile": "Hostile text is text, in every place that an agent fills.",
            "workbench.layout": "No word, however long or in whatever script, widens the page.",
        },
    ),
    *requirements(
        "seed 002, acceptance scenarios, 1-12",
        {
            "workbench.scenario.status-before-text": "Status is outside the conversation.",
            "workbench.scenario.tool-artifact": "An artifact's card is tied to its call.",
            "workbench.scenario.final-reconciles": "A final text takes the streamed one's place.",
            "workbench.scenario.action-severity": "A request shows its severity wherever it waits.",
            "workbench.scenario.unknown-artifact": "Missing facts show as unknown.",
            "workbench.scenario.export": "An export shows its state and no content.",
            "workbench.scenario.queued-turn": "A queued turn waits beside the conversation.",
            "workbench.scenario.subagent": "A subagent is a teammate, and not in the answer.",
            "workbench.scenario.notification": "A worker's notification is no message.",
            "workbench.scenario.delegated-approval": "A delegated approval names who asks.",
            "workbench.scenario.compaction": "A compaction is a boundary with a summary.",
            "workbench.scenario.diagnostics": "Diagnostics are apart, and there to be read.",
        },
    ),
)


WORKBENCH_TEAM_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *requirements(
        "docs/workbench.md",
        {
            "workbench.graph.stated": "The graph draws nodes and edges that facts state, and "
            "opens each.",
            "workbench.graph.steady": "Nodes that come move none that are there.",
            "workbench.graph.keyboard": "Keys lead to neighbours, open, fold and zoom.",
            "workbench.graph.words": "An outline says in words what the graph draws.",
            "workbench.graph.many": "Of thousands of nodes, those on screen alone are drawn.",
            "workbench.graph.moment": "At a moment of the past, the graph is as it was then.",
            "workbench.team.surfaces": "Members, work, handoffs and reviews are those of the "
            "projection; where there are none, the page shows that.",
            "workbench.team.transcript": "A teammate opens with a transcript of its own.",
        },
    ),
    *requirements(
        "seed 002, acceptance 9 and 10",
        {
            "workbench.team.reports": "A worker's report is distinguished from what people write.",
            "workbench.team.requests": "A teammate's request names it, and is answered with the "
            "card that every request has.",
        },
    ),
)


WORKBENCH_THINGS_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "docs/workbench.md",
    {
        "workbench.approvals.everywhere": "What is decided in one browser is decided in all, and a "
        "card says so once a fact does.",
        "workbench.approvals.shown": "A card shows exactly what would be done, who asks, where, "
        "and by which rule.",
        "workbench.approvals.rule": "The rule of an always is on screen before it is granted, and "
        "without one nothing is offered.",
        "workbench.approvals.form": "A question is a form of its schema, and its answer has the "
        "types that the schema asks for.",
        "workbench.approvals.changed": "What changes under a reader's eyes must be read again "
        "before it can be decided.",
        "workbench.approvals.attention": "How much waits is in the title and on the icon; a "
        "notification names the thread and no more.",
        "workbench.artifacts.versions": "Versions of an artifact are shown, compared and saved.",
        "workbench.artifacts.diffs": "A change is shown as a diff, inline or fetched by its ref.",
        "workbench.artifacts.unknown": "Content of an unknown kind is never rendered.",
        "workbench.artifacts.preview": "A page is shown from an origin of its own, on request.",
        "workbench.evidence.verdicts": "A verdict is what a fact says, else unknown.",
        "workbench.evidence.packs": "A pack is made, verified and saved.",
    },
)


WORKBENCH_TIME_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *requirements(
        "docs/workbench.md",
        {
            "workbench.travel": "Any moment is reached by pointer, key or link, and every panel "
            "shows it.",
            "workbench.travel-reading": "In the past nothing can be said or decided, and the page "
            "says so.",
            "workbench.travel-cost": "A move across a thread waits for one moment at a time, and "
            "long threads are drawn in part.",
            "workbench.travel-play": "A thread is played and paused at a pace that is chosen.",
            "workbench.travel-fork": "A new thread begins at any moment of another.",
            "workbench.remarks": "Remarks come with their code and what it means, and they and "
            "repairs lead to their facts.",
            "workbench.figures": "Times and costs are those of facts; what none tells is unknown.",
            "workbench.stop.held": "After a stop the messages that waited are listed as held, each "
            "to be continued, edited or discarded, on every screen and after a reload.",
            "workbench.approvals.times": "A decision shows when it was made, sent and applied.",
            "workbench.health": "An Edge that cannot record anything says so, and why.",
            "workbench.raw-facts": "Facts are found by class, id and words, and exported as found.",
            "workbench.retention": "A thread whose beginning was removed says when and by whom.",
        },
    ),
)
