"""Routes: HTTP in, work out. Each module is one kind of thing; none decides anything."""

__all__: list[str] = []
