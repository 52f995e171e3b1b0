"""A screen that shows somebody's devices, grants, tasks, approvals, notifications and runners:
loaded once over REST, then kept current by events alone.

It knows of events what their documentation says, and shares no code with the Hub.
"""

from typing import Any, Final

from tests.hub.hubs import HubPerson

LISTS: Final = {
    "devices": ("/v1/devices", "deviceId"),
    "edges": ("/v1/edges", "edgeId"),
    "grants": ("/v1/grants", "grantId"),
    "tasks": ("/v1/agent-tasks", "taskId"),
    "approvals": ("/v1/approvals?status=all", "approvalId"),
    "notifications": ("/v1/notifications", "notificationId"),
    "runners": ("/v1/runners", "runnerId"),
}
VOLATILE: Final = ("lastSeenAt", "mirror", "activeAt")
"""When something was last heard of, and how far it is: true when it is read, and not told."""


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)


def _rename(payload: dict[str, Any], *left_out: str) -> dict[str, Any]:
    return {_camel(name): value for name, value in payload.items() if name not in left_out}


class DeviceScreen:
    """What one person sees. `is_partial` says that something has come to be shared with them, or no
    longer is, so that tasks and approvals have to be read again.
    """

    def __init__(self, person_id: str) -> None:
        self.person_id = person_id
        self.as_of = ""
        self.lists: dict[str, dict[str, Any]] = {name: {} for name in LISTS}
        self.is_partial = False

    def __getattr__(self, name: str) -> dict[str, Any]:
        return self.lists[name]

    def apply(self, kind: str, payload: dict[str, Any]) -> None:
        handler = getattr(type(self), "_on_" + kind.replace(".", "_"))
        handler(self, payload)

    def shown(self, *, partial: bool) -> dict[str, Any]:
        """All of it; where it is partial, without what has to be read again."""
        roles = {
            grant["edgeId"]: {"role": grant["role"]}
            for grant in self.grants.values()
            if grant["kind"] == "device" and grant["granteeId"] == self.person_id
        }
        lists = {
            name: {
                key: {each: row[each] for each in row if each not in (*VOLATILE, "role")}
                for key, row in rows.items()
            }
            for name, rows in self.lists.items()
            if not (partial and name in ("tasks", "approvals"))
        }
        for rows in (lists["devices"], lists["edges"]):
            for row in rows.values():
                row.update(roles.get(row["edgeId"], {}))
        for row in lists["grants"].values():
            row["role"] = self.grants[row["grantId"]]["role"]
        return lists

    def _on_device_registered(self, payload: dict[str, Any]) -> None:
        row = _rename(payload, "user_id", "device_type")
        self.devices[payload["device_id"]] = {
            **row,
            "ownerId": payload["user_id"],
            "kind": payload["device_type"],
        }

    def _on_edge_registered(self, payload: dict[str, Any]) -> None:
        device = self.devices[payload["device_id"]]
        for edge_id, edge in list(self.edges.items()):
            if edge["deviceId"] == payload["device_id"]:
                del self.edges[edge_id]
        self.edges[payload["edge_id"]] = {
            **_rename(payload, "user_id"),
            "ownerId": payload["user_id"],
            "deviceName": device["name"],
            "online": device["online"],
        }

    def _on_device_kicked(self, payload: dict[str, Any]) -> None:
        if payload["reason"] == "replaced":
            # A newer socket of the same device; nothing else has changed.
            return
        device_id = payload["device_id"]
        self.devices.pop(device_id, None)
        for edge_id, edge in list(self.edges.items()):
            if edge["deviceId"] == device_id:
                edge["online"] = False
                if payload["reason"] == "grant_revoked":
                    del self.edges[edge_id]

    def _on_device_online(self, payload: dict[str, Any]) -> None:
        if payload["device_type"] != "screen":
            self.devices[payload["device_id"]]["online"] = True

    def _on_device_offline(self, payload: dict[str, Any]) -> None:
        if payload["device_type"] != "screen":
            self.devices[payload["device_id"]]["online"] = False

    def _on_edge_online(self, payload: dict[str, Any]) -> None:
        self.edges[payload["edge_id"]]["online"] = True

    def _on_edge_offline(self, payload: dict[str, Any]) -> None:
        self.edges[payload["edge_id"]]["online"] = False

    def _on_grant_created(self, payload: dict[str, Any]) -> None:
        kinds = {"thread_id": "thread", "target_id": "target"}
        kind = next((kinds[name] for name in kinds if name in payload), "device")
        self.grants[payload["grant_id"]] = {
            **_rename(payload, "user_id", "user_name"),
            "granteeId": payload["user_id"],
            "granteeName": payload["user_name"],
            "kind": kind,
        }
        self.is_partial |= payload["user_id"] == self.person_id

    def _on_grant_revoked(self, payload: dict[str, Any]) -> None:
        del self.grants[payload["grant_id"]]
        self.is_partial |= payload["user_id"] == self.person_id

    def _on_agent_stream(self, payload: dict[str, Any]) -> None:
        if payload["event_type"] == "task.updated":
            self.tasks[payload["task_id"]] = payload["payload"]

    def _on_agent_done(self, payload: dict[str, Any]) -> None:
        assert self.tasks[payload["task_id"]]["status"] == "done"

    def _on_agent_failed(self, payload: dict[str, Any]) -> None:
        assert self.tasks[payload["task_id"]]["error"] == payload["error"]

    def _on_approval_updated(self, payload: dict[str, Any]) -> None:
        self.approvals[payload["approval_id"]] = payload["approval"]

    def _on_notification_new(self, payload: dict[str, Any]) -> None:
        self.notifications[payload["notification_id"]] = _rename(payload)

    def _on_notification_updated(self, payload: dict[str, Any]) -> None:
        changed = {name: value for name, value in _rename(payload).items() if value is not None}
        self.notifications[payload["notification_id"]] |= changed

    def _on_cloud_runner_allocated(self, payload: dict[str, Any]) -> None:
        self.runners[payload["runnerId"]] = payload["runner"]

    _on_cloud_runner_stopping = _on_cloud_runner_allocated
    _on_cloud_runner_released = _on_cloud_runner_allocated


async def load_device_screen(person: HubPerson) -> DeviceScreen:
    """Everything that somebody sees, read over REST; again, if something came in between."""
    while True:
        screen, cursors = DeviceScreen(person.person_id), set[str]()
        for name, (path, key) in LISTS.items():
            mark = "&" if "?" in path else "?"
            page = await person.get(f"{path}{mark}limit=200")
            assert "next" not in page
            cursors.add(page["asOf"])
            screen.lists[name] = {row[key]: row for row in page["items"]}
        if len(cursors) == 1:
            screen.as_of = cursors.pop()
            return screen
