"""The client for programs that await."""

from factwire.client.asynchronous.client import AsyncClient
from factwire.client.asynchronous.content import AsyncContent
from factwire.client.asynchronous.pages import AsyncPages
from factwire.client.asynchronous.streams import AsyncStream

__all__ = ["AsyncClient", "AsyncContent", "AsyncPages", "AsyncStream"]
