"""The demo agent: scripted words, real work."""

from factwire.runtime.agents.demo.agent import DemoAgent, DemoOptions
from factwire.runtime.agents.demo.themes import THEMES, Theme, help_text, theme_of

__all__ = ["THEMES", "DemoAgent", "DemoOptions", "Theme", "help_text", "theme_of"]
