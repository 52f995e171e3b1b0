"""`run`: a program in the workspace, in the sandbox, as facts from its start to its end, with
what it changed as far as a bounded look can tell.
"""

import asyncio
import os
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec

from factwire.facts import Fact, Ref
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.action_cards import read_place
from factwire.runtime.policy import (
    Policy,
    PolicyRequest,
    evaluate,
    follow_links,
    runs_known_programs,
)
from factwire.runtime.processes import (
    InvalidSpec,
    Processes,
    ProcessSpec,
    RunningProcess,
    stream_process_facts,
)
from factwire.runtime.sandbox import describe_unenforced_rules
from factwire.runtime.toolbox.file_tools import PASSED_OVER, build_artifact_id, hash_version
from factwire.runtime.toolbox.limits import (
    CHANGED_FILES,
    WATCHED_BYTES,
    WATCHED_FILE_BYTES,
    WATCHED_FILES,
)
from factwire.runtime.toolbox.tool_calls import TOOL_FAILURES, ActiveCall, CallResult, ToolRefused
from factwire.runtime.toolbox.tool_context import (
    PreparedCall,
    ToolContext,
    check_names,
    count_argument,
    text_argument,
)
from factwire.runtime.toolbox.workspace_files import FileRevision, WorkspaceFiles, build_diff

_SHELL_SIGNS: Final = re.compile(r"[|&;<>()$`\\*?\[\]{}~#!\n\r]")
_SHELL_WORDS: Final = frozenset(
    {
        *(".", ":", "!", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done"),
        *("elif", "else", "esac", "eval", "exec", "exit", "export", "fc", "fg", "fi", "for"),
        *("function", "getopts", "hash", "if", "in", "jobs", "local", "read", "readonly"),
        *("return", "set", "shift", "source", "then", "times", "trap", "type", "ulimit", "umask"),
        *("unalias", "unset", "until", "wait", "while"),
    }
)
"""Words that a shell acts on itself; there is no program of that name, or it would do nothing."""


def parse_command(command: Any) -> tuple[tuple[str, ...], str | tuple[str, ...]]:
    """The arguments to run, and the command as the policy is to judge it."""
    if isinstance(command, list):
        argv = tuple(str(word) for word in cast("list[object]", command))
        if not argv or not argv[0]:
            raise ToolRefused("invalid_arguments", "expected a program first, got none")
        return argv, argv
    if not isinstance(command, str) or not command.strip():
        raise ToolRefused("invalid_arguments", "expected a command line or a list of arguments")
    argv = _simple(command)
    return (argv, argv) if argv is not None else (("/bin/sh", "-c", command), command)


def _simple(line: str) -> tuple[str, ...] | None:
    """The words of a line that every reader reads alike; None where a shell is needed."""
    if _SHELL_SIGNS.search(line):
        return None
    try:
        words = tuple(shlex.split(line))
    except ValueError:
        return None
    if not words or not words[0] or "=" in words[0] or words[0] in _SHELL_WORDS:
        return None
    return words


Mark = tuple[int, int, int]
"""Size, time of the last change, and number of a file: what tells one state from another."""


class WorkspaceLook(msgspec.Struct, frozen=True, kw_only=True):
    """The plain files of a workspace; `texts` are those that were small enough to keep."""

    marks: dict[str, Mark]
    texts: dict[str, str]


class ChangedPath(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not what it was."""

    path: str
    kind: Literal["created", "modified", "deleted"]
    before: str | None
    after: str | None

    @property
    def diff(self) -> FileRevision | None:
        """The change as a diff needs it; None where a text is not known."""
        if (self.kind != "created" and self.before is None) or (
            self.kind != "deleted" and self.after is None
        ):
            return None
        return FileRevision(path=self.path, before=self.before, after=self.after or "")


def look_at_workspace(
    files: WorkspaceFiles, own: tuple[str, ...] = (), *, keep: bool
) -> WorkspaceLook | None:
    """The files as they are, with their texts if wanted; None where there are too many. Paths that
    begin as one of `own` are the runtime's.
    """
    marks: dict[str, Mark] = {}
    for seen, entry in enumerate(_entries(files.root, own)):
        if seen >= WATCHED_FILES:
            return None
        path = os.path.relpath(entry.path, files.root)
        with suppress(OSError):
            about = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode) and path.isprintable():
                marks[path] = (about.st_size, about.st_mtime_ns, about.st_ino)
    return WorkspaceLook(marks=marks, texts=_texts(files, marks) if keep else {})


def _entries(root: Path, own: tuple[str, ...]) -> Iterator["os.DirEntry[str]"]:
    """Everything below a folder, one by one, so that whoever has seen enough can stop."""
    waiting = [str(root)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                if f"{entry.path}{os.sep}".startswith(own):
                    continue
                yield entry
                if entry.name not in PASSED_OVER and entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _texts(files: WorkspaceFiles, marks: dict[str, Mark]) -> dict[str, str]:
    texts: dict[str, str] = {}
    left = WATCHED_BYTES
    for path, (size, _, _) in marks.items():
        if size <= WATCHED_FILE_BYTES and size <= left:
            left -= size
            with suppress(ToolRefused):
                texts[path] = files.text(path)
    return texts


def changes(
    files: WorkspaceFiles, before: WorkspaceLook, after: WorkspaceLook
) -> list[ChangedPath]:
    """What is not as it was, by path."""
    old, new = before.marks, after.marks
    found: list[ChangedPath] = []
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) == new.get(path):
            continue
        kind = "created" if path not in old else "deleted" if path not in new else "modified"
        known, text = before.texts.get(path), None
        if kind != "deleted" and new[path][0] <= WATCHED_FILE_BYTES:
            with suppress(ToolRefused):
                text = files.text(path)
        if kind != "modified" or known is None or known != text:
            found.append(ChangedPath(path=path, kind=kind, before=known, after=text))
    return found


async def record_changes(
    call: ActiveCall, found: list[ChangedPath], policy: Policy, workspace: str
) -> None:
    """Say which files changed, each as a version of an artifact."""
    for changed in found[:CHANGED_FILES]:
        readable = _may_read(policy, workspace, changed.path)
        await _record_change(
            call, changed if readable else msgspec.structs.replace(changed, before=None, after=None)
        )


async def _record_change(call: ActiveCall, changed: ChangedPath) -> None:
    payload: dict[str, Any] = {"path": changed.path, "change": changed.kind, "title": changed.path}
    refs: list[str] = []
    if changed.after is not None:
        content = await call.keep(changed.after, "artifact")
        refs.append(content.ref)
        payload |= {
            "mediaType": "text/plain",
            "contentRef": content.ref,
            "versionId": hash_version(content),
        }
    if changed.diff is not None:
        diff = build_diff(changed.diff)
        kept = await call.keep(diff.text, "artifact")
        refs.append(kept.ref)
        payload |= {"diffRef": kept.ref, "addedLines": diff.added, "removedLines": diff.removed}
    call.put(
        "file.changed",
        payload,
        artifact_id=build_artifact_id(call, changed.path),
        ref_ids=tuple(refs),
    )


def _may_read(policy: Policy, workspace: str, path: str) -> bool:
    request = PolicyRequest(tool="read", workspace=workspace, paths=(path,))
    return evaluate(policy, request).decision == "allow"


_SECONDS: Final = 30 * 60
"""How long a program may run if the call does not say."""

_CATEGORIES: Final = {"folder_refused": "outside_workspace", "invalid_spec": "invalid_arguments"}
"""How a process fails → how the call does, where the word is another."""

_ENDS: Final = frozenset(
    {"process.completed", "process.failed", "process.terminated", "sandbox.blocked"}
)


async def run(context: ToolContext, args: dict[str, Any]) -> PreparedCall:
    """`command` as a line or as a list of arguments, and maybe the folder `cwd` and `seconds`."""
    check_names(args, "command", "cwd", "seconds")
    argv, command = parse_command(args.get("command"))
    folder = await run_disk_work(context.files.locate, text_argument(args, "cwd", "."))
    cwd = str(context.files.root / folder)
    processes = context.resources.processes
    if processes is None:
        raise ToolRefused("programs_unavailable", "this runtime cannot run programs")
    place = read_place(context.workspace, cwd)
    try:
        spec = ProcessSpec(
            argv=argv,
            cwd=cwd,
            folder_id=None if place is None else place.rpartition(", ")[2],
            max_output=context.resources.output_bytes,
            time_limit=count_argument(args, "seconds", _SECONDS),
            sandbox=msgspec.structs.replace(
                context.resources.sandbox, deny=context.resources.policy.denied_paths
            ),
        )
    except InvalidSpec as error:
        raise ToolRefused("invalid_arguments", str(error)) from error

    confined = spec.sandbox.mode != "off" and (await processes.sandbox.probe()).works

    request = PolicyRequest(
        tool="run",
        workspace=context.workspace,
        cwd=cwd,
        command=command,
        place=place,
        confined=confined,
    )
    request = await run_disk_work(follow_links, request)
    # What such a program starts by itself, as tar does with gzip, is not the agent's either.
    spec = msgspec.structs.replace(spec, own_path=runs_known_programs(request))

    async def perform(call: ActiveCall) -> CallResult:
        if not confined:
            _warn_unenforced(context, call, spec)
        return await _Run(context, processes, spec, call).run_to_end()

    return PreparedCall(request=request, prompt="Run this command?", perform=perform)


def _warn_unenforced(context: ToolContext, call: ActiveCall, spec: ProcessSpec) -> None:
    """Say once in a turn which rules no sandbox enforces."""
    if spec.sandbox.deny and not context.warned:
        context.warned = True
        message = describe_unenforced_rules(spec.sandbox.deny)
        call.put("runtime.warning", {"code": "path_rules_not_enforced", "message": message})


class _Run:
    """One program, its output gathered and its end understood."""

    def __init__(
        self, context: ToolContext, processes: Processes, spec: ProcessSpec, call: ActiveCall
    ) -> None:
        self._context = context
        self._processes = processes
        self._spec = spec
        self._call = call
        self._process: RunningProcess | None = None
        self._pieces: list[str] = []
        self._ref: Ref | None = None

    async def run_to_end(self) -> CallResult:
        own = self._context.resources.unwatched
        before = await run_disk_work(look_at_workspace, self._context.files, own, keep=True)
        done = await self._run()
        after = None
        if before is not None:
            after = await run_disk_work(look_at_workspace, self._context.files, own, keep=False)
        if before is None or after is None:
            return msgspec.structs.replace(done, data={**done.data, "filesWatched": False})
        found = await run_disk_work(changes, self._context.files, before, after)
        await record_changes(
            self._call, found, self._context.resources.policy, self._context.workspace
        )
        paths = [changed.path for changed in found[:CHANGED_FILES]]
        payload = {"changedFiles": len(found), "paths": paths} if found else {}
        return msgspec.structs.replace(done, data={**done.data, **payload})

    async def _run(self) -> CallResult:
        # Before the program runs: if we are killed now, nobody takes the approval for unused.
        await self._call.mark_applied()
        running: Any = stream_process_facts(
            self._processes,
            self._spec,
            mint=self._call.host.mint,
            scope=self._call.scope,
            tool_call_id=self._call.call_id,
            on_start=self._begin,
        )
        ended: Fact | None = None
        try:
            async with aclosing(running) as facts:
                async for fact in facts:
                    self._call.host.emit(fact)
                    await self._take_fact(fact)
                    ended = fact if fact.event_class in _ENDS else ended
        except asyncio.CancelledError:
            self._record_kill()
            raise
        finally:
            if self._process is not None:
                self._context.running.discard(self._process)
        return self._build_result(ended)

    def _record_kill(self) -> None:
        """Say that a program is gone that was not let run to its end."""
        if self._process is not None:
            killed = {"status": "cancelled", "stoppedBy": "kill"}
            self._call.put("process.terminated", killed, process_id=self._process.process_id)

    def _begin(self, process: RunningProcess) -> None:
        self._process = process
        self._context.running.add(process)

    async def _take_fact(self, fact: Fact) -> None:
        if fact.event_class == "process.output":
            self._pieces.append(str(fact.payload.get("text", "")))
            if "outputRef" in fact.payload:
                self._ref = msgspec.convert(fact.payload["outputRef"], Ref)
        elif fact.event_class == "process.started" and self._context.stopping.is_set():
            # It was started while it was told to stop.
            await self._stop()

    async def _stop(self) -> None:
        if self._process is not None:
            await self._process.stop("cancelled")

    def _build_result(self, ended: Fact | None) -> CallResult:
        payload = ended.payload if ended is not None else {}
        code = payload.get("exitCode")
        category = _category(ended)
        return CallResult(
            text="".join(self._pieces),
            summary=_summary(payload, category),
            data={"exitCode": code, "truncated": self._ref is not None},
            category=category,
            exit_code=code,
            ref=self._ref,
        )


def _category(ended: Fact | None) -> str | None:
    if ended is None or ended.event_class == "process.terminated":
        category = None if ended is None else ended.payload.get("failureCategory")
        return category or "cancelled"
    if ended.event_class == "sandbox.blocked":
        return "sandbox_unavailable"
    category = ended.payload.get("failureCategory")
    return _CATEGORIES.get(category, category) if isinstance(category, str) else None


def _summary(payload: dict[str, Any], category: str | None) -> str:
    if category == "nonzero_exit":
        return f"exit code {payload.get('exitCode')}"
    if category == "signal":
        return f"ended by {payload.get('signal')}"
    return str(
        payload.get("message") or (TOOL_FAILURES.get(category, category) if category else "ok")
    )
