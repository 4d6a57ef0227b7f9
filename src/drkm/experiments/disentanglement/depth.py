"""Our own experiment: where depth pays, with every model tuned by the same unsupervised rule."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from drkm.experiments.disentanglement._contests import COMPARISONS, CONTESTS, FILTERS, MODELS, OF_DEPTH, outcomes, pays
from drkm.experiments.experiment import MEASURED, Row
from drkm.experiments.section import Figure, ResultTable, Verdict
from drkm.experiments.study import Study, StudySizes, Table, named_models, tables, task
from drkm.experiments.study.drawing import Intervals, interval_grid
from drkm.experiments.study.rows import scored
from drkm.experiments.study.scales import DATASET_NAMES, SCORE_NAMES
from drkm.experiments.study.study import SCORES
from drkm.plotting import BLUE, GREY, VERMILION
from drkm.validation import parts

#: candidate widths of the first RBF kernel, as multiples of its bandwidth rule
WIDTHS = (0.5, 1.0, 2.0, 4.0)
DRAWS = 10
#: outcome of a comparison → its name and colour
SHOWN = {Verdict.HELD: ("ahead", BLUE), Verdict.FAILED: ("behind", VERMILION), Verdict.UNDECIDED: ("cannot tell", GREY)}
RESULT = parts.group(
    {
        **SCORES,
        "accuracy": parts.nullable(MEASURED),
        "width": MEASURED,
        "agreements": parts.several(MEASURED, least=1),
        "train_s": MEASURED,
    },
    others=True,
)


def _row(row: Row) -> Iterator[Row]:
    yield {**scored(row), "agreement": max(row["agreements"])}


def _cells(rows: list[Row]) -> Row:
    widths = [row["width"] for row in rows]
    return {
        **tables.summary(rows),
        **tables.spreads(rows, {SCORE_NAMES[score]: score for score in ("irs_above", "accuracy")}),
        "widths chosen": ", ".join(f"{width:g} ({widths.count(width)})" for width in sorted(set(widths))),
        **tables.spreads(rows, {"agreement": "agreement"}),
    }


def _comparisons(rows: list[Row], sizes: StudySizes) -> list[ResultTable]:
    lines = [
        {
            "candidate": contest.candidate,
            "against": one.rival,
            "dataset": DATASET_NAMES[one.dataset],
            "score": SCORE_NAMES[one.score],
            "difference": f"{one.joint}",
            "own interval": f"[{one.own.low:+.3f}, {one.own.high:+.3f}]",
            "draws": one.own.draws,
            "verdict": SHOWN[one.verdict][0],
        }
        for contest in CONTESTS
        for one in outcomes(rows, contest)
    ]
    caption = f"Differences on the judged draws, with intervals of which {COMPARISONS} hold together at 95 %"
    return [ResultTable("comparisons", caption, lines)]


def _figures(rows: list[Row], sizes: StudySizes) -> list[Figure]:
    cells: dict[tuple[str, str], dict[str, Intervals]] = {}
    for contest in CONTESTS:
        name = contest.candidate + (", against filters alone" if contest.rivals == FILTERS else "")
        for one in outcomes(rows, contest):
            where = cells.setdefault((DATASET_NAMES[one.dataset], SCORE_NAMES[one.score]), {})
            ends = (one.own.low, one.own.high), (one.joint.low, one.joint.high)
            where[name] = Intervals(one.own.estimate, *ends, SHOWN[one.verdict][1])
    caption = (
        "How far each candidate is ahead of the better kernel PCA on the judged draws: mean, its own 95 % interval "
        f"(thick), and one that allows for {COMPARISONS} comparisons (thin). Blue: ahead; orange: behind."
    )
    return [Figure("depth", caption, partial(interval_grid, cells))] if cells else []


EXPERIMENT = Study(
    name="depth",
    title="Where depth pays",
    place=18,
    tasks={"tuned": task("tuned", RESULT, module="_tuning")},
    text=lambda sizes: (
        f"Every model is trained on {sizes.start_points} images and gives ten codes. Its width, one of "
        f"{', '.join(f'{width:g}' for width in sizes.widths)}, is that at which fits to two draws agree best, which "
        f"sees no factors; it is then judged on another draw by {sizes.evaluation} unseen images. All of this is done "
        "anew for each draw. Widths are multiples of the rule for the bandwidth of the first RBF layer. Centred deep "
        "layers have η = 3 and four times the scale of codes as bandwidth. Filters are a fixed convolutional map: "
        "Gabor filters, modulus, pooling."
    ),
    groups=named_models(
        {name: ("drkm", *model) for name, model in MODELS.items()},
        at="start_points",
        settings={"widths": "widths"},
        task="tuned",
        rows=_row,
    ),
    tables=tables.several(
        Table(name="depth", by=("dataset", "model"), caption="Mean ± standard deviation on judged draws", cells=_cells),
        _comparisons,
    ),
    figures=_figures,
    claims=lambda rows, sizes: [
        pays(rows, "Depth pays somewhere: one of the models with several trained layers does.", *OF_DEPTH),
        *(pays(rows, f"It pays: {one.candidate}, against the better {one.rivals[0]}.", one) for one in CONTESTS),
    ],
    settings={"N": "start_points", "unseen images": "evaluation", "draws": "seeds", "widths": "widths"},
    own_sizes={
        "quick": {"widths": (1.0, 4.0)},
        **{scale: {"widths": WIDTHS, "seeds": DRAWS} for scale in ("medium", "paper")},
    },
)
