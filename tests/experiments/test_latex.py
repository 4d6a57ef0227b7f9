"""Tables for articles."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from drkm.experiments.latex import escaped, latex
from experiments.test_studies import STUDIES, results_of

ROWS = [{"curve": "50 % & more", "σ_n": 0.1, "ratio": 1.23456}, {"curve": "half_circle", "σ_n": 0.2, "ratio": None}]


def test_a_table_has_its_caption_rules_and_rows_with_four_digits():
    assert latex(ROWS, "Ratios_all.", "tab:x").splitlines() == [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        r"  \caption{Ratios\_all.}",
        r"  \label{tab:x}",
        r"  \begin{tabular}{lrr}",
        r"    \toprule",
        r"    curve & $\sigma_n$ & ratio \\",
        r"    \midrule",
        r"    50 \% \& more & 0.1 & 1.235 \\",
        r"    half\_circle & 0.2 & -- \\",
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]


def test_what_latex_would_obey_arrives_as_text():
    assert escaped(r"\input{x} $1 #2 ~ ^") == (
        r"\textbackslash{}input\{x\} \$1 \#2 \textasciitilde{} \textasciicircum{}"
    )


def test_signs_become_formulas():
    assert escaped("0.3 ± 0.1, σ² ≥ 2, s_1 – γ") == r"0.3 $\pm$ 0.1, $\sigma$$^2$ $\geq$ 2, $s_1$ -- $\gamma$"


def every_table():
    for study in STUDIES.values():
        for table in study.section(results_of(study, "quick"), "quick").tables:
            if table.rows:
                yield latex(table.rows, table.caption, f"tab:{study.name}")


def test_every_table_of_the_studies_is_ascii_with_as_many_cells_in_each_row():
    tables = list(every_table())
    assert len(tables) > 10
    for text in tables:
        assert text.isascii(), [letter for letter in text if not letter.isascii()]
        body = text.partition("toprule")[2].partition(r"\bottomrule")[0]
        cells = {len(re.findall(r"(?<!\\)&", line)) for line in body.splitlines() if line.endswith(r"\\")}
        assert len(cells) == 1


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on the PATH")
def test_latex_sets_them(tmp_path):
    start = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n"
    (tmp_path / "all.tex").write_text(start + "\n".join(every_table()) + "\\end{document}\n")
    subprocess.run(
        ["pdflatex", "-halt-on-error", "all.tex"], cwd=tmp_path, check=True, capture_output=True, timeout=120
    )
