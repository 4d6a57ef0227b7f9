"""Tables for articles: LaTeX with the rules of booktabs, in ASCII, so that every engine sets it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: what LaTeX reads as a command
_OBEYED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}
_GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "epsilon",
    "η": "eta",
    "θ": "theta",
    "λ": "lambda",
    "μ": "mu",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "φ": "phi",
    "χ": "chi",
    "ω": "omega",
    "Δ": "Delta",
    "Σ": "Sigma",
}
_RELATIONS = {
    "±": "pm",
    "×": "times",
    "·": "cdot",
    "≤": "leq",
    "≥": "geq",
    "≠": "neq",
    "≈": "approx",
    "→": "to",
    "∞": "infty",
}
_SIGNS = {
    **{letter: f"$\\{name}$" for letter, name in (_GREEK | _RELATIONS).items()},
    **{letter: f"$^{digit}$" for digit, letter in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{letter: f"$_{digit}$" for digit, letter in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    "½": r"$\frac{1}{2}$",
    "¼": r"$\frac{1}{4}$",
    "¾": r"$\frac{3}{4}$",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "“": "``",
    "”": "''",
    "’": "'",
    "✓": "yes",
    "✗": "no",
}


def latex(rows: Sequence[Mapping[str, Any]], caption: str, label: str, written: Callable[[Any], str]) -> str:
    """Return rows with the same keys as a floating table; numbers stand to the right.

    Parameters
    ----------
    rows : sequence of mappings
    caption, label : str
    written : value → str
        How a value is written before it becomes LaTeX.
    """
    columns = list(rows[0])
    sides = "".join("r" if all(_is_number(row[column]) for row in rows) else "l" for column in columns)
    lines = [" & ".join(escaped(written(row[column])) for column in columns) + r" \\" for row in rows]
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"  \centering",
            f"  \\caption{{{escaped(caption)}}}",
            f"  \\label{{{label}}}",
            f"  \\begin{{tabular}}{{{sides}}}",
            r"    \toprule",
            f"    {' & '.join(map(escaped, columns))} \\\\",
            r"    \midrule",
            *(f"    {line}" for line in lines),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def escaped(text: str) -> str:
    """Return text as LaTeX that looks like it; the index of a letter, as in σ_n, is one."""
    pieces = re.split(r"\b([^\W\d_])_([A-Za-z0-9])(?![A-Za-z0-9_])", " ".join(text.split()))
    plain, letters, indices = pieces[::3], pieces[1::3], pieces[2::3]
    indexed = [f"${_in_formula(letter)}_{index}$" for letter, index in zip(letters, indices, strict=True)]
    return _signs(plain[0]) + "".join(one + _signs(rest) for one, rest in zip(indexed, plain[1:], strict=True))


def _in_formula(letter: str) -> str:
    return f"\\{_GREEK[letter]}" if letter in _GREEK else letter


def _signs(text: str) -> str:
    return "".join((_OBEYED | _SIGNS).get(letter, letter) for letter in text)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
