"""A repository whose settings run programs: each leaves a file in `traps` when it was run."""

import os
import subprocess
from pathlib import Path

CALM = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    """Plain git, as anybody would run it."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**CALM, "HOME": str(folder)},
        check=check,
        capture_output=True,
        text=True,
        timeout=280,
    )
    return done.stdout


def repository(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=first")
    return folder


def hostile(folder: Path, traps: Path) -> Path:
    """A repository with a trap behind everything that git may run while it looks at changes."""
    made = repository(folder, {"text.txt": "one\n", "data.bin": "1\n", "filtered.dat": "1\n"})
    module = repository(folder / "module", {"inner.txt": "1\n"})
    git(made, "-c", "advice.addEmbeddedRepo=false", "add", "module")
    git(made, "commit", "--quiet", "--message=module")
    traps.mkdir()

    def trap(name: str) -> str:
        script = traps / f"{name}.sh"
        script.write_text(f"#!/bin/sh\ntouch '{traps}/{name}.sprung'\ncat 2>/dev/null </dev/null\n")
        script.chmod(0o755)
        return str(script)

    included = traps / "included.config"
    included.write_text(f'[filter "sly"]\n\tclean = {trap("included-filter")}\n')
    settings = {
        "core.fsmonitor": trap("fsmonitor"),
        "core.hooksPath": str(traps / "hooks"),
        "core.pager": trap("pager"),
        "pager.diff": trap("pager-diff"),
        "core.sshCommand": trap("ssh"),
        "core.askPass": trap("askpass"),
        "core.editor": trap("editor"),
        "core.alternateRefsCommand": trap("alternate-refs"),
        "credential.helper": trap("credential"),
        "diff.external": trap("external-diff"),
        "diff.driver.textconv": trap("textconv"),
        "diff.driver.command": trap("diff-command"),
        "filter.evil.clean": trap("clean"),
        "filter.evil.smudge": trap("smudge"),
        "filter.evil.required": "true",
        "include.path": str(included),
        "alias.diff-index": f"!{trap('alias')}",
        "remote.origin.url": f"ext::{trap('remote')}",
        "remote.origin.promisor": "true",
        "protocol.ext.allow": "always",
    }
    for name, value in settings.items():
        git(made, "config", "--local", name, value)
    git(module, "config", "--local", "core.fsmonitor", trap("module-fsmonitor"))
    (traps / "hooks").mkdir()
    for hook in ("post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman"):
        (traps / "hooks" / hook).symlink_to(trap(f"hook-{hook}"))
    (made / ".gitattributes").write_text(
        "*.txt diff=driver\n*.dat filter=evil\n*.sly filter=sly\n*.bin diff=driver\n"
    )
    for name in ("text.txt", "data.bin", "filtered.dat", "new.sly"):
        (made / name).write_text("two\n")
    (module / "inner.txt").write_text("2\n")
    return made


def sprung(traps: Path) -> list[str]:
    return sorted(path.stem for path in traps.glob("*.sprung"))
