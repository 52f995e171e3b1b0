"""The workbench as an Edge serves it: files, headers, and the way in."""

from factwire.edge.workbench.bundle import Bundle, PageFile, built_bundle, read_bundle
from factwire.edge.workbench.entrance import keep_entrance, kept_link, signed_in
from factwire.edge.workbench.policy import content_policy, page_policy
from factwire.edge.workbench.site import Workbench

__all__ = [
    "Bundle",
    "PageFile",
    "Workbench",
    "built_bundle",
    "content_policy",
    "keep_entrance",
    "kept_link",
    "page_policy",
    "read_bundle",
    "signed_in",
]
