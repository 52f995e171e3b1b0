"""What previews, worktrees and the paths of an Edge promise."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

EDGE_PREVIEW_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *requirements(
        "edge.md Commands",
        {
            "edge.preview.served": "A folder of a run is served on an origin of its own, by type.",
            "edge.preview.facts": "A preview is told as ready and as stopped, and made once a key.",
            "edge.preview.stops": "A preview ends when told, idle, with its thread or its Edge; a "
            "later start tells as stopped what was left as ready.",
            "edge.preview.limits": "No more previews than may be are served at once.",
            "edge.preview.address": "Only its address opens a preview, on a host the Edge knows.",
            "edge.preview.browser": "A page is kept to its own folder and only read; two previews "
            "are two origins.",
            "edge.preview.ranges": "A part of a file can be asked for; a cut one is never whole.",
            "edge.preview.paths": "Nothing outside the folder, hidden or the Edge's own is served.",
        },
    ),
    *requirements(
        "guarantees.md S10",
        {
            "edge.paths.ids": "A hostile id or path is refused by a code wherever one is taken.",
            "edge.paths.races": "A folder that is swapped for a link leads nobody outside.",
        },
    ),
    *requirements(
        "edge.md Runs",
        {
            "edge.worktree.run": "A run may work in a fresh git worktree, and its diff is its own; "
            "without one the diff says that it is the workspace's.",
            "edge.worktree.unavailable": "Where no worktree can be made, a run is refused.",
            "edge.worktree.removed": "A worktree goes when asked, or with its thread.",
            "runtime.worktree.real": "A worktree begins as the last commit and is one to git.",
            "runtime.worktree.diff": "The diff of a worktree has all that was done there.",
            "runtime.worktree.unavailable": "Without a commit there is no worktree, with a reason.",
            "runtime.worktree.removed": "A removed worktree leaves nothing, and others alone.",
        },
    ),
    *requirements(
        "guarantees.md S11",
        {
            "edge.worktree.hostile": "A hostile repository runs nothing by a worktree or a diff.",
            "runtime.worktree.hostile": "No setting, hook, filter or link of a repository acts "
            "while a worktree of it is made, looked at or removed.",
        },
    ),
)
