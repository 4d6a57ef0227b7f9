"""The results in short: sentences, each with the verdicts that it depends on, and without them left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from drkm.experiments.report.chapters import Chapter
from drkm.experiments.section import Claim, Verdict

HELD, FAILED, UNDECIDED = Verdict


@dataclass(frozen=True)
class Says:
    """A condition of a sentence: all claims of an experiment that have these words in their text were judged so."""

    experiment: str
    #: as in the text of a claim; … stands for anything
    words: str
    #: any of these
    verdicts: tuple[Verdict, ...]

    def claims(self, chapters: Iterable[Chapter]) -> list[Claim]:
        """Return the claims that are meant; an experiment of which runs are missing has none."""
        pattern = ".*".join(map(re.escape, self.words.split("…")))
        return [
            claim
            for chapter in chapters
            if chapter.section.name == self.experiment and chapter.finished == chapter.expected
            for claim in chapter.section.claims
            if re.search(pattern, claim.text)
        ]

    def holds(self, chapters: Iterable[Chapter]) -> bool:
        """Whether there are such claims, all with such a verdict."""
        found = self.claims(chapters)
        return bool(found) and all(claim.verdict in self.verdicts for claim in found)


@dataclass(frozen=True)
class Sentence:
    """A sentence of the summary; {0}, {1} … stand for what the first claim of each condition measured."""

    text: str
    says: tuple[Says, ...]

    def holds(self, chapters: Iterable[Chapter]) -> bool:
        """Whether the verdicts say so."""
        chapters = list(chapters)
        return all(one.holds(chapters) for one in self.says)

    def written(self, chapters: Iterable[Chapter]) -> str:
        """Return the sentence with its numbers."""
        chapters = list(chapters)
        return self.text.format(*(one.claims(chapters)[0].measured for one in self.says))


def held(experiment: str, words: str) -> Says:
    """Return the condition that claims held."""
    return Says(experiment, words, (HELD,))


def failed(experiment: str, words: str) -> Says:
    """Return the condition that claims did not hold."""
    return Says(experiment, words, (FAILED,))


def not_shown(experiment: str, words: str) -> Says:
    """Return the condition that claims did not hold, or that it cannot be told."""
    return Says(experiment, words, (FAILED, UNDECIDED))


#: each stands in docs/results.md as long as the verdicts there say so, which a test compares
SENTENCES = (
    Sentence(
        "**Denoising, Table 1: all twelve ratios are at or above the published ones, and mean less than they seem.** "
        "Kernel PCA with three components is a bad model of these curves, and the paper's deep model leaves the points "
        "nearer to the clean ones than the noisy points were in {1} only.",
        (
            held("table1", "the deep model denoises better than kernel PCA"),
            failed("table1", "leaves points nearer to the clean ones"),
        ),
    ),
    Sentence(
        "**Models whose components are selected do denoise.** Two layers are not above one layer, selected with the "
        "same effort, in {0}, by a little; they are within 1.15 times the error of the Bayes posterior mean in {1}.",
        (
            held("table1", "are not above one layer, selected with equal effort"),
            Says("table1", "are within 1.15 times the error", (HELD, FAILED)),
        ),
    ),
    Sentence(
        "**IRS without its chance level misleads.** On Cars3D the recipe as published is ahead of the β-VAE in IRS "
        "({0}). Above chance the β-VAE is ahead ({1}).",
        (
            held("training_points", "On Cars3D the model is ahead of the β-VAE in IRS (as published)."),
            failed("training_points", "On Cars3D the model is ahead of the β-VAE in IRS (as published), judged above"),
        ),
    ),
    Sentence(
        "**Against the β-VAE** the recipe as published is {0}.",
        (failed("training_points", "Overall the model does about as well as the β-VAE (as published)"),),
    ),
    Sentence(
        "**Our defaults do about as well as the β-VAE**: {0}.",
        (held("training_points", "Overall the model does about as well as the β-VAE (drkm defaults)"),),
    ),
    Sentence(
        "**SmallNORB is the β-VAE's in MIG**, which the paper calls similar: {0}; {1}.",
        (
            failed("training_points", "On SmallNORB the MIG of both is similar (as published)"),
            failed("training_points", "On SmallNORB the MIG of both is similar (drkm defaults)"),
        ),
    ),
    Sentence(
        "**With many images the β-VAE overtakes our defaults in IRS above chance**: {0}.",
        (held("sample_efficiency", "the β-VAE has overtaken our defaults in IRS above chance"),),
    ),
    Sentence(
        "**Two layers are the most consistent choice** by the paper's own reading, with the recipe as published ({0}) "
        "and with our defaults ({1}).",
        (
            held("layers", "2 layers are the most consistent choice: best or close to best in most cases (as"),
            held("layers", "2 layers are the most consistent choice: best or close to best in most cases (drkm"),
        ),
    ),
    Sentence(
        "**Three layers are not better than two**: {0} with our defaults. The doubled MIG of three layers on Cars3D "
        "was not seen.",
        (
            held("layers", "A third layer does not consistently raise the scores (drkm defaults)"),
            held("layers", "A third layer does not consistently raise the scores (as published)"),
            failed("layers", "3 layers have about double the MIG"),
        ),
    ),
    Sentence(
        "**What depth adds is doubtful**: with ten components in all, two or three layers are not shown to be better "
        "than one in any score.",
        (not_shown("deep_layer", "is better than one layer of ten"),),
    ),
    Sentence(
        "**MIG and SAP do not change with γ**, as the theory says ({0}; {1}). IRS on SmallNORB does in the recipe as "
        "published ({2}). A likely reason, not tested here: it ends far from feasible, where γ acts.",
        (
            held("gamma", "MIG does not change with γ"),
            held("gamma", "SAP does not change with γ"),
            failed("hyperparameters", "On SmallNORB γ has no appreciable influence on IRS (as published)."),
        ),
    ),
    Sentence(
        "**The recipe as published is not less sensitive to γ than the β-VAE is to β**: {0}.",
        (failed("hyperparameters", "less sensitive to γ than the β-VAE is to β"),),
    ),
    Sentence(
        "**Our defaults do not depend on a start seed.** Over training draws they vary less than the β-VAE in MIG "
        "({1}), and more in IRS above chance ({2}).",
        (
            held("variance", "Over start seeds our defaults do not vary"),
            held("variance", "Over training draws our defaults vary less than the β-VAE in MIG"),
            failed("variance", "Over training draws our defaults vary less than the β-VAE in IRS above chance"),
        ),
    ),
    Sentence(
        "**At equal training time on a CPU** neither our defaults nor the β-VAE are shown to be ahead on most "
        "datasets: in IRS above chance {0}, in MIG {1}.",
        (
            Says("variance", "At equal training time … in IRS above chance", (UNDECIDED,)),
            Says("variance", "At equal training time … in MIG", (UNDECIDED,)),
        ),
    ),
    Sentence(
        "**On resampled images kernel PCA is recovered more fully** than layer 1 of two layers: {0}.",
        (failed("stability", "is recovered more fully than the codes of the model kernel PCA."),),
    ),
    Sentence(
        "**Table 2**: the order of the two starts in IRS is the published one at σ² = 50 ({0}); the kernel PCA start "
        "is not ahead of the β-VAE in MIG ({1}).",
        (
            held("table2", "The kernel PCA start has a lower IRS than the random start (σ² = 50)."),
            failed("table2", "The kernel PCA start is ahead of the β-VAE in MIG (σ² = 50)"),
        ),
    ),
)
