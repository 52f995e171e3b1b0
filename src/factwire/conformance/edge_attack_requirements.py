"""What the REST interface holds against: thousands of odd requests, floods, broken HTTP."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

EDGE_ATTACK_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "edge.md Commands (REST), Who may talk to it; guarantees.md R11, R13, S6, S7, S14",
    {
        "edge.rest.openapi.document": "The OpenAPI document describes every handler, and nothing "
        "else.",
        "edge.rest.openapi.answers": "Every answer to a documented request is a documented one.",
        "edge.rest.openapi.negative": "A request that the document does not allow is refused.",
        "edge.rest.openapi.stateful": "Ids that were given can be used in any order of requests.",
        "edge.floods.streams": "Streams are bounded in number and in how fast they come.",
        "edge.floods.credentials": "Guesses and tickets are bounded; the token is always let in.",
        "edge.floods.bodies": "A body is bounded, whether or not it says its length.",
        "edge.floods.slow": "A connection that trickles or idles is given up.",
        "edge.floods.headers": "Addresses, headers and trailers are bounded and unambiguous.",
        "edge.floods.connections": "Connections are bounded in number.",
        "edge.floods.json": "JSON that is deep, ambiguous or no JSON is refused by name.",
        "edge.floods.counts": "Batches, keys, names and query parameters are bounded.",
        "edge.http.malformed": "Malformed HTTP gets a documented answer and leaves no traceback.",
        "edge.http.facts": "Mutated facts are taken whole or refused by name.",
        "edge.ids.unknown": "An id that nobody has is not found, at every address.",
        "edge.ids.crossed": "An id of another kind or another thread is not found.",
        "edge.ids.declared": "No body says who somebody is, nor what an id or a number is.",
        "edge.ids.slashes": "What an outside runtime calls a thread can be asked for.",
        "edge.ids.repeated": "A POST fifty times at once under one key has one effect.",
    },
)
