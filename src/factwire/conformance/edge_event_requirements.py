"""What the Edge's events promise: one fact, one envelope, in a list of types that is kept."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

EDGE_EVENT_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "edge, Envelope and types",
    {
        "edge.events.one-envelope": "A fact is one envelope in each view, with the fact's seq.",
        "edge.events.pure": "An envelope follows from epoch, edge, seq, fact and view alone.",
        "edge.events.envelope": "An envelope has version, id, seq, type, scope, trace, time, "
        "payload and a cursor.",
        "edge.events.ids": "An event id begins with evt_, is one fact's, and leads back to it.",
        "edge.events.types.listed": "Nothing is emitted that is neither listed nor a fact's class.",
        "edge.events.types.emitted": "Every listed type has a class of facts that gives it.",
        "edge.events.types.specified": "Every type of the specification is listed with its fields.",
        "edge.events.payloads": "A payload is what its type says, whatever the fact holds.",
        "edge.events.views": "Where two words fit a fact, the view chooses.",
        "edge.events.runs": "A turn is told as a run, with one of seven codes where it failed; a "
        "subagent's turn is not.",
        "edge.events.unpromoted": "A fact that lacks what a type needs keeps its class.",
        "edge.events.unforged": "No fact passes for a type or a frame that is not its own.",
        "edge.events.classes": "The Edge's own classes are known, with ids and payloads.",
        "edge.events.schemas": "The Edge's schemas, declarations and AsyncAPI take what is sent.",
    },
)
