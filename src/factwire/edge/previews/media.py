"""Media types by the ending of a name; browsers are told to believe them and not to guess.

A table of our own: what a machine's files say of endings differs from one to the next, and a script
that is served as text is a page that does not work.
"""

from typing import Final

UNKNOWN: Final = "application/octet-stream"

_TEXT: Final = {
    "html": "text/html",
    "htm": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "mjs": "text/javascript",
    "cjs": "text/javascript",
    "txt": "text/plain",
    "log": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "xml": "application/xml",
    "xhtml": "application/xhtml+xml",
    "svg": "image/svg+xml",
    "json": "application/json",
    "map": "application/json",
    "jsonl": "application/x-ndjson",
    "ndjson": "application/x-ndjson",
    "webmanifest": "application/manifest+json",
    "vtt": "text/vtt",
    "ics": "text/calendar",
}
_BYTES: Final = {
    "png": "image/png",
    "apng": "image/apng",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
    "bmp": "image/bmp",
    "ico": "image/x-icon",
    "mp3": "audio/mpeg",
    "m4a": "audio/mp4",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "mp4": "video/mp4",
    "m4v": "video/mp4",
    "webm": "video/webm",
    "ogv": "video/ogg",
    "mov": "video/quicktime",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "ttf": "font/ttf",
    "otf": "font/otf",
    "wasm": "application/wasm",
    "pdf": "application/pdf",
    "zip": "application/zip",
    "gz": "application/gzip",
    "glb": "model/gltf-binary",
}


def media_type(name: str) -> str:
    """What a file is, by its name; text is UTF-8."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    if ending in _TEXT:
        return f"{_TEXT[ending]}; charset=utf-8"
    return _BYTES.get(ending, UNKNOWN)


def is_page(kind: str) -> bool:
    """Whether a browser shows it as a document that loads others."""
    return kind.startswith(("text/html", "application/xhtml+xml"))
