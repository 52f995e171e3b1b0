"""What an Edge does when it is asked to: each module one kind of thing, without HTTP."""

__all__: list[str] = []
