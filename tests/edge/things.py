"""Things of every kind on a running Edge, so that requests are made under ids that exist."""

from typing import Any

import httpx

from tests.edge.edges import ENDED, TOKEN

_STEPS = 2_000


class Things:
    """Ids by the name under which they stand in addresses."""

    def __init__(self, ids: dict[str, list[str]]) -> None:
        self.ids = ids

    def path_parameters(self, label: str, which: int) -> dict[str, str]:
        """One id of each kind; what deletes gets the ids of things made to be deleted."""
        spare = label.startswith("DELETE")
        return {
            name: known[0] if not spare else known[which % len(known)]
            for name, known in self.ids.items()
        }


def made_things(url: str) -> Things:
    """Make one of everything that an Edge keeps."""
    headers = {"authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=280) as http:
        project = _post_thing(http, "/v1/projects", {"name": "Site"})
        thread = _post_thing(http, "/v1/threads", {"projectId": project["projectId"]})
        messages = _run(http, "files", thread["threadId"])
        waiting = _post_thing(http, "/v1/runs", {"agentId": "demo", "prompt": "approve"})
        conversation = _post_thing(http, "/v1/conversations", {"title": "Talk"})
        evidence = _post_thing(http, "/v1/evidence", {"threadId": messages["threadId"]})
        preview = _post_thing(http, "/v1/previews", {"runId": messages["runId"]})
        _post_thing(http, "/v1/facts", {"facts": outside_facts()})
        token = _post_thing(http, "/v1/tokens", {"name": "Phone", "scopes": ["read"]})
        items = http.get(f"/v1/threads/{thread['threadId']}/items").json()["items"]
        artifacts = http.get("/v1/artifacts").json()["items"]
        approvals = http.get("/v1/approvals").json()["items"]
        kept = [row["contentRef"] for row in artifacts if "contentRef" in row]
        return Things(
            {
                "threadId": [thread["threadId"], waiting["threadId"], "outside"],
                "runId": [messages["runId"], waiting["runId"]],
                "projectId": [project["projectId"]],
                "conversationId": [conversation["conversationId"]],
                "evidenceId": [evidence["evidenceId"]],
                "previewId": [preview["previewId"]],
                "approvalId": [row["approvalId"] for row in approvals],
                "artifactId": [row["artifactId"] for row in artifacts],
                "taskId": ["outside-task"],
                "itemId": [row["itemId"] for row in items],
                "tokenId": [token["tokenId"]],
                "ruleId": ["rul_none"],
                "ref": kept,
            }
        )


def _run(http: httpx.Client, prompt: str, thread_id: str) -> dict[str, Any]:
    """A run that was allowed whatever it asked for, once it has ended."""
    run = _post_thing(
        http, "/v1/runs", {"agentId": "demo", "prompt": prompt, "threadId": thread_id}
    )
    for _ in range(_STEPS):
        run = http.get(f"/v1/runs/{run['runId']}").json()
        if run["status"] in ENDED:
            return run
        pending = http.get("/v1/approvals", params={"status": "pending", "runId": run["runId"]})
        for row in pending.json()["items"]:
            payload = {"runId": row["runId"], "requestId": row["approvalId"], "decision": "allow"}
            payload["argsHash"] = row["argsHash"]
            http.post("/v1/permissions/decide", json=payload)
    raise AssertionError(f"the run never ended: {run}")


def _post_thing(http: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = http.post(path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


def outside_facts(thread_id: str = "outside") -> list[dict[str, Any]]:
    """What another runtime would send: a thread with a task."""
    fields = [
        ("run.status", {"status": "running"}),
        ("task.created", {"taskId": "outside-task", "title": "Look", "status": "created"}),
    ]
    return [
        {
            "id": f"{thread_id}-{index}",
            "kind": "state",
            "status": "running",
            "title": event_class,
            "createdAt": "2026-01-01T00:00:00Z",
            "schemaVersion": "factwire-fact/v1",
            "runtimeId": "elsewhere",
            "sequence": index,
            "eventClass": event_class,
            "threadId": thread_id,
            "taskId": payload.get("taskId"),
            "payload": payload,
        }
        for index, (event_class, payload) in enumerate(fields, 1)
    ]
