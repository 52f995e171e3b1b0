"""Asides: classes that say something about a task or a job, but not how it is.

They are written down with their subject and leave its status alone, in timeline and graph alike.
"""

from typing import Final

COUNTED: Final = frozenset({"job.item.started", "job.item.completed", "job.item.failed"})
"""Asides that come by the thousand: the job counts them, and no list names them."""

ASIDE: Final = COUNTED | {"task.profile.resolved", "task.dependency.updated", "task.delegated"}
