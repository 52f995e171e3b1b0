"""What agents ask people to decide, wherever those people are, and what became of each decision."""

__all__: list[str] = []
