"""The explorer: one page that shows what a model learned, from data to codes and back, written to a file or served."""

from drkm.explorer.content import record
from drkm.explorer.page import page, write_page
from drkm.explorer.subject import Subject

__all__ = ["Subject", "page", "record", "write_page"]
