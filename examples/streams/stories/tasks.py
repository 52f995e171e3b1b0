"""Tasks and jobs: attempts, retries, waits, dependencies, and every way in which work can end."""

from typing import Any

from .recorder import Recorder, story


def _task(name: str) -> dict[str, Any]:
    return {"task_id": f"tsk_{name}"}


@story(
    "A task that took two attempts, step by step, and was put away when it was done.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 5, "nodes": 4, "edges": 3},
        "conversation": [
            "user: Migrate the settings table.",
            "assistant: Migrated, on the second attempt.",
        ],
        "tasks": {"tsk_migrate": "archived 3/3 [1:failed, 2:completed]"},
        "board": {"tsk_migrate": "archived coder"},
    },
)
def task_retried(told: Recorder) -> None:
    told.ask("trn_migrate", "Migrate the settings table.")
    task = _task("migrate")
    named = {"title": "Migrate settings", "objective": "Every row has a version"}
    told.tell("task.created", "Migrate settings", named, **task)
    told.tell("task.profile.resolved", "Profile", {"profile": "careful"}, **task)
    told.tell("task.accepted", "Migrate settings", {"assignee": "coder"}, **task)
    told.tell("task.queued", "Migrate settings", **task)
    told.tell("task.started", "Migrate settings", **task)
    first, second = ({**task, "attempt_id": f"try_migrate_{number}"} for number in (1, 2))
    told.tell("task.attempt.started", "First attempt", {"attempt": 1}, **first)
    told.tell(
        "task.attempt.failed",
        "First attempt",
        {"attempt": 1, "failureCategory": "lock_timeout", "message": "The table was locked."},
        **first,
    )
    told.tell("task.retrying", "Migrate settings", {"reason": "lock_timeout"}, **task)
    told.wait(30)
    told.tell("task.attempt.started", "Second attempt", {"attempt": 2}, **second)
    for done in (1, 2, 3):
        steps = {"progress": {"completedSteps": done, "totalSteps": 3}}
        told.tell("task.progress", "Migrate settings", steps, **task)
    told.tell("task.attempt.completed", "Second attempt", {"attempt": 2}, **second)
    told.tell("task.completed", "Migrate settings", **task)
    told.tell("task.archived", "Migrate settings", **task)
    told.answer("msg_migrate", "Migrated, on the second attempt.")
    told.done()


_BOARD = (
    *("announce", "bench", "build", "docs", "mirror", "notes"),
    *("sign", "site", "stats", "tests", "upload", "version"),
)


@story(
    "A board of open work: each card waits for something else.",
    {
        "status": "running",
        "hydration": "live",
        "unfinished": [*(f"task:tsk_{name}" for name in _BOARD), "turn:trn_release_work"],
        "counts": {"messages": 1, "parts": 1, "timeline": 13, "nodes": 13, "edges": 13},
        "conversation": ["user: Prepare the release."],
        "tasks": {
            "tsk_notes": "draft",
            "tsk_version": "accepted",
            "tsk_build": "queued",
            "tsk_sign": "preparing",
            "tsk_docs": "waiting_input input",
            "tsk_upload": "waiting_permission permission",
            "tsk_bench": "waiting_resource resource",
            "tsk_announce": "blocked",
            "tsk_site": "paused lunch",
            "tsk_mirror": "retrying mirror_down",
            "tsk_stats": "stale",
            "tsk_tests": "running 4/9",
        },
        "board": {"tsk_announce": "blocked [tsk_upload]"},
    },
)
def task_board(told: Recorder) -> None:
    told.ask("trn_release_work", "Prepare the release.")
    told.tell("task.created", "Release notes", {"title": "Release notes"}, **_task("notes"))
    told.tell("task.accepted", "Version", **_task("version"))
    told.tell("task.queued", "Build", **_task("build"))
    told.tell("task.updated", "Sign", {"status": "preparing"}, **_task("sign"))
    told.tell("task.waiting", "Docs", {"reason": "input"}, **_task("docs"))
    told.tell("task.waiting", "Upload", {"reason": "permission"}, **_task("upload"))
    told.tell("task.waiting", "Benchmark", {"reason": "resource"}, **_task("bench"))
    needs = {"dependsOnTaskId": "tsk_upload", "dependencyStatus": "waiting_permission"}
    told.tell("task.dependency.updated", "Announcement", needs, **_task("announce"))
    told.tell("task.blocked", "Announcement", **_task("announce"))
    told.tell("task.started", "Site", **_task("site"))
    told.tell("task.paused", "Site", {"reason": "lunch"}, **_task("site"))
    told.tell("task.started", "Mirror", **_task("mirror"))
    told.tell("task.retrying", "Mirror", {"reason": "mirror_down"}, **_task("mirror"))
    told.tell("task.updated", "Statistics", {"status": "stale"}, **_task("stats"))
    told.tell("task.started", "Tests", **_task("tests"))
    steps = {"progress": {"completedSteps": 4, "totalSteps": 9}}
    told.tell("task.progress", "Tests", steps, **_task("tests"))


@story(
    "How work can end: done once what it waited for was there, failed, stopped, late, lost.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 8, "nodes": 7, "edges": 7},
        "conversation": [
            "user: Run the nightly chores.",
            "assistant: Two of six chores are done.",
        ],
        "tasks": {
            "tsk_backup": "completed",
            "tsk_verify": "completed",
            "tsk_prune": "failed disk_full",
            "tsk_index": "cancelled",
            "tsk_sync": "timed_out deadline",
            "tsk_mail": "lost",
        },
    },
)
def task_endings(told: Recorder) -> None:
    told.ask("trn_chores", "Run the nightly chores.")
    backup, verify, index = (_task(name) for name in ("backup", "verify", "index"))
    told.tell("task.started", "Backup", **backup)
    needs = {"dependsOnTaskId": "tsk_backup", "dependencyStatus": "running"}
    told.tell("task.dependency.updated", "Verify", needs, **verify)
    told.tell("task.waiting", "Verify", {"reason": "resource"}, **verify)
    told.tell("task.completed", "Backup", **backup)
    there = {"dependsOnTaskId": "tsk_backup", "dependencyStatus": "completed"}
    told.tell("task.dependency.updated", "Verify", there, **verify)
    told.tell("task.resumed", "Verify", **verify)
    told.tell("task.completed", "Verify", **verify)
    told.tell("task.failed", "Prune", {"failureCategory": "disk_full"}, **_task("prune"))
    told.tell("task.started", "Index", **index)
    told.tell("task.cancel_requested", "Index", **index)
    told.tell("task.cancelled", "Index", **index)
    told.tell("task.timed_out", "Sync", {"failureCategory": "deadline"}, **_task("sync"))
    told.tell("task.lost", "Mail", {"message": "Its worker went away."}, **_task("mail"))
    told.answer("msg_chores", "Two of six chores are done.")
    told.done()


def _job(name: str) -> dict[str, Any]:
    return {"job_id": f"job_{name}", "runtime_entity": "automation_job"}


@story(
    "Four jobs: one under way with a failed item, one done, one failed, one stopped.",
    {
        "status": "idle",
        "hydration": "live",
        "unfinished": ["job:job_thumbs"],
        "counts": {"timeline": 4, "nodes": 4},
        "jobs": {
            "job_thumbs": "running 1 done, 1 failed, 1 running of 4",
            "job_links": "completed 1 done, 0 failed, 0 running of 1",
            "job_index": "failed 0 done, 0 failed, 0 running of None",
            "job_sweep": "cancelled 0 done, 0 failed, 0 running of None",
        },
    },
)
def job_items(told: Recorder) -> None:
    thumbs, links = _job("thumbs"), _job("links")
    told.tell("job.created", "Thumbnails", {"title": "Thumbnails", "totalItems": 4}, **thumbs)
    told.tell("job.queued", "Thumbnails", **thumbs)
    told.tell("job.started", "Thumbnails", **thumbs)
    for item in ("a", "b", "c"):
        told.tell("job.item.started", f"Picture {item}", job_item_id=f"item_{item}", **thumbs)
    told.tell("job.item.completed", "Picture a", job_item_id="item_a", **thumbs)
    broken = {"failureCategory": "unreadable"}
    told.tell("job.item.failed", "Picture b", broken, job_item_id="item_b", **thumbs)
    told.tell("job.progress", "Thumbnails", {"progress": 0.5}, **thumbs)
    told.tell("job.started", "Check links", {"totalItems": 1}, **links)
    told.tell("job.item.started", "Page", job_item_id="item_page", **links)
    told.tell("job.item.completed", "Page", job_item_id="item_page", **links)
    told.tell("job.completed", "Check links", **links)
    told.tell("job.failed", "Index", {"failureCategory": "no_space"}, **_job("index"))
    told.tell("job.cancelled", "Sweep", **_job("sweep"))


STORIES = (task_retried, task_board, task_endings, job_items)
