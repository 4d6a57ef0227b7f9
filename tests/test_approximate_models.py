"""Models with approximate kernels: the same guarantees as with exact ones."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

from dense_oracle import dense_energy, structured
from drkm import ConstrDRKM, load
from drkm.files import container
from drkm.gram import Dense, Fourier, Nystroem, Workload
from drkm.inference.first_gram import energy_of
from drkm.kernels import RBF, Cosine, FourierFeatures, Laplacian, Matern, NystroemFeatures, Polynomial, Precomputed
from drkm.persistence.model_file import VERSION
from drkm.training.checkpoint.fingerprint import fingerprint

DATA = structured(150).numpy()
X, NEW = DATA[:120], DATA[120:]
SIZES = (4, 3)
STRATEGIES = {
    "nystroem": Nystroem(40, deep=Fourier(400)),
    "exact deep layer": Nystroem(40, "rpcholesky", deep=Dense()),
    "fourier": Fourier(400),
}


@pytest.fixture(scope="module", params=[(name, center) for name in STRATEGIES for center in (False, True)], ids=str)
def model(request):
    name, center = request.param
    return ConstrDRKM(SIZES, gram=STRATEGIES[name], center=center, tol=3e-8, max_iter=5000).fit(X)


def test_the_fit_converges_and_reports_the_error_of_every_approximate_kernel(model):
    assert model.converged_
    for layer, (kernel, error) in enumerate(zip(model.kernels_, model.approximation_errors_, strict=True), start=1):
        approximate = isinstance(kernel, FourierFeatures | NystroemFeatures)
        assert (error is not None) == approximate
        assert not approximate or 0 < error < 0.3
        assert (f"layer {layer}: " in model.summary()) == approximate


def test_training_points_get_their_own_codes_back(model):
    assert np.abs(model.transform(X) - model.codes_).max() <= 1e-6


def test_new_points_get_stationary_codes(model):
    assert (model.encode(NEW).residual <= 1e-8).mean() >= 0.9


def test_codes_lead_to_the_same_points_as_denoising(model):
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(NEW)), model.denoise(NEW, components="layer 1"), atol=1e-5
    )


def test_reconstructions_are_nearer_than_the_mean(model):
    assert model.score(NEW) > -np.square(NEW - X.mean(axis=0)).sum(axis=1).mean()


def test_a_model_survives_a_file(model, tmp_path):
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_allclose(again.transform(NEW), model.transform(NEW), atol=1e-9)
    np.testing.assert_allclose(again.denoise(NEW), model.denoise(NEW), atol=1e-6)
    assert again.approximation_errors_ == model.approximation_errors_
    assert again.summary() == model.summary()


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("encoder", ["stationary", "projection"])
def test_a_file_of_a_model_with_landmarks_holds_no_samples(center, encoder, tmp_path):
    gram = Nystroem(40, deep=Fourier(100))
    model = ConstrDRKM(SIZES, gram=gram, center=center, encoder=encoder, axes="varimax", tol=1e-2).fit(X)
    for path in (tmp_path / "first", tmp_path / "second"):
        model.save(path)
        tensors, _ = container.read(path, "model", VERSION)
        shapes = [tuple(tensor.shape) for tensor in tensors.values()]
        assert X.shape not in shapes
        assert (len(X), 40) not in shapes
        again = load(path)
        np.testing.assert_allclose(again.codes_, model.codes_, atol=1e-12)
        np.testing.assert_allclose(again.transform(NEW), model.transform(NEW), atol=1e-8)
        np.testing.assert_allclose(again.denoise(NEW), model.denoise(NEW), atol=1e-6)
        np.testing.assert_allclose(
            again.inverse_transform(model.codes_), model.inverse_transform(model.codes_), atol=1e-6
        )
        assert again.summary() == model.summary()
        with pytest.raises(ValueError, match="X: the model was saved without its samples"):
            again.fitted_.X[:2]
        # A loaded model is saved again without loss.
        model = again


def test_a_file_of_centres_of_clusters_holds_no_sample_however_narrow_they_are(tmp_path):
    few = X[:, 10:14]
    for landmarks in ("uniform", "kmeans"):
        ConstrDRKM(SIZES, gram=Nystroem(10, landmarks, deep=Fourier(30)), tol=1e-2).fit(few).save(tmp_path / landmarks)
        tensors, _ = container.read(tmp_path / landmarks, "model", VERSION)
        assert ("X" in tensors) == (landmarks == "uniform")
        held = torch.cat([tensor.double() for tensor in tensors.values() if tensor.ndim == 2 and tensor.shape[1] == 4])
        found = (held[:, None] == torch.from_numpy(few)).all(dim=2).any()
        assert bool(found) == (landmarks == "uniform")


def test_a_file_of_narrow_samples_without_its_landmarks_is_refused(tmp_path):
    ConstrDRKM(SIZES, gram=Nystroem(10, deep=Fourier(30)), tol=1e-2).fit(X[:, 10:14]).save(tmp_path / "model")
    tensors, header = container.read(tmp_path / "model", "model", VERSION)
    landmarks = tensors.pop("kernel0.landmarks")
    for instead in ({}, {"kernel0.landmarks": landmarks[:-1]}):
        container.write(tmp_path / "bad", {**tensors, **instead}, header)
        with pytest.raises(ValueError, match=r"is damaged.*kernel0\.landmarks: expected"):
            load(tmp_path / "bad")


def test_a_file_of_a_basis_that_is_wider_than_its_space_is_refused_before_the_square_of_its_width_is_formed(tmp_path):
    path, width = tmp_path / "model", 60_000
    ConstrDRKM(SIZES, gram=Nystroem(40, deep=Fourier(30)), tol=1e-2).fit(X).save(path)
    tensors, header = container.read(path, "model", VERSION)
    rows = tensors["kernel0.factor"].shape[1]
    zeros = {name: torch.zeros(len(tensors[name]), width).double() for name in ("first.phi", "first.basis")}
    container.write(path, {**tensors, **zeros}, header)
    with pytest.raises(ValueError, match=f"first.basis: expected at most {rows} columns, one per feature, got {width}"):
        load(path)


def test_files_that_hold_their_samples_are_read_as_ever(tmp_path, monkeypatch):
    for room in ("training.run", "inference.inference"):
        monkeypatch.setattr(f"drkm.{room}.without_samples", lambda fitted, first: (fitted, first))
    model = ConstrDRKM(SIZES, gram=Nystroem(40, deep=Fourier(100)), tol=1e-3).fit(X)
    codes = model.transform(NEW)
    model.save(tmp_path / "old")
    tensors, header = container.read(tmp_path / "old", "model", VERSION)
    np.testing.assert_array_equal(tensors["X"], X)
    # Their factor was always written.
    del header["kernels"][0]["formed"]
    tensors["kernel0.factor"] = model.kernels_[0].factor
    container.write(tmp_path / "old", tensors, {**header, "version": 3})
    # Sums over samples use one thread after loading a file, and may use several after a fit.
    monkeypatch.undo()
    np.testing.assert_allclose(load(tmp_path / "old").transform(NEW), codes, atol=1e-9)


@pytest.mark.parametrize("gram", [Fourier(100), Nystroem(40, deep=Fourier(100))], ids=lambda gram: gram.name)
@pytest.mark.parametrize("kernel", ["rbf", Matern(1.5, 4.0)], ids=str)
def test_frequencies_are_drawn_again_and_read_from_files_that_hold_them(gram, kernel, tmp_path):
    model = ConstrDRKM(SIZES, kernel=kernel, gram=gram, eta=1.0, tol=1e-2, dtype="float32").fit(X)
    model.save(tmp_path / "model")
    tensors, header = container.read(tmp_path / "model", "model", VERSION)
    assert not any("frequencies" in name for name in tensors)
    # As earlier versions wrote it.
    for layer, kernel in enumerate(model.kernels_):
        if isinstance(kernel, FourierFeatures):
            del header["kernels"][layer]["draw"], tensors[f"kernel{layer}.lengths"]
            tensors[f"kernel{layer}.frequencies"] = kernel.frequencies
    container.write(tmp_path / "old", tensors, {**header, "version": 1 if "X" in tensors else 2})
    for again in (load(tmp_path / "model"), load(tmp_path / "old"), pickle.loads(pickle.dumps(model))):
        for mine, theirs in zip(again.kernels_, model.kernels_, strict=True):
            if isinstance(theirs, FourierFeatures):
                assert torch.equal(mine.frequencies, theirs.frequencies)
        np.testing.assert_array_equal(again.transform(NEW), model.transform(NEW))


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("draw: inputs: ", lambda tensors, draw: draw.update(inputs=10**9)),
        ("draw: random_state: ", lambda tensors, draw: draw.update(random_state=-1)),
        ("draw: degrees: ", lambda tensors, draw: draw.update(degrees=0)),
        ("draw: orthogonal: ", lambda tensors, draw: draw.pop("orthogonal")),
        ("does not draw the frequencies of the fit", lambda tensors, draw: draw.update(random_state=5)),
        ("does not draw the frequencies of the fit", lambda tensors, draw: draw.update(degrees=3.0)),
        ("kernel0.lengths: ", lambda tensors, draw: tensors.pop("kernel0.lengths")),
        ("kernel0.lengths: ", lambda tensors, draw: tensors.update({"kernel0.frequencies": torch.ones(64, 2)})),
        ("kernel0.lengths: ", lambda tensors, draw: tensors.update({"kernel0.lengths": torch.ones(3, 2)})),
        (
            "kernel0.lengths: ",
            lambda tensors, draw: tensors.update({"kernel0.lengths": tensors["kernel0.lengths"][1:]}),
        ),
        (
            "kernel0.lengths: ",
            lambda tensors, draw: tensors.update({"kernel0.lengths": tensors["kernel0.lengths"][:-1]}),
        ),
        ("draw: count: ", lambda tensors, draw: draw.update(count=0)),
        ("draw: count: expected an integer from 1 to 10000000, ", lambda tensors, draw: draw.update(count=10**12)),
    ],
)
def test_a_forged_draw_of_frequencies_is_refused(part, change, tmp_path):
    ConstrDRKM(SIZES, gram=Fourier(50), tol=1e-2).fit(X).save(tmp_path / "model")
    tensors, header = container.read(tmp_path / "model", "model", VERSION)
    change(tensors, header["kernels"][0]["draw"])
    container.write(tmp_path / "model", tensors, header)
    with pytest.raises(ValueError, match="model is damaged") as caught:
        load(tmp_path / "model")
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_without_samples_and_landmarks_is_damaged(tmp_path):
    ConstrDRKM(SIZES, gram=Nystroem(40, deep=Fourier(100)), tol=1e-2).fit(X).save(tmp_path / "model")
    tensors, header = container.read(tmp_path / "model", "model", VERSION)
    for name in ("first.phi", "first.basis", "first.lengths", "largest", "kernel0.factor"):
        container.write(tmp_path / "bad", {key: value for key, value in tensors.items() if key != name}, header)
        with pytest.raises(ValueError, match="damaged"):
            load(tmp_path / "bad")
    container.write(tmp_path / "bad", {**tensors, "first.phi": tensors["first.phi"][:-1]}, header)
    with pytest.raises(ValueError, match="damaged"):
        load(tmp_path / "bad")


ALL = {"n_components": SIZES, "gram": Nystroem(1000, deep=Fourier(100)), "tol": 1e-2}


@pytest.mark.parametrize("options", [{}, {"dtype": "float32", "center": True}, {"learn_bandwidth": True}], ids=str)
@pytest.mark.filterwarnings("ignore:ConstrDRKM. the tolerance is reached:sklearn.exceptions.ConvergenceWarning")
def test_landmarks_that_are_the_samples_are_put_away_once_and_their_factor_is_formed_at_first_use(options, tmp_path):
    few = X[:, :6]
    model = ConstrDRKM(**ALL, **options).fit(few)
    codes, points = model.transform(NEW[:, :6]), model.denoise(NEW[:, :6])
    model.save(tmp_path / "model")
    tensors, _ = container.read(tmp_path / "model", "model", VERSION)
    assert [name for name, tensor in tensors.items() if len(X) in tensor.shape] == ["H", "X", "residual"]
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert "factor" not in vars(again.kernels_[0])
        assert again.summary() == model.summary()
        np.testing.assert_array_equal(again.codes_, model.codes_)
        np.testing.assert_array_equal(again.transform(NEW[:, :6]), codes)
        np.testing.assert_array_equal(again.denoise(NEW[:, :6]), points)
        again.save(tmp_path / "again")
        written, _ = container.read(tmp_path / "again", "model", VERSION)
        assert written.keys() == tensors.keys()


def test_many_landmarks_that_are_the_samples_are_put_away_with_their_factor(tmp_path, monkeypatch):
    monkeypatch.setattr("drkm.fitted.FORMED_AGAIN", len(X) ** 3 - 1)
    model = ConstrDRKM(**ALL).fit(X)
    model.save(tmp_path / "model")
    assert {"kernel0.factor", "first.phi"} <= container.read(tmp_path / "model", "model", VERSION)[0].keys()
    np.testing.assert_array_equal(load(tmp_path / "model").transform(NEW), model.transform(NEW))


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("kernel0.factor: ", lambda tensors, kernel: tensors.update({"kernel0.factor": torch.ones(120, 8)})),
        ("kernel0.factor: ", lambda tensors, kernel: tensors.pop("X")),
        ("kernel0.landmarks: ", lambda tensors, kernel: kernel.pop("formed")),
        ("kernel0.landmarks: ", lambda tensors, kernel: kernel.update(formed=False)),
        ("kernel0.landmarks: ", lambda tensors, kernel: tensors.update({"kernel0.landmarks": torch.ones(120, 3)})),
        ("formed: ", lambda tensors, kernel: kernel.update(formed="yes")),
    ],
)
def test_a_forged_file_of_landmarks_that_are_the_samples_is_refused(part, change, tmp_path):
    ConstrDRKM(**ALL).fit(X).save(tmp_path / "model")
    tensors, header = container.read(tmp_path / "model", "model", VERSION)
    change(tensors, header["kernels"][0])
    container.write(tmp_path / "model", tensors, header)
    with pytest.raises(ValueError, match="model is damaged") as caught:
        load(tmp_path / "model")
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("axes", ["varimax", "ica", None])
def test_axes_are_free_below_fourier_features(axes):
    model = ConstrDRKM(SIZES, gram=STRATEGIES["nystroem"], axes=axes, tol=1e-8, max_iter=5000).fit(X)
    assert np.abs(model.transform(X) - model.codes_).max() <= 1e-6
    eye = np.abs(model._inference.rotation.numpy() - np.eye(sum(SIZES))).max() <= 1e-12
    assert eye == (axes is None)


@pytest.mark.parametrize("center", [False, True])
def test_all_samples_as_landmarks_give_the_exact_model(center):
    exact = ConstrDRKM(SIZES, gram="dense", center=center, tol=1e-9).fit(X)
    model = ConstrDRKM(SIZES, gram=Nystroem(1000, deep=Dense()), center=center, tol=1e-9).fit(X)
    assert model.approximation_errors_[0] <= 1e-10
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-9)
    np.testing.assert_allclose(model.codes_, exact.codes_, atol=1e-5)
    np.testing.assert_allclose(model.transform(NEW), exact.transform(NEW), atol=1e-4)
    np.testing.assert_allclose(model.denoise(NEW), exact.denoise(NEW), atol=1e-3)


@pytest.mark.parametrize("kernel", [RBF(), Laplacian(), Matern(1.5)], ids=lambda kernel: type(kernel).__name__)
def test_the_energy_is_near_the_exact_one(kernel):
    samples = structured(300)
    kernels = [kernel, RBF()]
    exact = ConstrDRKM(SIZES, kernel=kernels, eta=1.0, gram="dense", tol=1e-5).fit(samples)
    approximate = Nystroem(150, deep=Fourier(1000))
    model = ConstrDRKM(SIZES, kernel=kernels, eta=1.0, gram=approximate, tol=1e-5).fit(samples)
    J = dense_energy(samples, exact.kernels_, SIZES, (1.0, 1.0))
    assert model.objective_ == pytest.approx(exact.objective_, rel=0.02)
    assert J(model.fitted_.result.H).item() == pytest.approx(exact.objective_, rel=0.02)


@pytest.mark.parametrize("gram", [Nystroem(30, deep=Fourier(100)), Fourier(100)], ids=["nystroem", "fourier"])
@pytest.mark.parametrize("center", [False, True])
def test_the_gradient_in_the_bandwidths_is_the_limit_of_differences(gram, center, monkeypatch):
    # Features of another bandwidth are made from the samples.
    monkeypatch.setattr("drkm.training.run.without_samples", lambda fitted, first: (fitted, first))
    energy = energy_of(ConstrDRKM(SIZES, gram=gram, center=center, tol=1e-2).fit(X).fitted_)
    H = torch.linalg.qr(torch.from_numpy(np.random.default_rng(0).standard_normal((len(X), sum(SIZES)))))[0]
    kernels, h = energy.kernels, 1e-5
    for layer, kernel in enumerate(kernels):
        sides = []
        for step in (h, -h):
            moved = list(kernels)
            moved[layer] = kernel.with_parameters(sigma2=kernel.sigma2 * np.exp(step))
            energy.set_kernels(moved)
            sides.append(energy.value(H))
        energy.set_kernels(kernels)
        expected = (sides[0] - sides[1]) / (2 * h)
        assert energy.bandwidth_gradient(H, layer) == pytest.approx(expected, rel=1e-4, abs=1e-7)


@pytest.mark.filterwarnings("ignore:ConstrDRKM. the tolerance is reached:sklearn.exceptions.ConvergenceWarning")
def test_learned_bandwidths_belong_to_the_kernels_that_are_approximated():
    model = ConstrDRKM(SIZES, gram=Nystroem(30, deep=Fourier(100)), learn_bandwidth=True, tol=1e-4).fit(X)
    begin = ConstrDRKM(SIZES, gram=Nystroem(30, deep=Fourier(100)), tol=1e-1).fit(X)
    assert model.objective_ < begin.objective_
    assert model.kernels_[1].kernel.sigma2 != begin.kernels_[1].kernel.sigma2
    assert np.abs(model.transform(X) - model.codes_).max() <= 1e-3


def test_encoding_computes_the_features_of_new_points_alone(monkeypatch):
    model = ConstrDRKM(SIZES, gram=Nystroem(30, deep=Fourier(100)), tol=1e-4).fit(X)
    seen = []
    features = NystroemFeatures.features
    monkeypatch.setattr(NystroemFeatures, "features", lambda kernel, x: seen.append(len(x)) or features(kernel, x))
    model.transform(NEW)
    model.denoise(NEW)
    assert seen == [len(NEW), len(NEW)]


def test_pixels_give_the_same_model_as_floats():
    pixels = np.random.default_rng(0).integers(0, 2, (60, 30)).astype(np.uint8)
    gram = Nystroem(20, deep=Fourier(100))
    expected = ConstrDRKM(SIZES, gram=gram, tol=1e-5).fit(pixels.astype(np.float64))
    for given in (pixels, torch.from_numpy(pixels)):
        model = ConstrDRKM(SIZES, gram=gram, tol=1e-5).fit(given)
        np.testing.assert_array_equal(np.asarray(model.codes_), expected.codes_)
        np.testing.assert_array_equal(np.asarray(model.transform(given)), expected.transform(pixels))


def test_names_and_objects_are_parameters_like_others():
    assert ConstrDRKM(SIZES, gram="nystroem").fit(X).kernels_[0].landmarks.shape == X.shape
    copied = clone(ConstrDRKM(gram=Nystroem(30)))
    assert copied.gram == Nystroem(30)
    prints = {fingerprint(torch.from_numpy(X), {"gram": gram}) for gram in (Nystroem(30), Nystroem(31), Fourier())}
    assert len(prints) == 3


def test_kernels_that_cannot_be_approximated_give_one_sentence():
    with pytest.raises(ValueError, match=r"^gram: Fourier features need a kernel of distances .* in layer 2$"):
        ConstrDRKM(SIZES, kernel=["rbf", "polynomial"], gram="nystroem").fit(X)
    with pytest.raises(ValueError, match=r"^gram: Nyström features need a kernel that is a function of two points"):
        ConstrDRKM(3, kernel="precomputed", gram="nystroem").fit(X @ X.T)


@pytest.mark.parametrize("first", [RBF(20.0), Cosine()], ids=repr)
def test_samples_in_a_file_give_the_model_of_samples_in_memory(first, tmp_path):
    np.save(tmp_path / "X.npy", X)
    options = {"kernel": [first, RBF()], "gram": Nystroem(30, deep=Fourier(100)), "tol": 1e-5}
    expected = ConstrDRKM(SIZES, **options).fit(X)
    model = ConstrDRKM(SIZES, **options).fit(tmp_path / "X.npy")
    np.testing.assert_allclose(model.codes_, expected.codes_, atol=1e-10)
    np.testing.assert_allclose(model.transform(tmp_path / "X.npy"), expected.transform(X), atol=1e-8)
    np.testing.assert_allclose(model.denoise(NEW), expected.denoise(NEW), atol=1e-8)


def test_the_cost_grows_with_samples_and_landmarks_not_with_their_square():
    def cost(n, m):
        return Nystroem(m).cost(Workload(n, 50, SIZES, (RBF(1.0), RBF(1.0))))

    small, twice = cost(100_000, 1000), cost(200_000, 1000)
    assert twice.flops == 2 * small.flops
    assert small.bytes < twice.bytes < 2 * small.bytes
    assert cost(100_000, 2000).bytes > small.bytes
    assert small.bytes < Dense().cost(Workload(100_000, 50, SIZES, (RBF(1.0), RBF(1.0)))).bytes / 10


def test_what_does_not_fit_exactly_is_offered_as_an_approximation_it_serves():
    work = Workload(1000, 50, SIZES, (RBF(1.0), RBF(1.0)))
    assert Nystroem().serves(work)
    assert Fourier().serves(work)
    assert not Nystroem().serves(Workload(1000, 50, SIZES, (RBF(1.0), Polynomial())))
    assert Nystroem(deep=Dense()).serves(Workload(1000, 50, SIZES, (RBF(1.0), Polynomial())))
    assert not Nystroem().serves(Workload(1000, 1000, SIZES, (Precomputed(), RBF(1.0))))
    assert Nystroem().serves(Workload(1000, 50, SIZES[:1], (Polynomial(),)))


@pytest.mark.gpu
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_gpu_gives_the_model_of_a_cpu(name):
    # Without axes, because features of a deep layer depend on the basis; from a common start, because otherwise
    # rounding alone may lead to another optimum.
    options = {"gram": STRATEGIES[name], "eta": 1.0, "tol": 1e-8, "max_iter": 5000, "dtype": "float64", "axes": None}
    expected = ConstrDRKM(SIZES, device="cpu", **options).fit(X)
    options["init"] = expected.codes_
    model = ConstrDRKM(SIZES, device="cuda", **options).fit(X)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    np.testing.assert_allclose(model.transform(NEW), expected.transform(NEW), atol=1e-4)
    single = ConstrDRKM(SIZES, device="cuda", **{**options, "dtype": "float32", "tol": 1e-4}).fit(X)
    assert single.objective_ == pytest.approx(expected.objective_, rel=1e-3)
