"""What people say to each other and to agents: friends, chats, messages."""

__all__: list[str] = []
