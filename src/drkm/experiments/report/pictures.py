"""Figures as data inside the page: drawn with outlines for letters, so that they look the same on every machine."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import dataclass

from drkm.experiments.section import Figure

#: dots an inch of what is rasterised inside a figure
_DPI = 160


@dataclass(frozen=True)
class Picture:
    """An SVG image as a data address, with its size in CSS pixels."""

    address: str
    width: int
    height: int


def picture(figure: Figure) -> Picture:
    """Draw a figure and return it as an image that needs no file."""
    from drkm.plotting import pyplot, style

    buffer = io.BytesIO()
    with style() as plt:
        plt.rcParams["svg.fonttype"] = "path"
        drawn = figure.draw()
        drawn.savefig(buffer, format="svg", dpi=_DPI, metadata={"Date": None})
    pyplot().close(drawn)
    data = buffer.getvalue()
    width, height = _size(data.decode())
    return Picture(f"data:image/svg+xml;base64,{base64.b64encode(data).decode()}", width, height)


def _size(svg: str) -> tuple[int, int]:
    found = re.search(r'<svg[^>]*? width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    if found is None:
        raise ValueError("figure: matplotlib wrote an SVG without a size")
    # 72 points are 96 CSS pixels.
    width, height = (round(float(points) * 96 / 72) for points in found.groups())
    return width, height
