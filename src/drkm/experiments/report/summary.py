"""The summary of the results: sentences, each shown only if the verdicts that it depends on hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from drkm.experiments.report.chapters import Chapter
from drkm.experiments.section import Claim, Verdict

#: verdicts that a condition allows
HELD, FAILED = (Verdict.HELD,), (Verdict.FAILED,)
TOLD, NOT_SHOWN = (*HELD, *FAILED), (*FAILED, Verdict.UNDECIDED)
#: share of the runs of an experiment that must be finished; the page says how many are missing
NEARLY_ALL = 0.99


@dataclass(frozen=True)
class Says:
    """A condition of a sentence: all claims of an experiment with these words in their text have such a verdict."""

    #: any of these
    verdicts: tuple[Verdict, ...]
    experiment: str
    #: part of the text of a claim; … matches anything
    words: str

    def claims(self, chapters: Sequence[Chapter]) -> list[Claim]:
        """Return the matching claims; there are none if more than a few runs of the experiment are missing."""
        pattern = ".*".join(map(re.escape, self.words.split("…")))
        return [
            claim
            for chapter in chapters
            if chapter.section.name == self.experiment and chapter.finished >= NEARLY_ALL * chapter.expected
            for claim in chapter.section.claims
            if re.search(pattern, claim.text)
        ]

    def holds(self, chapters: Sequence[Chapter]) -> bool:
        """Whether there are matching claims and all have an allowed verdict."""
        found = self.claims(chapters)
        return bool(found) and all(claim.verdict in self.verdicts for claim in found)


class Sentence:
    """A sentence of the summary; {0}, {1} … stand for the measurement of the first claim of each condition."""

    def __init__(self, text: str, *says: Says):
        self.text, self.says = text, says

    def holds(self, chapters: Sequence[Chapter]) -> bool:
        """Whether all conditions hold."""
        return all(one.holds(chapters) for one in self.says)

    def written(self, chapters: Sequence[Chapter]) -> str:
        """Return the sentence with its numbers."""
        return self.text.format(*(one.claims(chapters)[0].measured for one in self.says))


def in_short(chapters: Sequence[Chapter]) -> tuple[list[str], str]:
    """Return the sentences that the verdicts support, and how many are left out, or nothing."""
    kept = [sentence.written(chapters) for sentence in SENTENCES if sentence.holds(chapters)]
    left = len(SENTENCES) - len(kept)
    told = f"{left} of {len(SENTENCES)} sentences are left out, because these runs do not support them."
    return kept, told if left else ""


#: docs/results.md has those that its verdicts support, which a test compares
SENTENCES = (
    Sentence(
        "**Denoising, Table 1: all twelve ratios are at or above the published ones, and mean less than they seem.** "
        "Kernel PCA with three components is a bad model of these curves, and the paper's deep model leaves the points "
        "nearer to the clean ones than the noisy points were in {1} only.",
        Says(HELD, "table1", "the deep model denoises better than kernel PCA"),
        Says(FAILED, "table1", "leaves points nearer to the clean ones"),
    ),
    Sentence(
        "**Models whose components are selected do denoise.** Two layers are not above one layer, selected with the "
        "same effort, in {0}, by a little; they are within 1.15 times the error of the Bayes posterior mean in {1}.",
        Says(HELD, "table1", "are not above one layer, selected with equal effort"),
        Says(TOLD, "table1", "are within 1.15 times the error"),
    ),
    Sentence(
        "**IRS without its chance level misleads.** On Cars3D the recipe as published is ahead of the β-VAE in IRS "
        "({0}). Above chance the β-VAE is ahead ({1}).",
        Says(HELD, "training_points", "On Cars3D the model is ahead of the β-VAE in IRS (as published)."),
        Says(
            FAILED,
            "training_points",
            "On Cars3D the model is ahead of the β-VAE in IRS (as published), judged above",
        ),
    ),
    Sentence(
        "**Against the β-VAE** the recipe as published is {0}.",
        Says(FAILED, "training_points", "Overall the model does about as well as the β-VAE (as published)"),
    ),
    Sentence(
        "**Our defaults do about as well as the β-VAE**: {0}.",
        Says(HELD, "training_points", "Overall the model does about as well as the β-VAE (drkm defaults)"),
    ),
    Sentence(
        "**SmallNORB is the β-VAE's in MIG**, which the paper calls similar: {0}; {1}. In IRS, where the paper has the "
        "β-VAE considerably ahead, the recipe as published is not behind it ({2}).",
        Says(FAILED, "training_points", "On SmallNORB the MIG of both is similar (as published)"),
        Says(FAILED, "training_points", "On SmallNORB the MIG of both is similar (drkm defaults)"),
        Says(FAILED, "training_points", "On SmallNORB the β-VAE is considerably better in IRS (as published)"),
    ),
    Sentence(
        "**Few images are no reason for either.** With 50 images our defaults are not ahead of the β-VAE in IRS above "
        "chance on most datasets ({0}); with 400 the β-VAE has not overtaken them in MIG ({1}) or SAP ({2}).",
        Says(FAILED, "sample_efficiency", "our defaults are ahead of the β-VAE in IRS above chance"),
        Says(FAILED, "sample_efficiency", "the β-VAE has overtaken our defaults in MIG"),
        Says(FAILED, "sample_efficiency", "the β-VAE has overtaken our defaults in SAP"),
    ),
    Sentence(
        "**Depth pays nowhere that we looked.** Five models with several trained layers, each tuned by the same rule "
        "as kernel PCA with as many codes and judged on other draws: {0}. At ten components in all, two or three "
        "layers are not shown to be better than one either.",
        Says(FAILED, "depth", "Depth pays somewhere"),
        Says(NOT_SHOWN, "deep_layer", "is better than one layer of ten"),
    ),
    Sentence(
        "**With our defaults, layer 1 of two layers is kernel PCA to a hundredth** in every score: {0} in IRS above "
        "chance, {1} in MIG, {2} in SAP.",
        Says(FAILED, "training_points", "ahead of kernel PCA with ten components in IRS above chance"),
        Says(FAILED, "training_points", "ahead of kernel PCA with ten components in MIG"),
        Says(FAILED, "training_points", "ahead of kernel PCA with ten components in SAP"),
    ),
    Sentence(
        "**Two layers are not better than one** in IRS ({0}) or MIG ({1}) with our defaults, nor in MIG with the "
        "recipe as published ({2}). The paper finds two layers most often best or close to best: this held with our "
        "defaults, by little ({3}), and not with the recipe as published ({4}).",
        Says(FAILED, "layers", "2 layers are better than 1 in IRS (drkm defaults)"),
        Says(FAILED, "layers", "2 layers are better than 1 in MIG (drkm defaults)"),
        Says(FAILED, "layers", "2 layers are better than 1 in MIG (as published)"),
        Says(HELD, "layers", "2 layers are the most consistent choice: best or close to best in most cases (drkm"),
        Says(FAILED, "layers", "2 layers are the most consistent choice: best or close to best in most cases (as"),
    ),
    Sentence(
        "**Three layers are not better than two**: {0} with our defaults. The paper finds twice the MIG with three "
        "layers on Cars3D: this held with our defaults ({2}), and not with the recipe as published ({3}).",
        Says(HELD, "layers", "A third layer does not consistently raise the scores (drkm defaults)"),
        Says(HELD, "layers", "A third layer does not consistently raise the scores (as published)"),
        Says(HELD, "layers", "3 layers have about double the MIG of 1 and 2 layers (drkm defaults)"),
        Says(FAILED, "layers", "3 layers have about double the MIG of 1 and 2 layers (as published)"),
    ),
    Sentence(
        "**MIG and SAP do not change with γ**, as the theory says ({0}; {1}). IRS above chance on SmallNORB does in "
        "the recipe as published ({2}). A likely reason, not tested here: it ends far from feasible, where γ acts.",
        Says(HELD, "gamma", "MIG does not change with γ"),
        Says(HELD, "gamma", "SAP does not change with γ"),
        Says(
            FAILED,
            "hyperparameters",
            "On SmallNORB γ has no appreciable influence on IRS (as published), judged above",
        ),
    ),
    Sentence(
        "**The recipe as published is less sensitive to γ than the β-VAE is to β**: {0}.",
        Says(HELD, "hyperparameters", "less sensitive to γ than the β-VAE is to β"),
    ),
    Sentence(
        "**Table 2 at its published size**: both scores of the random start and of the β-VAE are within two standard "
        "deviations of the published ones, those of the kernel PCA start are not. It has a lower IRS than the random "
        "start, as published ({3}), and above chance a higher one ({4}).",
        Says(HELD, "table2", "of the random start, σ² = 50 on unseen images of Cars3D is within two"),
        Says(HELD, "table2", "of the β-VAE on unseen images of Cars3D is within two"),
        Says(FAILED, "table2", "of the kernel PCA start, σ² = 50 on unseen images of Cars3D is within two"),
        Says(HELD, "table2", "The kernel PCA start has a lower IRS than the random start (σ² = 50)."),
        Says(FAILED, "table2", "The kernel PCA start has a lower IRS than the random start (σ² = 50), judged above"),
    ),
    Sentence(
        "**Our defaults do not depend on a start seed.** Over training draws they vary less than the β-VAE in IRS "
        "above chance on most datasets ({1}) and in MIG ({2}).",
        Says(HELD, "variance", "Over start seeds our defaults do not vary"),
        Says(HELD, "variance", "Over training draws our defaults vary less than the β-VAE in IRS above chance"),
        Says(HELD, "variance", "Over training draws our defaults vary less than the β-VAE in MIG"),
    ),
    Sentence(
        "**At equal training time on a CPU**, a few steps for the β-VAE, our defaults are ahead of it in MIG ({1}) and "
        "not in IRS above chance ({0}).",
        Says(FAILED, "variance", "At equal training time … in IRS above chance"),
        Says(HELD, "variance", "At equal training time … in MIG"),
    ),
    Sentence(
        "**What layer 1 of our defaults finds, it finds again on resampled images**, as kernel PCA does and more fully "
        "than the β-VAE ({0}) and the recipe as published ({1}).",
        Says(HELD, "stability", "is recovered more fully than the codes of the model β-VAE"),
        Says(HELD, "stability", "is recovered more fully than the codes of the model as published"),
        Says(FAILED, "stability", "is recovered more fully than the codes of the model kernel PCA"),
    ),
)
