"""Every number that bounds a live source, each with its reason."""

from typing import Final

LINE_BYTES: Final = 32 * 1024 * 1024
"""Bytes of one line of a program: agents put whole files and pictures into one, and no more."""

STDERR_CHARACTERS: Final = 2_000
"""Characters of what a program said beside its protocol that explain how it failed."""

FACTS_WAITING: Final = 1_024
"""Facts of a turn that wait to be written before its agent has to wait as well."""

FAREWELL_SECONDS: Final = 1.0
"""Seconds that a program has to end by itself once it is told that nothing more comes."""

START_SECONDS: Final = 60.0
"""Seconds until an agent has to be ready for a turn; one that signs in or fetches takes long."""

VALUE_DEPTH: Final = 24
"""Levels of a value of a program that are told; what lies deeper is told by its `repr`."""

VALUE_ITEMS: Final = 10_000
"""Items of one list or table of a program: more than any screen shows, less than a memory holds."""

VALUE_CHARACTERS: Final = 2_000
"""Characters of the `repr` of an object that has no form in JSON."""

HISTORY_CHARACTERS: Final = 200_000
"""Characters of earlier turns that an SDK's agent is told again when it has forgotten them."""

THREADS_REMEMBERED: Final = 256
"""Threads whose conversation is kept as the SDK has it; an older one is told from its facts."""

IMAGE_BYTES: Final = 10 * 1024 * 1024
"""Bytes of an attached image; the models behind the agents refuse bigger ones."""

DOCUMENT_BYTES: Final = 256 * 1024
"""Bytes of an attached text document; a longer one belongs in the workspace."""

REMOTE_SILENCE_SECONDS: Final = 600.0
"""Seconds that a remote agent may say nothing in a stream, not even a comment, while it works."""

REFUSAL_CHARACTERS: Final = 500
"""Characters of what a remote agent says when it refuses a request that explain the failure."""

REFUSAL_BYTES: Final = 64 * 1024
"""Bytes that are read of such an answer; one without end is left there."""

HEARTBEAT_SECONDS: Final = 120.0
"""Seconds in which a server of our own says nothing, though it beats every ten: it hangs."""
