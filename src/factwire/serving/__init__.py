"""The server base: what every Factwire server stands on, whichever machine or people it serves.

Framework and problems, OpenAPI, paging, idempotency, guard, streams, observing and logs. Nothing
here knows an agent or a run that is under way; that is `edge`.
"""

__all__: list[str] = []
