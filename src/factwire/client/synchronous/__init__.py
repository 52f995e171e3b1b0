"""The client for programs that wait."""

from factwire.client.synchronous.client import Client
from factwire.client.synchronous.content import Content
from factwire.client.synchronous.pages import Pages
from factwire.client.synchronous.streams import Stream

__all__ = ["Client", "Content", "Pages", "Stream"]
