"""Links of the OpenAPI document: where the id of something that was made can be used.

They are derived: an answer that is a row leads to every operation whose address has the row's id.
"""

from typing import Any, Final

Document = dict[str, Any]

_IDS: Final = {
    "Thread": "threadId",
    "Run": "runId",
    "Project": "projectId",
    "Conversation": "conversationId",
    "Preview": "previewId",
    "EvidenceRow": "evidenceId",
}
"""Component → the member that is its id, and the name of that id in addresses."""

_LISTED: Final = {
    "ApprovalPage": "approvalId",
    "ArtifactPage": "artifactId",
    "TaskPage": "taskId",
}
_DECIDING: Final = {
    "operationId": "decidePermission",
    "requestBody": {
        "runId": "$response.body#/items/0/runId",
        "requestId": "$response.body#/items/0/approvalId",
        "decision": "allow",
    },
    "description": "Decide the newest approval.",
}


def with_links(document: Document) -> Document:
    """The document with links at every answer that makes or finds something."""
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    for method, path, operation in operations:
        for status, response in operation["responses"].items():
            links = _links(_component(response), operations)
            if links and status.startswith("2") and _makes(method, path, operation):
                response["links"] = links
    return document


def _makes(method: str, path: str, operation: Document) -> bool:
    """Whether an operation gives an id that its address did not have, as far as rows tell."""
    return method == "post" or (method == "get" and "{" not in path and bool(operation))


def _component(response: Document) -> str:
    content = response.get("content", {}).get("application/json", {})
    return str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2]


def _links(component: str, operations: list[tuple[str, str, Document]]) -> Document:
    if component in _IDS:
        name, place = _IDS[component], f"$response.body#/{_IDS[component]}"
    elif component in _LISTED:
        name, place = _LISTED[component], f"$response.body#/items/0/{_LISTED[component]}"
    else:
        return {}
    named = {
        operation["operationId"]: {
            "operationId": operation["operationId"],
            "parameters": {name: place},
        }
        for _, path, operation in operations
        if f"{{{name}}}" in path
    }
    return {**named, "decidePermission": _DECIDING} if component == "ApprovalPage" else named
