"""What the Python client promises, and the commands that use it."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

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
        "client.unreachable": "Where nobody answers, the error says so and what to do.",
        "client.token": "A token is found in named places, and shown in none.",
        "client.one-place": "A token goes to the Edge it was given for, and follows no redirect.",
        "client.content": "Content of any length is handed over in pieces of bounded size.",
        "client.resume": "A cut stream comes back by itself: nothing missing, nothing twice.",
        "client.cursor-lost": "A stream that cannot be resumed exactly says where to begin anew.",
        "client.now": "A stream that begins now misses nothing that its block sets off.",
        "client.document": "A state kept by changes is the state that the Edge has.",
        "client.extra": "Without its libraries the client says which extra to install.",
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
    },
)
