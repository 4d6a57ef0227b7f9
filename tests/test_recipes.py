"""The recipes of CONTRIBUTING.md, followed with a small member of each family."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from command_line import drkm, refused
from drkm import ConstrDRKM, datasets, gram, kernels, load, metrics, solvers
from drkm.datasets import _dataset
from drkm.datasets._factors import ArrayDataset
from drkm.metrics import MetricResult, Score, _metric
from drkm.training.checkpoint import Checkpoint

X = np.random.RandomState(0).randn(40, 4)


def fitted(**parameters) -> ConstrDRKM:
    return ConstrDRKM(**{"n_components": (3, 2), "eta": 1.0, **parameters}).fit(X)


def test_every_family_has_a_recipe():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for family in ("kernel", "Gram operator", "solver", "metric", "dataset"):
        recipe = text.split(f"### A {family}\n")[1].split("##")[0]
        assert "\n1. " in recipe
        assert "\n3. " in recipe


@dataclass(frozen=True)
class Sharp(kernels.Isotropic):
    """k(x, y) = exp(-‖x-y‖²/σ²), which is an RBF of half the width."""

    name = "sharp"
    rooms = 0
    sigma2: float | str = "auto"

    def jet(self, exponent, order, room=None):
        value = exponent.mul_(2).exp_()
        return tuple(2.0**k * value for k in range(order + 1))


class TestKernel:
    @pytest.fixture
    def sharp(self):
        kernels.register(Sharp)
        yield Sharp
        for registry in (kernels.NAMES, kernels.KINDS):
            registry.forget("sharp" if "sharp" in registry else "Sharp")

    @pytest.mark.parametrize("center", [False, True])
    def test_fits_by_its_name_as_the_same_function_does_under_another(self, sharp, center):
        # From the same start, without the warm-up, which depends on widths.
        start = np.linalg.qr(np.random.RandomState(1).randn(len(X), 5))[0]
        ours = fitted(kernel="sharp", center=center, init=start)
        assert all(isinstance(kernel, Sharp) for kernel in ours.kernels_)
        same = [kernels.RBF(kernel.bandwidth / 2) for kernel in ours.kernels_]
        theirs = fitted(kernel=same, center=center, init=start)
        assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-8)
        np.testing.assert_allclose(ours.denoise(X[:5]), theirs.denoise(X[:5]), atol=1e-4)

    @pytest.mark.parametrize("strategy", ["dense", "tiled", gram.Nystroem(m=20, deep=gram.Dense())], ids=str)
    def test_is_there_again_in_a_model_that_was_saved(self, sharp, strategy, tmp_path):
        model = fitted(kernel="sharp", gram=strategy)
        model.save(tmp_path / "model.safetensors")
        again = load(tmp_path / "model.safetensors")
        np.testing.assert_allclose(again.transform(X), model.transform(X), atol=1e-10)
        assert again.kernel == "sharp"

    def test_has_no_fourier_features_unless_it_says_its_spectral_density(self, sharp):
        with pytest.raises(ValueError, match=r"gram: Fourier features need .* with spectral_degrees .*, got Sharp in"):
            fitted(kernel="sharp", gram="fourier")

    def test_is_known_to_the_command_line(self, sharp, tmp_path):
        np.save(tmp_path / "X.npy", X)
        out = tmp_path / "model.safetensors"
        done = drkm("fit", tmp_path / "X.npy", "-o", out, "-c", "3", "--kernel", "sharp", "--sigma2", "4")
        assert done.code == 0, done
        assert load(out).kernels_[0] == Sharp(4.0)

    def test_that_is_not_known_is_refused_when_a_model_is_saved(self, tmp_path):
        model = fitted(kernel=Sharp())
        with pytest.raises(ValueError, match=r"kernel: .* Sharp is not registered: put @drkm\.kernels\.register"):
            model.save(tmp_path / "model.safetensors")
        assert not list(tmp_path.iterdir())

    def test_that_is_approximated_must_be_known_too(self, tmp_path):
        model = fitted(kernel=Sharp(), gram=gram.Nystroem(m=20, deep=gram.Dense()))
        with pytest.raises(ValueError, match="Sharp is not registered"):
            model.save(tmp_path / "model.safetensors")

    def test_that_a_reader_does_not_know_is_refused_with_what_to_do(self, tmp_path):
        kernels.register(Sharp)
        fitted(kernel="sharp").save(tmp_path / "model.safetensors")
        kernels.NAMES.forget("sharp")
        kernels.KINDS.forget("Sharp")
        sentence = r"model\.safetensors has a kernel 'Sharp' that is not registered .* @drkm\.kernels\.register above"
        with pytest.raises(ValueError, match=sentence) as caught:
            load(tmp_path / "model.safetensors")
        assert "damaged" not in str(caught.value)
        np.save(tmp_path / "X.npy", X)
        assert "import the module that registers it" in refused(
            "encode", tmp_path / "model.safetensors", tmp_path / "X.npy", "-o", tmp_path / "codes.npy"
        )

    def test_takes_no_name_of_another(self):
        with pytest.raises(ValueError, match=r"name: 'rbf' is the kernel drkm\.kernels\.rbf\.RBF, choose another"):
            kernels.register(dataclass(frozen=True)(type("Mine", (Sharp,), {"name": "rbf"})))
        kernels.KINDS.forget("Mine")
        with pytest.raises(TypeError, match=r"expected a subclass of drkm\.kernels\.Kernel to register"):
            kernels.register(dict)
        with pytest.raises(TypeError, match="Plain must be a dataclass"):
            kernels.register(type("Plain", (Sharp,), {}))

    def test_may_be_defined_again(self, sharp):
        again = dataclass(frozen=True)(type("Sharp", (Sharp,), {"__module__": __name__, "__qualname__": "Sharp"}))
        kernels.register(again)
        assert kernels.NAMES["sharp"] is again


@dataclass(frozen=True)
class Halves(gram.Dense):
    """K_1 as two stored halves of its rows."""

    name = "halves"

    def fixed_pairs(self, kernel, points):
        return HalvedGram(kernel(points, points))


class HalvedGram(gram.Gram):
    def __init__(self, K: torch.Tensor):
        self.n = len(K)
        self.halves = K.chunk(2)

    def matmul(self, A: torch.Tensor) -> torch.Tensor:
        return torch.cat([half @ A for half in self.halves])

    def diagonal(self) -> torch.Tensor:
        return torch.cat(self.halves).diagonal()

    def rows(self, index: torch.Tensor) -> torch.Tensor:
        return torch.cat(self.halves)[index]


class TestGramOperator:
    @pytest.fixture(autouse=True)
    def halves(self):
        gram.register(Halves)
        yield
        gram.NAMES.forget("halves")

    def test_fits_by_its_name_as_a_stored_matrix_does(self):
        ours, theirs = fitted(gram="halves"), fitted(gram="dense")
        assert isinstance(ours.fitted_.strategy, Halves)
        assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-10)

    def test_is_there_again_in_a_model_that_was_saved(self, tmp_path):
        model = fitted(gram=Halves())
        model.save(tmp_path / "model.safetensors")
        assert load(tmp_path / "model.safetensors").gram == Halves()

    def test_that_a_reader_does_not_know_is_refused_with_what_to_do(self, tmp_path):
        fitted(gram=Halves()).save(tmp_path / "model.safetensors")
        gram.NAMES.forget("halves")
        with pytest.raises(ValueError, match=r"has a gram 'halves' that is not registered .* @drkm\.gram\.register"):
            load(tmp_path / "model.safetensors")
        gram.register(Halves)


@dataclass(frozen=True, kw_only=True)
class SteepestState(solvers.PointState):
    """A point and the length of the next step."""

    length: float


@dataclass
class Steepest(solvers.Solver[SteepestState]):
    """Steepest descent, with a step that grows while the energy falls and shrinks when it does not."""

    first: float = 1e-2
    name = "steepest"
    state_class = SteepestState

    def start(self, energy, H):
        return SteepestState.at(H, energy.value_and_gradient(H), length=self.first)

    def step(self, energy, state, tol):
        from drkm.problem import stiefel

        trial = stiefel.retraction(state.H, -state.length * state.R)
        found = energy.value_and_gradient(trial)
        if found.value < state.objective:
            return state.moved(trial, found, length=1.5 * state.length)
        if state.length < 1e-15:
            return replace(state, status=solvers.Status.DONE)
        return replace(state, length=0.5 * state.length)


class TestSolver:
    @pytest.fixture(autouse=True)
    def steepest(self):
        solvers.register(Steepest)
        yield
        solvers.NAMES.forget("steepest")

    def test_finds_what_others_find(self):
        ours = fitted(solver="steepest", max_iter=20000, tol=1e-5, init=fitted().codes_ + 1e-3)
        assert ours.converged_
        assert ours.objective_ == pytest.approx(fitted(init=fitted().codes_ + 1e-3).objective_, rel=1e-6)

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_that_is_done_before_the_tolerance_is_reached_has_stalled(self):
        model = fitted(solver=Steepest(first=0.0), max_iter=50)
        assert model.fitted_.result.status is solvers.Status.STALLED

    def test_is_there_again_in_a_model_that_was_saved(self, tmp_path):
        model = fitted(solver=Steepest(0.1), max_iter=20000, tol=1e-4)
        model.save(tmp_path / "model.safetensors")
        assert load(tmp_path / "model.safetensors").solver == Steepest(0.1)

    def test_goes_on_from_a_checkpoint(self, tmp_path):
        class Killed(BaseException):
            pass

        def kill(entry):
            if entry["iteration"] == 20:
                raise Killed

        options = {"solver": "steepest", "tol": 1e-3, "checkpoint": Checkpoint(tmp_path / "checkpoint", every=0)}
        with pytest.raises(Killed):
            fitted(**options, callbacks=kill)
        seen = []
        again = fitted(**options, callbacks=seen.append)
        assert seen[0]["iteration"] == 19
        np.testing.assert_array_equal(again.codes_, fitted(solver="steepest", tol=1e-3).codes_)

    def test_that_does_not_say_what_its_states_are_is_refused(self):
        with pytest.raises(TypeError, match=r"state_class: Vague needs a dataclass that extends drkm\.solvers\.State"):
            type("Vague", (solvers.Solver,), {"step": None})

    def test_is_known_to_the_command_line(self, tmp_path):
        np.save(tmp_path / "X.npy", X)
        words = ("-o", tmp_path / "m.safetensors", "-c", "3", "--solver", "steepest", "--tol", "1e-3")
        assert drkm("fit", tmp_path / "X.npy", *words).code == 0
        assert load(tmp_path / "m.safetensors").solver == "steepest"


def spread(codes, factors, *, standardize: bool = False) -> MetricResult:
    """Mean of the codes' standard deviations."""
    z = np.asarray(codes)
    return MetricResult(float((z / z.std(axis=0) if standardize else z).std(axis=0).mean()))


class TestMetric:
    codes = np.random.RandomState(1).randn(60, 3) * 7
    factors = np.random.RandomState(2).randint(3, size=(60, 2))

    @pytest.fixture(autouse=True)
    def spread(self):
        metrics.metric(Score("score", "spread of codes", "low"), repeats=4)(spread)
        yield
        _metric.METRICS.forget("spread")

    def test_is_a_row_of_the_table(self):
        row = metrics.evaluate(self.codes, self.factors, metrics=["spread"])["spread"]
        assert row.score == pytest.approx(self.codes.std(axis=0).mean())
        # Shuffling rows changes no standard deviation.
        assert (row.chance, row.repeats, row.better) == (pytest.approx(row.score), 4, "low")
        assert "spread of codes ↓" in str(metrics.evaluate(self.codes, self.factors, metrics=["spread"]))

    def test_is_among_all_and_gets_the_options_that_it_takes(self):
        row = metrics.evaluate(self.codes, self.factors, repeats=1, standardize=True)["spread"]
        assert row.score == pytest.approx(1)

    def test_has_a_chance_level_by_its_name(self):
        assert metrics.chance("spread", self.codes, self.factors, repeats=2).values.shape == (2,)

    def test_is_known_to_the_command_line(self, tmp_path):
        np.save(tmp_path / "codes.npy", self.codes)
        np.save(tmp_path / "factors.npy", self.factors)
        done = drkm("evaluate", tmp_path / "codes.npy", tmp_path / "factors.npy", "--metrics", "spread,mig")
        assert done.code == 0
        assert "spread of codes" in done.out


REMOTE = datasets.RemoteFile("dots.bin", "http://127.0.0.1:9/dots.bin", "sha256:" + "0" * 64)


def load_dots(path=None) -> datasets.FactorDataset:
    """Four images with one dot each."""
    factors = np.array([[i, j] for i in range(2) for j in range(2)])
    images = np.zeros((4, 64, 64), dtype=np.uint8)
    images[np.arange(4), *factors.T] = 255
    return ArrayDataset("dots", ("row", "column"), (2, 2), images, factors)


class TestDataset:
    @pytest.fixture(autouse=True)
    def dots(self, tmp_path, monkeypatch):
        monkeypatch.setenv("DRKM_DATA", str(tmp_path))
        datasets.dataset(
            "dots",
            about="one dot",
            licence="none",
            files=(REMOTE,),
            compact="dots.npz",
            sources=(datasets.Source("dots", "Dots"),),
        )(load_dots)
        yield
        _dataset.DATASETS.forget("dots")

    def test_is_listed_and_verified(self, tmp_path):
        assert "dots: one dot\n    licence: none; in place: no file" in drkm("datasets", "list").out
        assert f"dots.bin: missing, download it, or place {REMOTE.url} there" in drkm("datasets", "verify", "dots").out
        (tmp_path / "dots.bin").write_bytes(b"other")
        assert [check.state for check in datasets.verify("dots")] == ["damaged"]

    def test_is_data_of_experiments(self, tmp_path):
        from drkm.experiments import data

        with pytest.raises(datasets.DatasetError, match="'drkm datasets download dots'"):
            data.checksum("dots")
        (tmp_path / "dots.bin").write_bytes(b"content")
        assert len(data.checksum("dots")) == 64
        assert len(data.load("dots")) == 4
