import json
import pickle
import struct

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from drkm.baselines import BetaVAE, _vae_training
from drkm.baselines._vae_network import VAENetwork
from drkm.datasets import load_dsprites

QUICK = {"max_steps": 6, "check_every": 3, "batch_size": 8, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def images():
    return load_dsprites(source="rendered").sample(40, random_state=0)[0]


@pytest.fixture(scope="module")
def model(images):
    return BetaVAE(n_latents=4, **QUICK).fit(images)


def test_architecture_is_the_published_one():
    network = VAENetwork(3, 10)
    convolutions = [m for m in network.encoder if isinstance(m, torch.nn.Conv2d)]
    assert [c.out_channels for c in convolutions] == [32, 32, 64, 64, 256]
    assert [c.kernel_size for c in convolutions] == [(4, 4)] * 5
    assert [c.stride for c in convolutions] == [(2, 2)] * 4 + [(4, 4)]
    assert network.encoder[-1].out_features == 20
    mirrored = [m for m in network.decoder if isinstance(m, torch.nn.ConvTranspose2d)]
    assert [c.out_channels for c in mirrored] == [64, 64, 32, 32, 3]
    assert [c.stride for c in mirrored] == [(4, 4)] + [(2, 2)] * 4
    network.initialise(torch.Generator().manual_seed(0))
    assert network.decoder(torch.zeros(2, 10)).shape == (2, 3, 64, 64)
    assert network.encode(torch.zeros(2, 3, 64, 64))[0].shape == (2, 10)
    relus = [sum(isinstance(m, torch.nn.ReLU) for m in half) for half in (network.encoder, network.decoder)]
    assert relus == [5, 5]


def test_losses_agree_with_torch_distributions():
    network = VAENetwork(1, 3)
    network.initialise(torch.Generator().manual_seed(0))
    x, noise = torch.rand(5, 1, 64, 64).round(), torch.randn(5, 3)
    with torch.no_grad():
        reconstruction, divergence = network(x, noise)
        mean, log_variance = network.encode(x)
        posterior = torch.distributions.Normal(mean, torch.exp(0.5 * log_variance))
        kl = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0.0, 1.0)).sum(1)
        logits = network.decoder(posterior.mean + posterior.stddev * noise)
        likelihood = torch.distributions.Bernoulli(logits=logits).log_prob(x).sum((1, 2, 3))
    torch.testing.assert_close(divergence, kl, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(reconstruction, -likelihood, rtol=1e-5, atol=1e-3)


def test_initial_weights_are_those_of_pytorch_in_distribution():
    network = VAENetwork(1, 3)
    network.initialise(torch.Generator().manual_seed(0))
    for module in network.modules():
        if isinstance(module, torch.nn.Conv2d | torch.nn.ConvTranspose2d):
            reference = type(module)(module.in_channels, module.out_channels, 4, stride=module.stride)
            assert float(module.weight.detach().std()) == pytest.approx(float(reference.weight.detach().std()), rel=0.2)


def test_training_learns(images):
    model = BetaVAE(max_steps=30, check_every=5, batch_size=8, random_state=0, device="cpu").fit(images)
    losses = [record["held_out_loss"] for record in model.history_]
    assert losses[-1] < 0.5 * losses[0]
    assert model.elbo(images) < 0
    assert model.score(images) < 0


def test_fitted_attributes(model, images):
    assert model.n_iter_ == 6
    assert model.best_step_ in (3, 6)
    assert model.seconds_ > 0
    assert model.image_shape_ == (64, 64)
    assert model.n_features_in_ == 4096
    assert not model.converged_
    assert [record["step"] for record in model.history_] == [3, 6]
    for record in model.history_:
        assert record["held_out_loss"] == pytest.approx(record["reconstruction"] + 4 * record["divergence"])
        assert record["elbo"] == pytest.approx(-record["reconstruction"] - record["divergence"])


def test_codes_and_images_have_the_layout_of_the_input(model, images):
    codes = model.transform(images)
    assert codes.shape == (40, 4)
    decoded = model.inverse_transform(codes)
    assert decoded.shape == (40, 64, 64)
    assert decoded.min() >= 0
    assert decoded.max() <= 1
    flat = BetaVAE(n_latents=4, **QUICK).fit(images.reshape(40, -1))
    assert flat.inverse_transform(codes).shape == (40, 4096)
    np.testing.assert_array_equal(flat.transform(images.reshape(40, -1)), codes)


def test_floats_and_bytes_give_the_same_codes(model, images):
    np.testing.assert_allclose(model.transform(images / 255.0), model.transform(images), atol=1e-6)
    np.testing.assert_allclose(model.transform(images > 0), model.transform(images), atol=1e-6)
    np.testing.assert_allclose(model.transform(torch.tensor(images)), model.transform(images), atol=1e-6)


def test_colour_images(images):
    colour = np.repeat(images[..., None], 3, axis=-1)
    model = BetaVAE(n_latents=3, **QUICK).fit(colour)
    assert model.image_shape_ == (64, 64, 3)
    assert model.inverse_transform(model.transform(colour)).shape == colour.shape
    rows = BetaVAE(n_latents=3, image_shape=(64, 64, 3), **QUICK).fit(colour.reshape(40, -1))
    np.testing.assert_array_equal(rows.transform(colour.reshape(40, -1)), model.transform(colour))
    assert BetaVAE(image_shape=(64, 64, 1), **QUICK).fit(images[..., None]).image_shape_ == (64, 64)


def test_traverse_moves_one_latent(model, images):
    values = np.array([-2.0, 0.0, 2.0])
    base = model.transform(images[:1])[0]
    codes = np.repeat(base[None], 3, axis=0)
    codes[:, 2] = values
    np.testing.assert_array_equal(model.traverse(2, values, base), model.inverse_transform(codes))
    np.testing.assert_array_equal(model.traverse(2, values, images[0]), model.inverse_transform(codes))
    assert model.traverse(0, [0.0])[0] == pytest.approx(model.inverse_transform(np.zeros((1, 4)))[0])


def test_sampling_follows_its_seed(model):
    assert model.sample(3, random_state=0).shape == (3, 64, 64)
    np.testing.assert_array_equal(model.sample(3, random_state=0), model.sample(3, random_state=0))


def test_one_seed_gives_one_model_and_global_seeds_are_left_alone(model, images):
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    again = BetaVAE(n_latents=4, **QUICK).fit(images)
    assert torch.equal(torch_state, torch.get_rng_state())
    np.testing.assert_array_equal(numpy_state, np.random.get_state()[1])  # noqa: NPY002
    np.testing.assert_array_equal(model.transform(images), again.transform(images))
    other = BetaVAE(n_latents=4, **(QUICK | {"random_state": 1})).fit(images)
    assert not np.array_equal(model.transform(images), other.transform(images))


def test_batches_of_any_size_give_the_same_codes(model, images):
    many = np.concatenate([images] * 8)
    codes = model.transform(many)
    np.testing.assert_allclose(codes, np.concatenate([model.transform(images)] * 8), atol=1e-5)
    np.testing.assert_allclose(codes[:1], model.transform(images[:1]), atol=1e-5)


def test_early_stop_keeps_the_best_weights(images):
    # At this rate the loss soon oscillates: training must stop there and return the best step.
    model = BetaVAE(
        max_steps=400,
        check_every=5,
        patience=15,
        learning_rate=5e-3,
        batch_size=8,
        random_state=0,
        device="cpu",
    ).fit(images)
    losses = {record["step"]: record["held_out_loss"] for record in model.history_}
    assert model.converged_
    assert model.n_iter_ < 400
    assert losses[model.best_step_] == min(losses.values())
    assert model.n_iter_ - model.best_step_ >= 15


def test_time_limit_is_kept(images):
    model = BetaVAE(max_seconds=0.3, random_state=0, device="cpu").fit(images)
    assert model.n_iter_ < 10_000
    assert not model.converged_
    assert model.seconds_ < 20


def interrupt_at(monkeypatch, step: int) -> None:
    """Press Ctrl-C in the given step."""
    loss, steps = _vae_training._loss, iter(range(1, step + 1))

    def pressed(*arguments):
        if next(steps) == step:
            raise KeyboardInterrupt
        return loss(*arguments)

    monkeypatch.setattr(_vae_training, "_loss", pressed)


def test_ctrl_c_keeps_the_best_weights(images, model, monkeypatch):
    interrupt_at(monkeypatch, step=8)
    with pytest.warns(ConvergenceWarning, match="interrupted, the weights of step 6 are kept"):
        found = BetaVAE(n_latents=4, **{**QUICK, "max_steps": 100}).fit(images)
    assert not found.converged_
    np.testing.assert_array_equal(found.transform(images), model.transform(images))


def test_ctrl_c_before_the_first_check_leaves_nothing(images, monkeypatch):
    interrupt_at(monkeypatch, step=2)
    unfitted = BetaVAE(**QUICK)
    with pytest.raises(KeyboardInterrupt):
        unfitted.fit(images)
    assert not hasattr(unfitted, "network_")


def test_without_held_out_images_all_steps_are_taken(images):
    model = BetaVAE(validation_fraction=0, **QUICK).fit(images)
    assert model.best_step_ == model.n_iter_ == 6
    assert "held_out_loss" not in model.history_[0]


def test_progress_bar_is_shown_when_asked(images, capsys):
    BetaVAE(**QUICK).fit(images)
    assert capsys.readouterr().err == ""
    BetaVAE(verbose=1, **QUICK).fit(images)
    assert "6/6" in capsys.readouterr().err


def test_saved_models_come_back_the_same(model, images, tmp_path):
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = BetaVAE.load(path, device="cpu")
    np.testing.assert_array_equal(again.transform(images), model.transform(images))
    np.testing.assert_array_equal(again.sample(2, 0), model.sample(2, 0))
    assert again.get_params() == model.get_params()
    assert again.history_ == model.history_
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_generator_as_random_state_can_be_saved(images, tmp_path):
    model = BetaVAE(**(QUICK | {"random_state": np.random.RandomState(0)})).fit(images)
    model.save(tmp_path / "model")
    assert BetaVAE.load(tmp_path / "model").random_state is None


def test_damaged_and_foreign_files_are_refused(model, images, tmp_path):
    path = tmp_path / "model.safetensors"
    model.save(path)
    content = bytearray(path.read_bytes())
    header = struct.unpack("<Q", content[:8])[0]
    codes = model.transform(images[:1])
    rng = np.random.default_rng(0)
    for position in np.concatenate([np.arange(8), rng.integers(8, header, 150)]):
        kept = content[position]
        content[position] ^= 1 << rng.integers(8)
        path.write_bytes(content)
        content[position] = kept
        try:
            again = BetaVAE.load(path, device="cpu")
        except ValueError as error:
            assert path.name in str(error) and "\n" not in str(error)  # noqa: PT017, PT018
        else:
            assert again.transform(images[:1]).shape == codes.shape
    for foreign in (b"", b"hello", bytes(content[:5000]), pickle.dumps({"a": 1})):
        path.write_bytes(foreign)
        with pytest.raises(ValueError, match=r"path: .*model.safetensors is truncated or not a drkm BetaVAE"):
            BetaVAE.load(path)
    other = json.dumps({"kind": "model", "version": 1})
    empty = json.dumps({"__metadata__": {"drkm": other}}).encode()
    path.write_bytes(struct.pack("<Q", len(empty)) + empty)
    with pytest.raises(
        ValueError, match=r"model\.safetensors is not a drkm BetaVAE but a model, which drkm.load reads"
    ):
        BetaVAE.load(path)
    with pytest.raises(FileNotFoundError, match=r"path: there is no file .*nothing"):
        BetaVAE.load(tmp_path / "nothing")


def test_scikit_learn_conventions(model, images):
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(images)
    with pytest.raises(NotFittedError):
        copy.inverse_transform(np.zeros((1, 4)))
    # Estimators can be pickled in memory, as joblib needs; our file formats use no pickle.
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(images), model.transform(images))
    assert BetaVAE(n_latents=4, **QUICK).fit_transform(images).shape == (40, 4)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_latents": 0}, "n_latents: expected an integer of at least 1, got 0"),
        ({"n_latents": 2.5}, "n_latents"),
        ({"beta": -1}, "beta: expected a number of at least 0, got -1"),
        ({"beta": float("nan")}, "beta"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"batch_size": 0}, "batch_size"),
        ({"max_steps": 0}, "max_steps"),
        ({"check_every": 0}, "check_every"),
        ({"patience": 0}, "patience"),
        ({"validation_fraction": 1.0}, r"validation_fraction: expected a number in \[0, 1\), got 1.0"),
        ({"max_seconds": 0}, "max_seconds"),
        ({"device": "toaster"}, "device: expected 'auto' or an available device, got 'toaster'"),
        ({"image_shape": (32, 32)}, r"image_shape: expected None, \(64, 64\) or \(64, 64, 3\), got \(32, 32\)"),
        ({"image_shape": 64}, "image_shape"),
        ({"image_shape": (64, 64, 3)}, r"X: expected images of shape \(64, 64, 3\)"),
        ({"learning_rate": 1e30}, "learning_rate: training diverged"),
        ({"random_state": "dice"}, "random_state: expected an integer .* got 'dice'"),
    ],
)
def test_bad_parameters_are_refused(parameters, sentence, images):
    with pytest.raises((TypeError, ValueError), match=sentence):
        BetaVAE(**(QUICK | parameters)).fit(images)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.zeros((5, 32, 32), np.uint8), r"got shape \(5, 32, 32\)"),
        (np.zeros((5, 100)), r"got shape \(5, 100\)"),
        (np.zeros(4096), r"got shape \(4096,\)"),
        (np.zeros((0, 64, 64)), "at least one image"),
        (np.full((5, 64, 64), 255.0), r"expected values in \[0, 1\] of images .*, got 255 to 255 in float64"),
        (np.full((5, 64, 64), np.nan), r"expected values in \[0, 1\] of images .*, got nan"),
        (np.full((5, 64, 64), "a"), "expected uint8 or float images"),
        (np.zeros((1, 64, 64)), "validation_fraction: 0.1 of 1 images leaves none to train on"),
    ],
)
def test_bad_images_are_refused(X, sentence):
    with pytest.raises(ValueError, match=sentence):
        BetaVAE(**QUICK).fit(X)


def test_bad_codes_are_refused(model):
    with pytest.raises(ValueError, match=r"Z: expected finite codes of shape \(n, 4\), got shape \(2, 3\)"):
        model.inverse_transform(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="Z: expected finite codes"):
        model.inverse_transform(np.full((2, 4), np.nan))
    with pytest.raises(ValueError, match="index: expected an integer from 0 to 3, got 4"):
        model.traverse(4, [0.0])
    with pytest.raises(ValueError, match="values: expected a 1-d array"):
        model.traverse(0, [])
    with pytest.raises(ValueError, match=r"values: expected a 1-d array of finite numbers, at least one, got \[nan\]"):
        model.traverse(0, [np.nan])
    with pytest.raises(ValueError, match="Z: expected an array of numbers, got 'a'"):
        model.inverse_transform("a")
    with pytest.raises(ValueError, match="X: expected images of shape"):
        model.traverse(0, [0.0], base=np.zeros(7))
    with pytest.raises(ValueError, match="n: expected an integer of at least 1"):
        model.sample(0)
    with pytest.raises(ValueError, match="X: expected images of shape"):
        model.transform(np.zeros((2, 64, 64, 3)))


@pytest.mark.gpu
def test_gpu_and_cpu_agree(images):
    on_cpu = BetaVAE(n_latents=4, **QUICK).fit(images)
    on_gpu = BetaVAE(n_latents=4, **(QUICK | {"device": "cuda"})).fit(images)
    np.testing.assert_allclose(on_gpu.transform(images), on_cpu.transform(images), atol=0.05)
    again = BetaVAE(n_latents=4, **(QUICK | {"device": "cuda"})).fit(images)
    np.testing.assert_array_equal(again.transform(images), on_gpu.transform(images))
