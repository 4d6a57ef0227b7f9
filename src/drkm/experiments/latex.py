"""Tables for articles: LaTeX with booktabs rules, in ASCII, so that every engine can typeset it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drkm.experiments.cells import all_numbers, readable, with_indices

#: characters with a special meaning in LaTeX
_OBEYED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def _commands(pairs: str) -> dict[str, str]:
    """Return symbols with their commands from a text of alternating symbols and commands."""
    words = pairs.split()
    return dict(zip(words[::2], words[1::2], strict=True))


_GREEK = _commands(
    "α alpha β beta γ gamma δ delta ε epsilon η eta θ theta λ lambda μ mu π pi ρ rho σ sigma τ tau φ phi χ chi "
    "ω omega Δ Delta Σ Sigma"
)
_RELATIONS = _commands("± pm × times · cdot ≤ leq ≥ geq ≠ neq ≈ approx → to ∞ infty")
_SIGNS = {
    **{letter: f"$\\{name}$" for letter, name in (_GREEK | _RELATIONS).items()},
    **{letter: f"$^{digit}$" for digit, letter in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{letter: f"$_{digit}$" for digit, letter in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    **{letter: f"$\\frac{{{above}}}{{{below}}}$" for letter, above, below in ("½12", "¼14", "¾34")},
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


def latex(rows: Sequence[Mapping[str, Any]], caption: str, label: str) -> str:
    """Return rows with the same keys as a floating table; numbers are right-aligned."""
    columns = list(rows[0])
    sides = "".join("r" if all_numbers([row[column] for row in rows]) else "l" for column in columns)
    lines = [[readable(row[column]) for column in columns] for row in rows]
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
            *(f"    {' & '.join(map(escaped, line))} \\\\" for line in lines),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def escaped(text: str) -> str:
    """Return plain text as LaTeX; σ_n becomes a letter with an index."""
    return "".join(with_indices(" ".join(text.split()), _signs, _in_formula))


def _in_formula(letter: str, index: str) -> str:
    name = f"\\{_GREEK[letter]}" if letter in _GREEK else letter
    return f"${name}_{index}$"


def _signs(text: str) -> str:
    return "".join((_OBEYED | _SIGNS).get(letter, letter) for letter in text)
