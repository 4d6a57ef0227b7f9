"""Reading and writing of images: a folder of images is a table with one row per image."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drkm.files._guarded import check_room, reading
from drkm.files._table import Refused, Table
from drkm.files._whole import write_whole_folder

#: Pillow's names for the file formats below; it reads others too, one of them by running another program
FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "GIF", "PPM", "WEBP")
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".gif", ".webp", ".pgm", ".ppm")
#: 16-bit grey values per 8-bit one
SIXTEEN_BITS = 257.0
#: a quarter of a gigabyte in colour; Pillow also treats a larger image as a decompression bomb
MOST_PIXELS = (1 << 28) // 3
#: bytes per pixel while an image is decoded, rotated and converted: 4 in each of Pillow's copies, 3 in numpy's
PIXEL_BYTES = 16
UNREADABLE = "cannot be read as an image"


@dataclass(frozen=True)
class Pictures:
    """How images become rows.

    Attributes
    ----------
    size : height and width to which every image is resized; None requires images of one size
    shape : shape that the model was trained on, which images must have
    grey : whether images are converted to grey
    """

    size: tuple[int, int] | None = None
    shape: tuple[int, ...] | None = None
    grey: bool = False


def pillow() -> Any:
    """Return Pillow, or raise an error that says what to install."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("images need the extra 'plot': pip install 'drkm[plot]'") from error
    return Image


def read_images(path: Path, rule: Pictures) -> Table:
    """Read the images of a folder in the order of their names, or a single one.

    Values are from 0 to 255, except those of floating-point images, whose white is not known.
    """
    files = _files(path)
    images, known = [], True
    for file in files:
        image, floating = _read(path, file, rule)
        images.append(image)
        known = known and not floating
        _check_size(path, file, images, files[0], rule)
        if len(images) == 1:
            # All have the size of the first or are refused; they are held one by one and then as one array.
            check_room(2 * len(files) * images[0].nbytes, f"holds {len(files)} pictures of {_size(images[0].shape)}")
    stack = np.stack(_of_one_kind(path, files, images, rule))
    # A name that is not UTF-8 could be written to no table and no page.
    names = tuple(os.fsencode(file.name).decode("utf-8", "backslashreplace") for file in files)
    return Table(stack.reshape(len(stack), -1), None, names, "file", stack.shape[1:], pictures=known)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = [file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")]
    if not files:
        inner = "; folders in it are not read" if any(file.is_dir() for file in path.iterdir()) else ""
        raise Refused(f"has no images: none of its files ends in {', '.join(SUFFIXES)}{inner}")
    return sorted(files)


def _read(path: Path, file: Path, rule: Pictures) -> tuple[np.ndarray, bool]:
    """Return the pixels of an image, and whether they are floating-point numbers in the file."""
    with nullcontext() if file == path else reading(_named(path, file, "").rstrip(), UNREADABLE, Refused):
        with _opened(file) as image:
            _check_pixels(*image.size)
            # Verifies the checksums of PNG files, which are otherwise ignored, and consumes the image.
            image.verify()
        with _opened(file) as image:
            return _pixels(image, rule), image.mode == "F"


def _opened(file: Path) -> Any:
    """Open an image, reading only its header."""
    Image = pillow()
    # Pillow only warns about images that are refused here, with their size.
    with warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning):
        return Image.open(file, formats=FORMATS)


def _check_pixels(width: int, height: int) -> None:
    """Refuse an image by its declared size, before its pixels are decoded."""
    declared = f"declares {_size((height, width))} pixels"
    if width * height > MOST_PIXELS:
        raise Refused(f"{declared}, more than the {MOST_PIXELS} that are read: shrink it first")
    check_room(PIXEL_BYTES * width * height, declared)


def _of_one_kind(
    path: Path, files: Sequence[Path], images: Sequence[np.ndarray], rule: Pictures
) -> Sequence[np.ndarray]:
    """Convert all images to colour if one of them, or the model, is in colour."""
    coloured = [file for file, image in zip(files, images, strict=True) if image.ndim == 3]
    if coloured and rule.shape is not None and len(rule.shape) == 2:
        told = "is in colour, the model takes grey pictures (colours are left out, if fitted with --grey)"
        raise Refused(_named(path, coloured[0], told))
    if not coloured and (rule.shape is None or len(rule.shape) == 2):
        return images
    return [image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2) for image in images]


def _pixels(image: Any, rule: Pictures) -> np.ndarray:
    from PIL import ImageOps

    # Cameras store their orientation as metadata instead of rotating the pixels.
    image = ImageOps.exif_transpose(image)
    deep = image.mode.startswith("I") or image.mode == "F"
    is_grey = deep or image.mode in ("1", "L", "LA")
    if not deep:
        image = image.convert("L" if is_grey or rule.grey else "RGB")
    if rule.size is not None and image.size != rule.size[::-1]:
        image = image.resize(rule.size[::-1])
    pixels = np.asarray(image)
    return (pixels / SIXTEEN_BITS).astype(np.float32) if image.mode.startswith("I") else pixels


def _check_size(path: Path, file: Path, images: Sequence[np.ndarray], first: Path, rule: Pictures) -> None:
    """Refuse the last of these images if it has another size than the model, or the first of them."""
    wanted = rule.shape[:2] if rule.shape is not None else images[0].shape[:2]
    found = images[-1].shape
    if found[:2] == wanted:
        return
    told = f"is {_size(found)} pixels (height by width)"
    if rule.shape is not None:
        told += f", the model takes {_size(wanted)} (any size, if fitted with --resize)"
    else:
        told += f", {first.name} {_size(wanted)}: bring them to one size with --resize {_size(wanted)}"
    raise Refused(_named(path, file, told))


def _size(shape: Sequence[int]) -> str:
    return f"{shape[0]}x{shape[1]}"


def _named(path: Path, file: Path, told: str) -> str:
    return told if file == path else f"holds {file.name}, which {told}"


def write_images(folder: Path, values: np.ndarray, shape: Sequence[int], names: Sequence[str] | None) -> Path:
    """Write rows of values from 0 to 255 as PNG files in a new folder."""
    Image = pillow()
    count = len(str(len(values) - 1))
    stems = [Path(name).stem for name in names] if names else [f"{row:0{count}d}" for row in range(len(values))]
    if len(set(stems)) < len(stems):
        # a.png and a.jpg are two images.
        stems = [f"{row:0{count}d}_{stem}" for row, stem in enumerate(stems)]
    pixels = np.rint(np.clip(values, 0, 255)).astype(np.uint8).reshape(len(values), *shape)

    def fill(place: Path) -> None:
        for stem, image in zip(stems, pixels, strict=True):
            Image.fromarray(image).save(place / f"{stem}.png")

    return write_whole_folder(folder, fill)
