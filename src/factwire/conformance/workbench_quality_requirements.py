"""What the workbench promises in a real browser: to be exact, safe, quick and for everybody."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

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
