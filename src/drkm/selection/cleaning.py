"""Noisy samples in, clean ones out."""

from __future__ import annotations

from typing import Any

from drkm.selection.selection import select


def denoise(X: Any, *, noise: Any = "auto", return_selection: bool = False, **options: Any) -> Any:
    """Return the rows of X without noise, as far as they tell of each other: choose a model, fit it, clean.

    Parameters
    ----------
    X : array, frame or tensor of shape (n, d)
        Noisy samples; what is returned is of the same kind.
    noise : float, array of shape (d,) or "auto"
        Standard deviation of the noise, one for all columns or one per column; "auto" estimates it, which is less sure.
        Columns in different units should be standardised first.
    return_selection : bool
        Return also the `Selection`: what was chosen, what error is expected, and the model, which cleans new rows.
    **options
        Of `drkm.select`: `n_jobs`, `max_seconds`, `random_state`, `verbose`.

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
