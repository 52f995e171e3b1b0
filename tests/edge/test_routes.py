"""The REST interface: what each address does, and how it says no."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from factwire.edge.records.thread_records import own_key
from factwire.serving.limits import QUERY_CHARACTERS, QUERY_TYPES
from tests.edge.edges import configuration_in, running_edge

pytestmark = pytest.mark.asyncio


@pytest.mark.requirement("edge.rest.runs")
async def test_a_run_is_accepted_watched_and_finished(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("help")
        assert run["status"] in ("queued", "running")
        ended = await edge.run_until(run["runId"])
        assert ended["status"] == "finished"
        thread = await edge.get(f"/v1/threads/{run['threadId']}")
        assert thread["activity"] == "completed"
        assert thread["title"] == "help"
        items = (await edge.get(f"/v1/threads/{run['threadId']}/items"))["items"]
        assert [item["type"] for item in items][:2] == ["user_message", "agent_message"]
        assert items[0]["content"]["text"] == "help"


@pytest.mark.requirement("edge.rest.approvals")
async def test_an_approval_is_decided_once_and_by_what_was_shown(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("approve")
        approval = await edge.wait_for_approval(run["runId"])
        wrong = await edge.decide(approval, "allow", argsHash="sha256:0")
        assert (wrong.status_code, wrong.json()["code"]) == (409, "approval_changed")
        other = await edge.decide({**approval, "runId": "run_other"}, "allow")
        assert (other.status_code, other.json()["code"]) == (404, "unknown_approval")
        first = await edge.decide(approval, "allow", argsHash=approval["argsHash"])
        assert first.json()["status"] == "approved"
        again = await edge.decide(approval, "allow")
        assert again.status_code == 200
        opposite = await edge.decide(approval, "deny")
        assert (opposite.status_code, opposite.json()["code"]) == (409, "approval_decided")
        assert (await edge.allow_all(run["runId"]))["status"] == "finished"


@pytest.mark.requirement("edge.rest.approvals")
async def test_a_denial_reaches_the_agent_with_its_reason(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("approve")
        approval = await edge.wait_for_approval(run["runId"])
        denied = await edge.decide(approval, "deny", reason="not today")
        assert (denied.json()["status"], denied.json()["reason"]) == ("denied", "not today")
        await edge.allow_all(run["runId"])
        page = await edge.get("/v1/approvals", runId=run["runId"])
        assert [row["status"] for row in page["items"]] == ["approved", "denied"]
        tools = await edge.get(f"/v1/threads/{run['threadId']}/items")
        failed = [item["content"].get("failureCategory") for item in tools["items"]]
        assert "permission_denied" in failed


@pytest.mark.requirement("edge.rest.standing")
async def test_the_rule_of_an_always_is_told_before_it_is_granted(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("approve")
        write = await edge.wait_for_approval(run["runId"])
        none = await edge.get(_rule_of(write))
        assert (none["code"], "rule" in none) == ("no_standing_rule", False)
        refused = await edge.decide(write, "allow", always="thread")
        assert (refused.status_code, refused.json()["code"]) == (409, none["code"])
        await edge.decide(write, "allow")
        command = await edge.wait_for_approval(run["runId"])
        messages = await edge.get(_rule_of(command))
        assert messages["argsHash"] == command["argsHash"]
        assert messages["workspace"] == str((tmp_path / "workspace").resolve())
        await edge.decide(command, "allow", always="workspace")
        granted = (await edge.get(f"/v1/threads/{run['threadId']}/projection"))["state"]
        assert granted["permissions"]["policy"]["standing"]["rule"] == messages["rule"]
        assert (await edge.get(_rule_of(command)))["code"] == "approval_decided"
        assert (await edge.http.get(_rule_of({"approvalId": "nobody"}))).status_code == 404


@pytest.mark.requirement("edge.rest.rules")
async def test_a_granted_rule_is_shown_with_what_it_means_listed_expires_and_is_revoked(
    tmp_path: Path,
):
    """The folder, the files that the agent may edit, and what it would have answered lately."""
    root = (tmp_path / "workspace").resolve()
    root.mkdir()
    for name in ("check", "other"):
        (root / name).write_text("#!/bin/sh\n", "utf-8")
        (root / name).chmod(0o755)
    async with running_edge(tmp_path) as edge:
        earlier: list[dict[str, Any]] = []
        for command in ("./check", "./other", "./check"):
            run = await edge.start(command, agent="shell")
            earlier.append(await edge.wait_for_approval(run["runId"]))
            await edge.decide(earlier[-1], "deny")
            await edge.run_until(run["runId"])
        run = await edge.start("./check", agent="shell")
        open_request = await edge.wait_for_approval(run["runId"])
        rule = await edge.get(_rule_of(open_request))
        bare = await edge.decide(open_request, "allow", expiresIn=60)
        never = await edge.decide(open_request, "allow", always="thread", expiresIn=0)
        granted = await edge.decide(open_request, "allow", always="workspace", expiresIn=3600)
        await edge.run_until(run["runId"])
        answered = await edge.start("./check", agent="shell")
        await edge.run_until(answered["runId"])
        page = await edge.get("/v1/standing-rules")
        [held] = page["items"]
        removed = await edge.http.delete(f"/v1/standing-rules/{held['ruleId']}")
        again = await edge.http.delete(f"/v1/standing-rules/{held['ruleId']}")
        left = await edge.get("/v1/standing-rules")
        run = await edge.start("./check", agent="shell")
        repeated = await edge.wait_for_approval(run["runId"])
        await edge.decide(repeated, "deny")
        await edge.run_until(run["runId"])
        approvals = await edge.get("/v1/approvals", runId=answered["runId"])

    matches = rule.pop("matches")
    assert rule == {
        "approvalId": open_request["approvalId"],
        "argsHash": open_request["argsHash"],
        "rule": "Bash(./check)",
        "workspace": str(root),
        "folder": str(root),
        "editable": [str(root / "check")],
        "searched": 3,
    }
    ids = [match["approvalId"] for match in matches]
    assert ids == [earlier[2]["approvalId"], earlier[0]["approvalId"]]
    assert (bare.status_code, never.status_code, granted.status_code) == (400, 400, 200)
    [by_rule] = approvals["items"]
    assert (by_rule["status"], by_rule["reason"]) == ("approved", "always: Bash(./check)")
    assert {**held, "ruleId": "", "expiresAt": ""} == {
        "ruleId": "",
        "rule": "Bash(./check)",
        "lasts": "workspace",
        "folder": str(root),
        "threadId": open_request["threadId"],
        "workspace": str(root),
        "expiresAt": "",
    }
    assert held["expiresAt"] > open_request["createdAt"]
    assert (removed.status_code, again.status_code) == (204, 404)
    assert again.json()["code"] == "unknown_standing_rule"
    assert left["items"] == []


def _rule_of(approval: dict[str, Any]) -> str:
    return f"/v1/approvals/{approval['approvalId']}/standing-rule"


@pytest.mark.requirement("edge.rest.cancel")
async def test_cancel_stops_a_run_and_again_is_no_news(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("approve")
        await edge.run_until(run["runId"], "waiting")
        await edge.post(f"/v1/runs/{run['runId']}:cancel", {"reason": "enough"}, status=202)
        assert (await edge.run_until(run["runId"]))["status"] == "cancelled"
        await edge.post(f"/v1/runs/{run['runId']}:cancel", status=202)
        retried = await edge.post(f"/v1/runs/{run['runId']}:retry", status=202)
        assert (retried["retryOf"], retried["attempt"]) == (run["runId"], 2)


@pytest.mark.requirement("edge.rest.cancel")
@pytest.mark.parametrize("way", ["cancel", "remove", "steer"])
async def test_a_run_that_ended_in_the_queue_can_be_retried(tmp_path: Path, way: str):
    async with running_edge(tmp_path) as edge:
        first = await edge.start("approve")
        approval = await edge.wait_for_approval(first["runId"])
        thread = f"/v1/threads/{first['threadId']}"
        run = await edge.start("help", threadId=first["threadId"])
        path = f"/v1/runs/{run['runId']}"
        assert (await edge.http.post(f"{path}:retry")).json()["code"] == "active_run_exists"
        if way == "cancel":
            await edge.post(f"{path}:cancel", status=202)
        elif way == "remove":
            await edge.http.delete(f"{thread}/queue/{run['runId']}")
        else:
            await edge.post(f"{thread}/queue/{run['runId']}:steer")
            await edge.decide(approval, "allow")
        assert (await edge.run_until(run["runId"]))["status"] == "cancelled"
        retried = await edge.post(f"{path}:retry", status=202)
        assert [retried[name] for name in ("retryOf", "attempt", "prompt")] == [
            run["runId"],
            2,
            "help",
        ]
        await edge.allow_all(first["runId"])
        assert (await edge.run_until(retried["runId"]))["status"] == "finished"


@pytest.mark.requirement("edge.rest.queue")
async def test_a_second_run_on_a_thread_waits_or_is_refused(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        first = await edge.start("approve")
        await edge.run_until(first["runId"], "waiting")
        thread = first["threadId"]
        body = {"agentId": "demo", "prompt": "help", "threadId": thread, "whenBusy": "refuse"}
        refused = await edge.http.post("/v1/runs", json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "active_run_exists")
        waiting = [await edge.start("help", threadId=thread) for _ in range(2)]
        assert [row["status"] for row in waiting] == ["queued", "queued"]
        queue = await edge.post(f"/v1/threads/{thread}/queue/{waiting[1]['runId']}:promote")
        assert [row["runId"] for row in queue["items"]] == [
            waiting[1]["runId"],
            waiting[0]["runId"],
        ]
        left = await edge.http.delete(f"/v1/threads/{thread}/queue/{waiting[0]['runId']}")
        assert [row["runId"] for row in left.json()["items"]] == [waiting[1]["runId"]]
        await edge.allow_all(first["runId"])
        assert (await edge.run_until(waiting[1]["runId"]))["status"] == "finished"


@pytest.mark.requirement("edge.rest.limits")
async def test_too_many_runs_are_refused_and_leave_nothing(tmp_path: Path):
    import msgspec

    from factwire.runtime.configuration import Limits

    few = msgspec.structs.replace(configuration_in(tmp_path), limits=Limits(concurrent_runs=1))
    async with running_edge(tmp_path, configuration=few) as edge:
        for _ in range(3):
            # One that waits for a person keeps nobody from working.
            await edge.run_until((await edge.start("approve"))["runId"], "waiting")
        first = await edge.start("slow")
        await edge.run_until(first["runId"], "running")
        refused = await edge.http.post("/v1/runs", json={"agentId": "demo", "prompt": "help"})
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_runs")
        assert len((await edge.get("/v1/threads"))["items"]) == 4


@pytest.mark.requirement("edge.rest.idempotency")
async def test_a_post_under_one_key_is_done_once(tmp_path: Path):
    body = {"agentId": "demo", "prompt": "help"}
    async with running_edge(tmp_path) as edge:
        headers = {"idempotency-key": "first"}
        first = await edge.http.post("/v1/runs", json=body, headers=headers)
        again = await edge.http.post("/v1/runs", json=body, headers=headers)
        assert again.json()["runId"] == first.json()["runId"]
        assert again.headers["idempotency-replayed"] == "true"
        other = await edge.http.post("/v1/runs", json={**body, "prompt": "x"}, headers=headers)
        assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
        await edge.run_until(first.json()["runId"])
    async with running_edge(tmp_path) as edge:
        later = await edge.http.post("/v1/runs", json=body, headers=headers)
        assert later.json()["runId"] == first.json()["runId"]
        assert len((await edge.get("/v1/runs"))["items"]) == 1


@pytest.mark.requirement("edge.rest.threads")
async def test_threads_are_made_named_archived_forked_and_deleted(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        made = await edge.post("/v1/threads", {"title": "One"}, status=201)
        path = f"/v1/threads/{made['threadId']}"
        renamed = await edge.http.patch(path, json={"title": "Two"})
        assert renamed.json()["title"] == "Two"
        run = await edge.start("help", threadId=made["threadId"])
        await edge.run_until(run["runId"])
        items = (await edge.get(f"{path}/items"))["items"]
        fork = await edge.post(f"{path}:fork", {"fromItemId": items[0]["itemId"]}, status=201)
        assert fork["parentThreadId"] == made["threadId"]
        copied = (await edge.get(f"/v1/threads/{fork['threadId']}/items"))["items"]
        assert [item["content"]["text"] for item in copied] == ["help"]
        archived = await edge.post(f"{path}:archive")
        assert archived["status"] == "archived"
        body = {"agentId": "demo", "prompt": "help", "threadId": made["threadId"]}
        refused = await edge.http.post("/v1/runs", json=body)
        assert refused.json()["code"] == "thread_archived"
        gone = await edge.http.delete(path)
        assert gone.status_code == 204
        assert (await edge.http.get(path)).json()["code"] == "unknown_thread"
        left = [row["threadId"] for row in (await edge.get("/v1/threads"))["items"]]
        assert left == [fork["threadId"]]
        assert (await edge.http.get(f"/v1/runs/{run['runId']}")).status_code == 404


@pytest.mark.requirement("edge.rest.projects")
async def test_a_project_gives_its_runs_a_folder_and_cannot_leave_the_workspaces(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        folder = tmp_path / "workspace" / "site"
        folder.mkdir()
        outside = await edge.http.post("/v1/projects", json={"name": "x", "workDir": "/etc"})
        assert (outside.status_code, outside.json()["code"]) == (403, "workspace_not_allowed")
        made = await edge.post("/v1/projects", {"name": "Site", "workDir": str(folder)}, status=201)
        thread = await edge.post("/v1/threads", {"projectId": made["projectId"]}, status=201)
        run = await edge.start("pwd", agent="shell", threadId=thread["threadId"])
        await edge.decide(await edge.wait_for_approval(run["runId"]), "allow")
        assert (await edge.run_until(run["runId"]))["status"] == "finished"
        log = await edge.http.get(f"/v1/runs/{run['runId']}/logs")
        assert log.text.strip() == str(folder)
        for offset in (len(log.content), 2**63 - 1, 2**63, 10**20):
            past = await edge.http.get(f"/v1/runs/{run['runId']}/logs", params={"offset": offset})
            assert (past.status_code, past.content) == (200, b"")
            assert past.headers["x-next-offset"] == str(offset)
        used = await edge.http.delete(f"/v1/projects/{made['projectId']}")
        assert used.json()["code"] == "project_in_use"


@pytest.mark.requirement("edge.rest.snapshot-cursor")
async def test_a_snapshot_and_the_events_after_it_have_no_hole_and_no_repeat(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        first = await edge.start("help")
        await edge.run_until(first["runId"])
        page = await edge.get("/v1/threads")
        second = await edge.start("help")
        await edge.run_until(second["runId"])
        after = await edge.get("/v1/events", cursor=page["asOf"], limit=1000)
        runs = {event["scope"].get("runId") for event in after["items"]} - {None}
        assert runs == {second["runId"]}


@pytest.mark.requirement("edge.rest.outside-facts")
async def test_a_secret_in_an_id_is_refused_and_one_in_pieces_of_output_is_redacted(
    tmp_path: Path,
):
    secret = "ghp_" + "a1B2c3D4" * 5
    pieces = ["use ", secret[:12], secret[12:], " now"]
    output = [
        {**_fact(n), "eventClass": "process.output", "processId": "p", "payload": {"delta": piece}}
        for n, piece in enumerate(pieces, 1)
    ]
    async with running_edge(tmp_path) as edge:
        named = await edge.http.post("/v1/facts", json={"facts": [{**_fact(1), "runId": secret}]})
        [issue] = named.json()["issues"]
        assert (named.status_code, issue["code"]) == (422, "secret_leak_risk")
        assert (issue["path"], secret in named.text) == ("$.facts[0].runId", False)
        await edge.post("/v1/facts", {"facts": output})
        rows = (await edge.get("/v1/facts", classes="process.output"))["items"]
        assert "".join(row["fact"]["payload"]["delta"] for row in rows) == "use [redacted] now"


@pytest.mark.requirement("edge.rest.outside-facts")
async def test_facts_of_an_outside_runtime_are_taken_whole_once_and_without_secrets(
    tmp_path: Path,
):
    async with running_edge(tmp_path) as edge:
        facts = [_fact(index) for index in range(1, 4)]
        first = await edge.post("/v1/facts", {"facts": facts})
        assert (first["accepted"], first["repeated"]) == (3, 0)
        again = await edge.post("/v1/facts", {"facts": facts})
        assert (again["accepted"], again["repeated"], again["seqs"]) == (0, 3, first["seqs"])
        broken = await edge.http.post("/v1/facts", json={"facts": [_fact(4), {"id": "x"}]})
        assert (broken.status_code, broken.json()["code"]) == (422, "invalid_facts")
        assert broken.json()["issues"][0]["path"].startswith("$.facts[1]")
        leaking = _fact(4) | {"payload": {"password": "hunter2hunter2"}}
        await edge.post("/v1/facts", {"facts": [leaking]})
        page = await edge.http.get("/v1/facts", params={"limit": 1000})
        assert "hunter2" not in page.text
        assert "output.redacted" in page.text
        body = {"agentId": "demo", "prompt": "help", "threadId": "outside"}
        refused = await edge.http.post("/v1/runs", json=body)
        assert refused.json()["code"] == "thread_owned_elsewhere"


@pytest.mark.requirement("edge.rest.outside-facts")
async def test_facts_for_a_thread_of_this_edge_are_refused(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        made = await edge.post("/v1/threads", {}, status=201)
        mine = _fact(9) | {"threadId": made["threadId"]}
        refused = await edge.http.post("/v1/facts", json={"facts": [mine]})
        assert refused.json()["code"] == "thread_owned_elsewhere"
        posing = _fact(9) | {"runtimeId": edge.machine.mint.runtime_id}
        taken = await edge.http.post("/v1/facts", json={"facts": [posing]})
        assert taken.json()["code"] == "runtime_id_taken"


@pytest.mark.requirement("edge.rest.evidence")
async def test_a_pack_of_a_thread_can_be_fetched_and_verifies(tmp_path: Path):
    from factwire.evidence import verify_pack

    async with running_edge(tmp_path) as edge:
        run = await edge.start("help")
        await edge.run_until(run["runId"])
        row = await edge.post("/v1/evidence", {"threadId": run["threadId"]}, status=201)
        pack = await edge.http.get(f"/v1/evidence/{row['evidenceId']}/content")
        path = tmp_path / "pack.zip"
        path.write_bytes(pack.content)
        report = verify_pack(path)
        assert not report.findings, report
        found = await edge.get(f"/v1/evidence/{row['evidenceId']}/verification")
        assert found["report"]["ok"]
        assert found["report"]["digest"] == report.digest
        assert found["report"]["signer"]["name"] == "this Edge"
        assert found["journal"]["state"] == "matches"
        assert found["journal"]["differences"] == []


@pytest.mark.requirement("edge.rest.artifacts")
async def test_artifacts_and_blobs_are_attachments_found_by_id(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("files")
        await edge.allow_all(run["runId"])
        rows = (await edge.get("/v1/artifacts", runId=run["runId"]))["items"]
        kept = [row for row in rows if "contentRef" in row]
        assert kept
        content = await edge.http.get(f"/v1/artifacts/{kept[0]['artifactId']}/content")
        assert content.headers["content-disposition"].startswith("attachment")
        blob = await edge.http.get(f"/v1/blobs/{kept[0]['contentRef']}")
        assert blob.content == content.content
        for hostile in ("../../etc/passwd", "output:sha256:zz", "a%2f..%2fb"):
            assert (await edge.http.get(f"/v1/blobs/{hostile}")).status_code == 404


@pytest.mark.requirement("edge.rest.time-travel")
async def test_a_projection_can_be_read_as_of_any_cursor(tmp_path: Path):
    from factwire.journal import Filter
    from factwire.projection import Projection

    async with running_edge(tmp_path) as edge:
        run = await edge.start("help")
        await edge.run_until(run["runId"])
        thread = run["threadId"]
        projection = Projection(thread)
        epoch = edge.machine.cursor.epoch
        async for batch in edge.machine.journal.read(filter=Filter(thread=thread)):
            for seq, fact in batch.facts():
                projection.apply(fact)
                cursor = f"fw1.{epoch}.{seq:016d}"
                answer = await edge.http.get(
                    f"/v1/threads/{thread}/projection", params={"at": cursor}
                )
                assert answer.content.endswith(b'"state":' + projection.snapshot() + b"}")
        future = await edge.http.get(
            f"/v1/threads/{thread}/projection", params={"at": f"fw1.{epoch}.{9**9:016d}"}
        )
        assert (future.status_code, future.json()["code"]) == (400, "cursor_invalid")


@pytest.mark.requirement("edge.recovery")
async def test_after_a_restart_an_approval_still_waits_and_can_be_answered(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("approve")
        approval = await edge.wait_for_approval(run["runId"])
    async with running_edge(tmp_path) as edge:
        still = await edge.wait_for_approval(run["runId"])
        assert still["approvalId"] == approval["approvalId"]
        await edge.decide(still, "allow", argsHash=approval["argsHash"])
        assert (await edge.allow_all(run["runId"]))["status"] == "finished"


LONG = "x" * (QUERY_CHARACTERS + 1)
NAMES_65 = ",".join(f"t{number}" for number in range(QUERY_TYPES + 1))
PROBLEMS: list[tuple[str, Any, int, str]] = [
    ("GET /v1/nothing", None, 404, "not_found"),
    ("PUT /v1/threads", None, 405, "method_not_allowed"),
    ("GET /v1/threads?limit=0", None, 400, "invalid_request"),
    ("GET /v1/threads?limit=x", None, 400, "invalid_request"),
    ("GET /v1/threads?cursor=x", None, 400, "cursor_invalid"),
    ("GET /v1/threads?status=odd", None, 400, "invalid_request"),
    ("POST /v1/threads", {"title": ""}, 400, "invalid_request"),
    ("POST /v1/threads", {"title": 1}, 400, "invalid_request"),
    ("POST /v1/threads", {"projectId": "none"}, 404, "unknown_project"),
    ("POST /v1/runs", {"agentId": "none"}, 400, "unknown_agent"),
    ("POST /v1/runs", {"agentId": "demo", "threadId": "x"}, 404, "unknown_thread"),
    ("POST /v1/runs/x:cancel", {}, 404, "unknown_run"),
    ("POST /v1/facts", {"facts": []}, 400, "batch_size"),
    ("GET /v1/events?cursor=evt_unknown", None, 400, "cursor_invalid"),
    ("GET /v1/events?types=,", None, 400, "invalid_parameter"),
    (f"GET /v1/events?types={NAMES_65}", None, 400, "invalid_parameter"),
    (f"GET /v1/facts?classes={NAMES_65}", None, 400, "invalid_parameter"),
    (f"GET /v1/facts?classes=run,{LONG}", None, 400, "invalid_parameter"),
    (f"GET /v1/events?threadId={LONG}", None, 400, "invalid_parameter"),
    (f"GET /v1/events?cursor={LONG}", None, 400, "invalid_parameter"),
    (f"GET /v1/runs?threadId={LONG}", None, 400, "invalid_parameter"),
    (f"GET /v1/threads?search={LONG}", None, 400, "invalid_parameter"),
    ("GET /v1/tasks/none", None, 404, "unknown_task"),
    ("GET /v1/evidence/none", None, 404, "unknown_evidence"),
    ("GET /v1/evidence/none/verification", None, 404, "unknown_evidence"),
    ("GET /v1/threads/none/evidence-progress", None, 404, "unknown_thread"),
]


@pytest.mark.requirement("edge.rest.problems")
async def test_a_bad_request_gets_a_problem_with_a_stable_code(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        for request_line, body, status, code in PROBLEMS:
            method, _, path = request_line.partition(" ")
            answer = await edge.http.request(method, path, json=body)
            assert (answer.status_code, answer.json()["code"]) == (status, code), request_line
            assert answer.headers["content-type"].startswith("application/problem+json")
            assert answer.json()["traceId"] == answer.headers["x-trace-id"]


def _fact(index: int) -> dict[str, Any]:
    return {
        "id": f"out-{index}",
        "kind": "state",
        "status": "running",
        "title": "run.status",
        "createdAt": "2026-01-01T00:00:00Z",
        "schemaVersion": "factwire-fact/v1",
        "runtimeId": "elsewhere",
        "sequence": index,
        "eventClass": "run.status",
        "threadId": "outside",
        "payload": {"status": "running"},
    }


HIDING = "echo cookie: a=hunter2hunter2A9; touch pwned"


@pytest.mark.requirement("edge.approval.exact")
async def test_a_decision_is_made_from_the_card_and_bound_to_its_hash(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        reader = await edge.post("/v1/tokens", {"name": "Reader", "scopes": ["read"]}, status=201)
        run = await edge.start(HIDING, "shell")
        row = await edge.wait_for_approval(run["runId"])
        path = f"/v1/approvals/{row['approvalId']}/card"
        card = await edge.get(path)
        denied = await edge.http.get(path, headers={"authorization": f"Bearer {reader['token']}"})
        without = await edge.decide(row, "allow", argsHash=None)
        other = await edge.decide(row, "allow", argsHash="sha256:2")
        still = (tmp_path / "workspace" / "pwned").exists()
        allowed = await edge.decide(row, "allow", argsHash=card["argsHash"])
        ended = await edge.run_until(run["runId"])
        missing = await edge.http.get("/v1/approvals/act_none/card")

    assert "| echo cookie: a=⟦masked⟧; touch pwned" in card["shown"]
    assert (card["masks"], "hasOpenSecret" in card) == (1, False)
    assert "hunter2" not in row["shown"]
    assert card["argsHash"] == row["argsHash"]
    codes = [(answer.status_code, answer.json()["code"]) for answer in (without, other, missing)]
    wanted = [(400, "invalid_request"), (409, "approval_changed"), (404, "unknown_approval")]
    assert codes == wanted
    assert denied.status_code == 403
    assert (allowed.status_code, ended["status"], still) == (200, "finished", False)


@pytest.mark.requirement("edge.approval.exact")
async def test_a_request_whose_text_is_gone_is_denied_and_never_allowed(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start(HIDING, "shell")
        row = await edge.wait_for_approval(run["runId"])
    async with running_edge(tmp_path) as edge:
        card = await edge.get(f"/v1/approvals/{row['approvalId']}/card")
        allowed = await edge.decide(row, "allow")
        denied = await edge.decide(row, "deny")

    assert "shown" not in card
    assert "no longer in memory" in card["reason"]
    assert (allowed.status_code, allowed.json()["code"]) == (409, "approval_not_shown")
    assert (denied.status_code, denied.json()["status"]) == (200, "denied")


@pytest.mark.requirement("edge.approval.exact")
async def test_what_an_outside_runtime_asks_is_shown_as_it_was_sent(tmp_path: Path):
    ids = {"runtimeId": "own", "threadId": "mine", "turnId": "trn", "runId": "run_own"}
    payload = {"actionType": "tool_approval", "prompt": "Go?", "command": HIDING}
    facts: list[dict[str, Any]] = [
        {"id": "a1", "type": "turn.started", "payload": {}, **ids},
        {"id": "a2", "type": "action.required", "actionId": "act", "payload": payload, **ids},
    ]
    async with running_edge(tmp_path) as edge:
        await edge.post("/v1/facts", {"facts": facts})
        [row] = (await edge.get("/v1/approvals"))["items"]
        card = await edge.get("/v1/approvals/act/card")
    async with running_edge(tmp_path) as edge:
        gone = await edge.get("/v1/approvals/act/card")
        refused = await edge.decide(row, "allow")
        repeated = await edge.post("/v1/facts", {"facts": facts})
        again = await edge.get("/v1/approvals/act/card")
        allowed = await edge.decide(row, "allow")

    assert "echo cookie: a=⟦masked⟧; touch pwned" in card["shown"]
    assert card["argsHash"] == row["argsHash"]
    assert ("shown" in gone, refused.json()["code"]) == (False, "approval_not_shown")
    assert (repeated["repeated"], again) == (2, card)
    assert allowed.status_code == 200


def _ask(thread: str, action: str, command: str, *, fact_id: str = "") -> list[dict[str, Any]]:
    """A turn of an outside runtime that asks whether a command may run."""
    ids = {"runtimeId": "own", "threadId": thread, "turnId": "trn", "runId": "run_own"}
    payload = {"actionType": "tool_approval", "prompt": "Go?", "command": command}
    ask = {"id": fact_id or f"{thread}-ask", "type": "action.required", "actionId": action}
    turn: dict[str, Any] = {"id": f"{thread}-turn", "type": "turn.started", "payload": {}, **ids}
    return [turn, {**ask, "payload": payload, **ids}]


@pytest.mark.requirement("edge.approval.exact")
async def test_each_of_two_threads_with_the_same_action_id_has_its_own_card(tmp_path: Path):
    threads = {"one": "act", "two": "act", "t~%": "act", "t": "%~act", "two~act": "act"}
    async with running_edge(tmp_path) as edge:
        for thread, action in threads.items():
            facts = _ask(thread, action, f"echo {thread}")
            assert (await edge.post("/v1/facts", {"facts": facts}))["accepted"] == 2
        rows = (await edge.get("/v1/approvals"))["items"]
        assert sorted(row["threadId"] for row in rows) == sorted(threads)
        own = {each: own_key(each, threads[each]) for each in threads}
        for thread, name in own.items():
            row = await edge.get(f"/v1/approvals/{quote(name)}")
            card = await edge.get(f"/v1/approvals/{quote(name)}/card")
            assert row["threadId"] == thread
            assert f'"echo {thread}"' in card["shown"]
            # As the page names it, which reads the state of one thread.
            named = {**row, "approvalId": name, "runId": own_key(thread, "run_own")}
            decided = await edge.decide(named, "allow", argsHash=card["argsHash"])
            assert (decided.status_code, decided.json()["threadId"]) == (200, thread)
        statuses = [row["status"] for row in (await edge.get("/v1/approvals"))["items"]]
        other = await edge.http.get("/v1/approvals/three~act/card")

    assert statuses == ["approved"] * len(threads)
    assert other.json()["code"] == "unknown_approval"


@pytest.mark.requirement("edge.approval.exact")
@pytest.mark.parametrize("run", ["run_own", "one~run_own", "two~run_own", "run_other"])
async def test_a_request_of_a_run_that_is_not_listed_is_decided_by_either_id(
    tmp_path: Path, run: str
):
    turn, ask = _ask("one", "act", "true")
    async with running_edge(tmp_path) as edge:
        await edge.post("/v1/facts", {"facts": [{**turn, "runId": None}, ask]})
        assert [each["runId"] for each in (await edge.get("/v1/runs"))["items"]] == ["run_trn"]
        row = await edge.get("/v1/approvals/act")
        decided = await edge.decide({**row, "approvalId": "one~act", "runId": run}, "allow")
    assert decided.status_code == (200 if run in ("run_own", "one~run_own") else 404)


@pytest.mark.requirement("edge.approval.exact")
async def test_a_card_of_an_outside_request_shows_what_was_taken_in_and_all_of_it(tmp_path: Path):
    hidden = 'export PASSWORD="a$(./pwn)"'
    ask = _ask("mine", "act", hidden)
    update: dict[str, Any] = {**ask[1], "id": "update", "type": "action.updated"}

    async with running_edge(tmp_path) as edge:
        await edge.post("/v1/facts", {"facts": ask})
        card = await edge.get("/v1/approvals/act/card")
        other_id = _ask("mine", "act", "true", fact_id="other")[1:]
        refused = await edge.http.post("/v1/facts", json={"facts": other_id})
        masked_alike = _ask("mine", "act", hidden.replace("$(./pwn)", "bcdef123456"))
        repeated = await edge.http.post("/v1/facts", json={"facts": masked_alike})
        still = await edge.get("/v1/approvals/act/card")
        later = {**update, "payload": {"expiresAt": "2999-01-01T00:00:00Z"}}
        await edge.post("/v1/facts", {"facts": [later]})
        extended = await edge.get("/v1/approvals/act/card")
        question = {**update, "id": "question", "payload": {"prompt": "Fine?"}}
        await edge.post("/v1/facts", {"facts": [question]})
        changed = await edge.get("/v1/approvals/act/card")
        [row] = (await edge.get("/v1/approvals"))["items"]
        stale = await edge.decide(row, "allow", argsHash=card["argsHash"])
        allowed = await edge.decide(row, "allow", argsHash=changed["argsHash"])

    assert "$(./pwn)" in card["shown"]
    assert refused.status_code == 422
    assert (repeated.status_code, still, extended) == (200, card, card)
    assert changed["prompt"] == "Fine?"
    assert "$(./pwn)" in changed["shown"]
    assert (stale.json()["code"], allowed.status_code) == ("approval_changed", 200)
