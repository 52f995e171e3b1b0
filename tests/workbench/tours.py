"""The demo's tour on a running Edge, with all that it asks for allowed."""

from time import monotonic
from typing import Any

import httpx

from tests.client.edge_processes import PATIENCE
from tests.workbench.opening import decide, pending_approvals, start_run

ENDED = ("finished", "failed", "cancelled")


def run_tour(http: httpx.Client, title: str = "Tour of the demo") -> str:
    """The id of a thread on which the whole tour was made."""
    run = start_run(http, "demo: tour", title)
    allow_all(http, run)
    return run["threadId"]


def allow_all(http: httpx.Client, run: dict[str, Any]) -> None:
    """Allow what a run asks for until it has ended."""
    until = monotonic() + PATIENCE
    while http.get(f"/v1/runs/{run['runId']}").json()["status"] not in ENDED:
        assert monotonic() < until, "the run did not end"
        for requests in pending_approvals(http, run["threadId"]):
            decide(http, run, requests["approvalId"], "allow")
