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

ENDED_SESSION_SECONDS: Final = 3_600
"""Seconds that the row of a session outlives it, by which its open sockets are found and closed."""

SESSIONS_PER_PERSON: Final = 50
"""Open sessions of one person; a further sign-in ends the oldest."""

SESSION_USE_SECONDS: Final = 60
"""Seconds between two notes of when a session was last used."""

RECENT_SIGN_IN_SECONDS: Final = 600
"""Seconds after signing in that somebody may add or remove a way to sign in."""

CEREMONY_SECONDS: Final = 300
"""Seconds in which signing in with a passkey or a provider, once begun, must be finished."""

CEREMONY_CHARACTERS: Final = 2_048
"""Characters of what a client keeps between the two halves of that; ours are shorter."""

METHODS_PER_PERSON: Final = 20
"""Passkeys of one person, and identities at providers, each."""

METHOD_NAME_CHARACTERS: Final = 64
"""Characters of a passkey's name, and of what an identity is shown as."""

CREDENTIAL_CHARACTERS: Final = 65_536
"""Characters of what a browser says of a passkey; without an attestation it is far less."""

PROVIDER_SECONDS: Final = 10.0
"""Seconds that an identity provider has for each answer."""

PROVIDER_BYTES: Final = 262_144
"""Bytes of an answer of an identity provider that are read."""

PROVIDER_CACHE_SECONDS: Final = 3_600
"""Seconds that the addresses and keys of an identity provider are used before they are read
again."""

PROVIDER_KEYS_SECONDS: Final = 60
"""Seconds between two readings of a provider's keys for the sake of one that is not among them."""

PROVIDER_LEEWAY_SECONDS: Final = 60
"""Seconds by which the clock of an identity provider may differ."""

PROVIDER_NAME_TRIES: Final = 20
"""Names that are tried for a new account, with a number, where somebody has the name already."""

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

FOLLOWED_FACTS: Final = 500
"""Facts of a mirror that a follower takes in one transaction."""

FOLLOWER_PAUSE_SECONDS: Final = 1.0
"""Seconds after which a mirror is read again that could not be read."""

NOTIFICATION_SECONDS: Final = 7 * 24 * 3_600
"""Seconds that a notification is sent for, unless what it is about expires sooner."""

NOTIFICATION_TITLE_CHARACTERS: Final = 120
"""Characters of the title of a notification."""

FALLBACK_SECONDS: Final = 60
"""Seconds without an acknowledgement after which the next channel is used."""

NOTIFICATION_ATTEMPTS: Final = 6
"""Attempts to send a notification by one channel before that has failed."""

NOTIFICATION_PAUSE_SECONDS: Final = 5
"""Seconds before a notification is sent again, doubled after each further attempt."""

NOTIFICATION_PAUSE_SECONDS_MOST: Final = 3_600
"""Maximum number of seconds before a notification is sent again."""

NOTIFICATION_CLAIM_SECONDS: Final = 120
"""Seconds that one process has a notification in hand; after a crash, another one sends it then."""

NOTIFICATIONS_AT_ONCE: Final = 16
"""Notifications that are sent at the same time."""

SENDER_POLL_SECONDS: Final = 1.0
"""Seconds after which the queue of notifications is looked at again."""

PUSH_TOKEN_SECONDS: Final = 12 * 3_600
"""Seconds that the token for a push service is valid; RFC 8292 allows 24 hours."""

TARGETS_PER_PERSON: Final = 20
"""Push subscriptions of one person; as many webhooks, and as many mail addresses."""

MAIL_CODE_SECONDS: Final = 3_600
"""Seconds in which a mail address is confirmed by the code that was sent to it."""

MAIL_CODE_ATTEMPTS: Final = 5
"""Wrong codes after which a new one has to be sent."""

MAILS_PER_MINUTE: Final = 3
"""Confirmations by mail that one address asks for in a minute."""

MAIL_SECONDS: Final = 20.0
"""Seconds for the whole conversation with the mail server."""

CARD_SECONDS: Final = 10
"""Seconds that somebody who wants to decide waits for the device to show what it asks."""

APPROVERS_MOST: Final = 20
"""People that a rule can ask for before something is allowed."""

APPROVAL_SHOWN_CHARACTERS: Final = 64 * 1024
"""Characters of what an approval shows that are kept beside its mirror; a longer one is read from
the device."""

APPROVAL_REASON_CHARACTERS: Final = 2_000
"""Characters of the reason for a decision."""

TASK_PROMPT_CHARACTERS: Final = 30_000
"""Characters of a task's prompt: at four bytes each, two of them fit into what an Edge's socket
takes at once."""

TASK_NAME_CHARACTERS: Final = 200
"""Characters of an agent's name and of ids of an Edge."""

TASK_PATH_CHARACTERS: Final = 4_096
"""Characters of a folder in which a task works."""

TASK_PARAMS_BYTES: Final = 8_192
"""Bytes of the parameters for a model that a task brings, as JSON."""

TASKS_QUEUED: Final = 200
"""Tasks that may wait for one device."""

TASK_WAIT_SECONDS: Final = 24 * 3_600
"""Seconds that a task waits for its device by default; then it expires."""

TASK_WAIT_SECONDS_MOST: Final = 30 * 24 * 3_600
"""Maximum number of seconds that a task waits for its device."""

TASK_SECONDS: Final = 12 * 3_600
"""Seconds that a task may take by default once its device has it; then it is stopped."""

TASK_SECONDS_MOST: Final = 7 * 24 * 3_600
"""Maximum number of seconds that a task may take."""

TASK_SILENCE_SECONDS: Final = 90
"""Seconds without a word of its Edge after which the status of a task is unknown: three
heartbeats."""

TASK_ANSWER_CHARACTERS: Final = 20_000
"""Characters of an agent's answer that a chat shows; the thread of the Edge has all of it."""

STREAM_LATE_SECONDS: Final = 60
"""Seconds after the end of a run in which more may come of it, such as its usage."""

END_WAIT_SECONDS: Final = 10
"""Seconds that `agent.done` or `agent.failed` waits for the last events of its run, which the
mirror brings."""

STREAM_LOST_SECONDS: Final = 7 * 24 * 3_600
"""Seconds after the end of a task in which the last events of its run may be uploaded."""

STREAM_EVENTS: Final = 200
"""Events of a run that are written in one transaction."""

STREAM_PAYLOAD_BYTES: Final = 48 * 1024
"""Bytes of an event's payload that a socket is sent; of a larger one, only its size."""

DELIVERY_RETRY_SECONDS: Final = 2.0
"""Seconds after which a delivery that was not acknowledged is sent again; each time twice as
long."""

DELIVERY_RETRY_SECONDS_MOST: Final = 30.0
"""The longest pause before a delivery is sent again."""

DELIVERY_ATTEMPTS: Final = 20
"""Times that a delivery is sent before it becomes a dead letter: some eight minutes without an
answer of a device that is connected."""

DISPATCHES_IN_FLIGHT: Final = 32
"""Tasks that a device is sent before it has acknowledged the first."""

DELIVERIES_AT_ONCE: Final = 100
"""Deliveries that are read and sent at a time."""

RELAYS_OPEN: Final = 50
"""Relayed requests of one person that may wait for one device."""

STOP_SECONDS: Final = 24 * 3_600
"""Seconds after which a task that is to stop is closed although its device has not confirmed that;
what the device reports later still counts."""

STOP_SECONDS_MOST: Final = 7 * 24 * 3_600
"""Seconds that a request to stop a task waits for its device."""

DECISION_SECONDS: Final = 24 * 3_600
"""Seconds that a decision waits for its device."""

RELAY_SECONDS: Final = 30
"""Seconds that a relayed request waits for the Edge's answer."""

TASK_POLL_SECONDS: Final = 0.5
"""Seconds after which somebody who waits for the end of a task is told of it."""

MIRRORED_SECONDS: Final = 5
"""Seconds that the answer to a command waits until the mirror shows what the command did."""

RELAY_QUEUED_SECONDS: Final = 3_600
"""Seconds that a relayed request waits for its device where the client prefers that."""

RELAY_BODY_BYTES: Final = 40 * 1024
"""Bytes of the body of a relayed request; with all else it fits into a frame."""

RELAY_ANSWERS_SECONDS: Final = 600
"""Seconds that the answer to a relayed request is kept; after that, the device is asked for it."""

LINK_TICK_SECONDS: Final = 0.5
"""Seconds between looks for deliveries that another process of the Hub has made, or that are
due."""

AUTHORIZATION_SECONDS: Final = 300
"""Seconds in which a device that asks to join, or a screen that asks to be signed in, must be
confirmed and have collected its token."""

AUTHORIZATIONS_OPEN: Final = 1_000
"""Devices and screens that ask at the same time; with so few, what is guessed is nobody's code."""

AUTHORIZATIONS_PER_MINUTE: Final = 10
"""Devices and screens that ask from one address in a minute."""

POLL_SECONDS: Final = 3
"""Seconds that a device is told to wait between two questions whether it was confirmed."""

POLL_GRACE_SECONDS: Final = 1
"""Seconds that a poll may come early, because clocks and networks are uneven."""

SLOW_DOWN_SECONDS: Final = 5
"""Seconds that are added to the pause of a device that polls too often, as RFC 8628 says."""

POLLS_PER_MINUTE: Final = 60
"""Polls from one address in a minute."""

USER_CODE_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
"""Letters of a code that a person types: none looks like another, and none makes words."""

USER_CODE_CHARACTERS: Final = 8
"""Letters of such a code: with 1,000 in use, one guess in 25 million is somebody's."""

CODE_TRIES_PER_MINUTE: Final = 20
"""Codes that one person, and one address, may try in a minute; and times that one code may be
tried."""

DEVICE_EXCHANGES_PER_MINUTE: Final = 60
"""Exchanges of a device's token from one address in a minute."""

DEVICE_SESSION_SECONDS: Final = 365 * 24 * 3_600
"""Seconds after its last exchange that the token of a device is void."""

DEVICES_PER_PERSON: Final = 100
"""Devices of one person that have joined and are not revoked."""

PAIRINGS_PER_PERSON: Final = 5
"""Codes for further screens of one person that are open at the same time; a new one ends the
oldest."""

DEVICE_NAME_CHARACTERS: Final = 64
"""Characters of the name of a device, a screen or a target."""

DEVICE_TEXT_CHARACTERS: Final = 128
"""Characters of what a device says about itself, each: platform, version, an id."""

DEVICE_AGENTS: Final = 200
"""Agents that a device offers."""

AGENT_NAME_CHARACTERS: Final = 100
"""Characters of the name of an agent."""

GRANTS_PER_PERSON: Final = 1_000
"""Grants of one person that hold at the same time."""

UPLOADS_PER_MINUTE: Final = 12_000
"""Uploads from one address in a minute: most are a few facts of a run that is live."""

POSITION_SECONDS: Final = 5.0
"""Seconds between two times that the positions of mirrors are written down."""

ACCESS_CHECK_SECONDS: Final = 0.4
"""Seconds between two looks for sessions and grants that ended, whose streams are closed then."""

BLOB_BYTES: Final = 4 * 1024 * 1024 * 1024
"""Bytes of one content that an Edge uploads."""

UPLOAD_BODY_SECONDS: Final = 600.0
"""Seconds in which the body of an upload must have come."""

SOCKET_CONNECTS_PER_MINUTE: Final = 30
"""Sockets that one address opens in a minute, whether they are accepted or not."""

SOCKETS_PER_PERSON: Final = 10
"""Sockets of one person's screens that are open at the same time; a device has one of its own."""

SOCKET_TICKET_SECONDS: Final = 30
"""Seconds in which a ticket for a socket can be used, once."""

FRAMES_PER_SECOND: Final = 10
"""Frames a second that a person's socket may send."""

FRAMES_AT_ONCE: Final = 20
"""Frames that a person's socket may send at once after a pause; so many refused ones end it."""

TYPING_PER_SECOND: Final = 1
"""Times a second that others are told that somebody is typing; more than that is ignored."""

TYPING_AT_ONCE: Final = 3
"""Times that others are told at once, such as for somebody who goes from chat to chat."""

DEVICE_FRAMES_PER_SECOND: Final = 50
"""Frames a second that are read of a device's socket; what comes faster waits in the network."""

DEVICE_FRAMES_AT_ONCE: Final = 200
"""Frames that a device's socket may send at once after a pause, before reading slows down."""

EVENTS_AT_ONCE: Final = 256
"""Events of one read of the log, so that no reader of the database keeps a writer waiting long."""

LOOK_SECONDS: Final = 0.5
"""Seconds after which a Hub looks for what other processes wrote: events, and sessions that ended.
"""

ENDED_OVERLAP_SECONDS: Final = 60
"""Seconds that are looked at again for sessions that ended: the clocks of two processes differ, and
a socket may be about to open."""

DEVICE_SEEN_SECONDS: Final = 30
"""Seconds after which the last time that a connected device was seen is written down again."""

DEVICE_LOST_SECONDS: Final = 120
"""Seconds after which a device that is marked as connected and was not seen counts as gone: its Hub
was ended without being able to say so."""

EVENT_RETENTION_SECONDS: Final = 600
"""Seconds between two removals of events that are older than the operator keeps them."""

EVENTS_REMOVED_AT_ONCE: Final = 1_000
"""Events that are removed in one transaction, so that others can write in between."""

RECORD_RETENTION_SECONDS: Final = 600
"""Seconds between two removals of records that ended longer ago than the operator keeps them."""

RECORDS_REMOVED_AT_ONCE: Final = 500
"""Records of a table that are removed in one transaction."""

FRIENDS: Final = 1_000
"""Friends of one person."""

FRIEND_REQUESTS: Final = 100
"""Requests that one person waits for an answer to, at most, so that nobody can ask everybody."""

LOOKUPS_PER_MINUTE: Final = 20
"""Names that one person looks up in a minute; more would be guessing who is here."""

FRIEND_REQUESTS_PER_MINUTE: Final = 10
"""Requests that one person sends in a minute."""

REQUEST_CHARACTERS: Final = 500
"""Characters of the words that go with a friend request."""

CHATS_PER_PERSON: Final = 1_000
"""Chats that one person is in."""

CHAT_PEOPLE: Final = 1_000
"""People in one chat."""

CHAT_AGENTS: Final = 20
"""Agents in one chat."""

MEMBERS_AT_ONCE: Final = 100
"""People that one request adds to a chat, and members that the news of a chat lists."""

CHAT_NAME_CHARACTERS: Final = 100
"""Characters of the name of a chat."""

CHAT_DESCRIPTION_CHARACTERS: Final = 1_000
"""Characters of the description of a chat."""

MESSAGES_PER_MINUTE: Final = 60
"""Messages that one person sends in a minute."""

CHANGES_PER_MINUTE: Final = 60
"""Edits, pins and the like of one person in a minute, each kind for itself."""

ATTACHMENTS_PER_MINUTE: Final = 20
"""Attachments that one person uploads in a minute."""

MESSAGE_CHARACTERS: Final = 20_000
"""Characters of a message; what an agent says beyond them is in its run."""

CLIENT_MESSAGE_ID_CHARACTERS: Final = 64
"""Characters of the id that a client gives a message."""

MENTIONS: Final = 20
"""Members that one message mentions."""

EDIT_SECONDS: Final = 15 * 60
"""Seconds in which a person can edit what they sent."""

RECALL_SECONDS: Final = 5 * 60
"""Seconds in which a person can recall what they sent; the owner of a group always can."""

PINS: Final = 50
"""Pinned messages of one chat."""

REACTIONS: Final = 50
"""Different reactions to one message."""

EMOJI_CHARACTERS: Final = 32
"""Characters of a reaction; one picture can be a dozen of them."""

ATTACHMENTS: Final = 10
"""Attachments of one message."""

ATTACHMENT_BYTES: Final = 7_400_000
"""Bytes of an attachment; in base64 they fill a body."""

ATTACHMENT_NAME_CHARACTERS: Final = 200
"""Characters of the name of a file."""

UNSENT_SECONDS: Final = 24 * 3_600
"""Seconds after which an attachment that no message names is removed."""

AGENT_EDIT_SECONDS: Final = 1
"""Seconds between two changes of a message that an agent is still writing."""

SEARCH_CHARACTERS: Final = 200
"""Characters of a search."""

SEARCH_WORDS: Final = 20
"""Words of a search."""

WORD_CHARACTERS: Final = 64
"""Characters of a word by which a message is found."""

RUNNER_JOIN_SECONDS: Final = 120
"""Seconds after its command was started in which a runner must have joined."""

RUNNER_LOOK_SECONDS: Final = 5.0
"""Seconds between two looks for runners that are idle, late or to be stopped."""

RUNNER_RESTARTS: Final = 3
"""Times that a runner is started again after its process ended by itself."""

RUNNER_LOG_BYTES: Final = 1_048_576
"""Bytes of a runner's output in one file; there are two of them, and the oldest is lost."""

TEAMS_PER_PERSON: Final = 200
"""Teams that one person may have."""

TEAM_MEMBERS: Final = 50
"""Members of a team."""

TEAM_DEVICES: Final = 20
"""Devices of which a run chooses one for a member."""

TEAM_RUNS_OPEN: Final = 100
"""Runs of one person's teams that are not over."""

TEAM_GOAL_CHARACTERS: Final = 10_000
"""Characters of the goal of a run."""

ROUTE_TEXT_CHARACTERS: Final = 20_000
"""Characters of a text of a decision, such as its instructions; a prompt has room for two."""

ROUTE_CONTEXT_BYTES: Final = 8_192
"""Bytes of the context that a decision hands on, as JSON."""

TEAM_TOKENS: Final = 1_000_000
"""Tokens that a run may use by default."""

TEAM_TOKENS_MOST: Final = 1_000_000_000_000
"""Maximum number of tokens that a run may use."""

BUDGET_SHARE: Final = 0.95
"""Share of its budget after which a run gives no more work."""

ASSIGNMENT_SECONDS: Final = 30 * 60
"""Seconds after which an assignment that has not ended is stopped."""

SAME_ROUTES: Final = 3
"""Times that the same member is given the same work."""

TEAM_TASKS: Final = 20
"""Assignments of one run."""

TEAM_TASKS_ACTIVE: Final = 5
"""Assignments of one run that are worked on at a time."""

TEAM_TASK_DEPTH: Final = 3
"""How deep tasks are nested in tasks."""

SUPERVISOR_SECONDS: Final = 10 * 60
"""Seconds that a supervising agent has for one turn, from the moment that it is asked."""

SUPERVISOR_ATTEMPTS: Final = 3
"""Turns in a row without an accepted decision, after which a run waits for a person."""

SUPERVISOR_TURNS: Final = 100
"""Turns of one run's supervising agent, after which the run waits for a person."""

SUPERVISOR_CONTEXT_BYTES: Final = 24_576
"""Bytes of what a supervising agent is shown of its run, as JSON; with the prompt, which has it
too, it fits into what an Edge's socket takes at once."""

TEAM_TICK_SECONDS: Final = 0.5
"""Seconds between looks for assignments that are due, and for events of teams that another process
of the Hub has written."""

TEAM_EVENTS_AT_ONCE: Final = 200
"""Events of teams that are made into facts in one append."""
