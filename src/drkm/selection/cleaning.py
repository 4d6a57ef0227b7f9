"""`drkm.denoise`: choose a model for noisy samples and denoise them in one call."""

from __future__ import annotations

from typing import Any

from drkm.selection.selection import select


def denoise(X: Any, *, noise: Any = "auto", return_selection: bool = False, **options: Any) -> Any:
    """Denoise the rows of X: choose a model from X alone, fit it, and reconstruct the rows.

    Parameters
    ----------
    X : array, frame or tensor of shape (n, d)
        Noisy samples; the result has the same type.
    noise : float, array of shape (d,) or "auto"
        Standard deviation of the noise, one for all columns or one per column; "auto" estimates it, which is less
        reliable. Standardise columns in different units first.
    return_selection : bool
        Also return the `Selection`: what was chosen, the expected error, and the model, which can denoise new rows.
    **options
        Options of `drkm.select`: `n_jobs`, `max_seconds`, `random_state`, `verbose`.

    Examples
    --------
    >>> import drkm
    >>> from drkm.datasets import make_square
    >>> noisy, clean = make_square(300, noise=0.1, random_state=0)
    >>> cleaned = drkm.denoise(noisy)
    >>> float(((cleaned - clean) ** 2).mean() / ((noisy - clean) ** 2).mean()) < 0.7
    True
    """
    selection = select(X, noise=noise, **options)
    cleaned = selection.denoise(X)
    return (cleaned, selection) if return_selection else cleaned
