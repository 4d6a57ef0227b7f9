"""Figures embedded in the page, with letters as outlines, so that they look the same on every machine."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass

from drkm.experiments.section import Figure

#: dots per inch of the rasterised parts of a figure
_DPI = 160


#: file formats of figures and their media types
MEDIA = {"svg": "image/svg+xml", "pdf": "application/pdf"}


@dataclass(frozen=True)
class Picture:
    """A figure as files by format, with its size in CSS pixels."""

    files: Mapping[str, bytes]
    width: int
    height: int

    def address(self, kind: str) -> str:
        """Return a file as a data URL."""
        return f"data:{MEDIA[kind]};base64,{base64.b64encode(self.files[kind]).decode()}"


def picture(figure: Figure) -> Picture:
    """Draw a figure and return it as an image in memory."""
    from drkm.plotting import pyplot, save_undated, style

    files = {}
    with style() as plt:
        plt.rcParams["svg.fonttype"] = "path"
        drawn = figure.draw()
        for kind in MEDIA:
            buffer = io.BytesIO()
            save_undated(drawn, kind, buffer, dpi=_DPI)
            files[kind] = buffer.getvalue()
    pyplot().close(drawn)
    return Picture(files, *_size(files["svg"].decode()))


def _size(svg: str) -> tuple[int, int]:
    found = re.search(r'<svg[^>]*? width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    if found is None:
        raise ValueError("figure: matplotlib wrote an SVG without a size")
    # 72 points are 96 CSS pixels.
    width, height = (round(float(points) * 96 / 72) for points in found.groups())
    return width, height
