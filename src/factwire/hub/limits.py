"""Every number that bounds a Hub, each with its reason."""

from typing import Final

DATABASE_CONNECTIONS: Final = 8
"""Connections to the database; SQLite writes on one of them at a time."""

DATABASE_SECONDS: Final = 15.0
"""Seconds that a request waits for a connection, a lock or an answer of the database."""

REQUESTS_PER_MINUTE: Final = 100
"""Requests from one address in a minute."""

LOGINS_PER_MINUTE: Final = 20
"""Sign-ins and refreshes from one address in a minute, each kind for itself."""

REGISTRATIONS_PER_MINUTE: Final = 3
"""Accounts created from one address in a minute."""

COUNTED_ADDRESSES: Final = 16_384
"""Addresses whose requests are counted; those that were quiet the longest are forgotten first."""

HUB_BODY_BYTES: Final = 10_000_000
"""Bytes of a request's body."""

ACCESS_TOKEN_SECONDS: Final = 900
"""Seconds that an access token is valid."""

ACCESS_TOKEN_CHARACTERS: Final = 1_024
"""Characters of an access token that are looked at; those of this Hub have fewer."""

REFRESH_TOKEN_SECONDS: Final = 30 * 24 * 3_600
"""Seconds after its last refresh that a session ends."""

REFRESH_REPEAT_SECONDS: Final = 10
"""Seconds in which a refresh whose answer was lost can be repeated."""

SESSIONS_PER_PERSON: Final = 50
"""Open sessions of one person; a further sign-in ends the oldest."""

PASSWORD_CHARACTERS: Final = 12
"""Minimum number of characters of a password."""

PASSWORD_CHARACTERS_MOST: Final = 1_000
"""Maximum number of characters of a password; hashing a longer one would only cost time."""

PASSWORDS_AT_ONCE: Final = 2
"""Passwords that are hashed at the same time; each takes the memory that its parameters name."""

PERSON_NAME_CHARACTERS: Final = 64
"""Characters of a person's name."""

USER_AGENT_CHARACTERS: Final = 200
"""Characters of a client's name that are kept with a session."""

FIRST_ADMIN_SECONDS: Final = 24 * 3_600
"""Seconds that the link for the first admin is valid; the next start prints a new one."""

INVITATION_SECONDS: Final = 7 * 24 * 3_600
"""Seconds that an invitation is valid by default."""

INVITATION_SECONDS_MOST: Final = 365 * 24 * 3_600
"""Maximum number of seconds that an invitation is valid."""

INVITATION_USES_MOST: Final = 1_000
"""Maximum number of accounts that one invitation creates."""
