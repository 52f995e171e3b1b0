"""Every number that bounds a process, each with its reason."""

from typing import Final

OUTPUT_CAP: Final = 1024 * 1024
"""Bytes of output, both streams together, that a run records in facts; the rest is in its log."""

BATCH_BYTES: Final = 8 * 1024
"""Bytes of one piece of output: a chatty program becomes few facts, none of them big."""

BATCH_SECONDS: Final = 0.05
"""Seconds that output is held to be combined with more; too short for a person to notice."""

READ_BYTES: Final = 64 * 1024
"""Bytes read from a pipe at once, which is the capacity of a Linux pipe."""

PROTOCOL_BYTES: Final = 256 * 1024
"""Bytes of a protocol that wait for its reader before the program has to wait as well."""

INTERRUPT_SECONDS: Final = 10.0
"""Seconds that a program gets to end after its own protocol asked it to."""

TERMINATE_SECONDS: Final = 5.0
"""Seconds between SIGTERM and SIGKILL of the group."""

KILL_SECONDS: Final = 10.0
"""Seconds after SIGKILL until a program counts as stuck in the kernel."""

LINGER_SECONDS: Final = 1.0
"""Seconds that output may continue after the program has ended, before remaining writers are
killed."""

TIME_LIMIT: Final = 30 * 60.0
"""Seconds that a program may run unless its spec says otherwise."""

ARGUMENTS: Final = 4_096
"""Arguments of one program; a longer list belongs in a file or on standard input."""

LOG_READ_BYTES: Final = 1024 * 1024
"""Bytes of a log that one read returns; to get more, read again from the next offset."""

REAP_ROUNDS: Final = 50
"""Times that the reaper looks again for processes that a dying group has forked."""

SANDBOX_POLL_SECONDS: Final = 0.02
"""Seconds between two looks at what still runs in a sandbox that is to end; only a stop looks."""
