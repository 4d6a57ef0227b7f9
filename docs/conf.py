"""The documentation site: `make docs` builds it from these pages, the docstrings and the examples."""

from __future__ import annotations

import os
import re
import warnings

from drkm import __version__

# Examples are run one after the other, and results must not depend on how many cores there are.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Examples end with plt.show(), which cannot open a window here.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

project = "drkm"
author = "The drkm developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
# Code in docstrings stands in single backticks: names are linked where they are known.
default_role = "autolink"

myst_enable_extensions = ["colon_fence", "smartquotes"]
# Quotes in docstrings are those of Python.
smartquotes = False
# Anchors as code hosts make them, so that one link serves both.
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "within_subsection_order": "ExampleTitleSortKey",
    "download_all_examples": False,
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1,
    # Its pages of times ask another host for their script.
    "write_computation_times": False,
    "doc_module": ("drkm",),
    "backreferences_dir": "_build/backreferences",
}

html_theme = "pydata_sphinx_theme"
html_title = "drkm"
html_static_path = ["_static"]
html_css_files = ["drkm.css"]
html_show_sourcelink = False
# Pages with nothing below them need no room for it.
html_sidebars = {"tutorials": []}
html_theme_options = {
    "show_toc_level": 2,
    "show_prev_next": False,
    "navigation_with_keys": True,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_dark_style": "github-dark",
}
copyright = "the drkm developers, MIT licence"


def _lead_to_the_gallery(app: object, page: str, source: list[str]) -> None:
    """Let links to the code of an example, which code hosts show, lead to its page here."""
    source[0] = re.sub(r"\]\(\.\./examples/(\w+)\.py\)", r"](gallery/\1.rst)", source[0])


def _lead_to_pages(app: object, what: str, name: str, member: object, options: object, lines: list[str]) -> None:
    """Let docstrings, which name a page by its file, lead to it."""
    lines[:] = [re.sub(r"\bdocs/([\w-]+)\.md", r":doc:`docs/\1.md </\1>`", line) for line in lines]


def _leave_to_its_own_documentation(
    app: object, what: str, name: str, member: object, skip: bool, options: object
) -> bool | None:
    """Leave out what models inherit from scikit-learn, whose text refers to pages that are not here."""
    return True if str(getattr(member, "__module__", "")).startswith("sklearn.") else None


def setup(app: object) -> None:
    """Register what Sphinx calls."""
    app.connect("autodoc-skip-member", _leave_to_its_own_documentation)
    app.connect("autodoc-process-docstring", _lead_to_pages)
    app.connect("source-read", _lead_to_the_gallery)
