from factwire.sources.observe import observe as observe
from factwire.sources.observe import thread as thread

__version__: str
