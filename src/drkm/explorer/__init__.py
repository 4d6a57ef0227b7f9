"""The explorer: one HTML page that shows what a model learned, written to a file or served live."""

from drkm.explorer.content import record
from drkm.explorer.page import page, write_page
from drkm.explorer.subject import Subject

__all__ = ["Subject", "page", "record", "write_page"]
