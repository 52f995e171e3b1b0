"""What people are told beside their screens, by which channels, and what came of each attempt."""

__all__: list[str] = []
