"""The suite that every kernel inherits: it supplies a maker, an oracle from elsewhere, and its bad parameters."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dense_oracle import FreshMemory, draw, values
from drkm.kernels import Isotropic, Kernel
from drkm.kernels.base import BLOCK_ENTRIES

X = draw(23, 3, seed=1)
Y = draw(17, 3, seed=2)


class KernelSuite:
    #: bad parameters, the exception, and what its one sentence must contain
    bad: ClassVar[list[tuple[dict, type[Exception], list[str]]]] = []

    def make(self) -> Kernel:
        raise NotImplementedError

    def oracle(self, x: NDArray, y: NDArray) -> NDArray:
        """Return the kernel matrix, computed by another library or by hand."""
        raise NotImplementedError

    def test_values_equal_the_oracle(self):
        found = self.make()(X, Y)
        assert found.shape == (len(X), len(Y))
        np.testing.assert_allclose(found.numpy(), self.oracle(X.numpy(), Y.numpy()), rtol=1e-11, atol=1e-13)

    def test_values_equal_the_textbook_formula(self):
        torch.testing.assert_close(self.make()(X, Y), values(self.make(), X, Y), rtol=1e-11, atol=1e-13)

    def test_float32_values_are_right_to_float32(self):
        found = self.make()(X.float(), Y.float())
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.double(), values(self.make(), X, Y), rtol=3e-5, atol=3e-6)

    def test_gram_matrix_is_symmetric(self):
        K = self.make()(X, X)
        torch.testing.assert_close(K, K.T, rtol=1e-13, atol=1e-13)

    def test_gram_matrix_is_positive_semi_definite(self):
        K = self.make()(X, X)
        assert torch.linalg.eigvalsh(K)[0] >= -1e-12 * K.diagonal().sum()

    def test_diagonal_equals_that_of_the_matrix(self):
        torch.testing.assert_close(self.make().diagonal(X), self.make()(X, X).diagonal(), rtol=1e-7, atol=1e-7)

    def test_one_point_against_one_point_is_a_1x1_matrix(self):
        torch.testing.assert_close(self.make()(X[:1], Y[:1]), self.make()(X, Y)[:1, :1], rtol=1e-11, atol=1e-13)

    def test_inputs_are_left_as_they_were(self):
        x, y = X.clone(), Y.clone()
        kernel = self.make()
        kernel(x, y)
        kernel.diagonal(x)
        assert torch.equal(x, X)
        assert torch.equal(y, Y)

    def test_rotation_invariance_is_what_the_flag_says(self):
        kernel = self.make()
        R = torch.linalg.qr(draw(3, 3, seed=3))[0]
        moved = (kernel(X @ R, Y @ R) - kernel(X, Y)).abs().max()
        assert (moved < 1e-12) == kernel.rotation_invariant

    def test_resolving_a_kernel_of_numbers_changes_no_value(self):
        again = self.make().resolve(X, layer=1)
        assert torch.equal(again(X, Y), self.make()(X, Y))

    def test_describes_itself_in_one_line_with_its_name(self):
        line = self.make().describe()
        assert line.startswith(type(self.make()).__name__)
        assert "\n" not in line

    def test_bad_parameters_are_refused_with_one_sentence(self):
        # Every kernel with parameters must list bad ones.
        assert bool(self.bad) == bool(self.make().parameters)
        for parameters, error, words in self.bad:
            with pytest.raises(error) as raised:
                type(self.make())(**parameters)
            message = str(raised.value)
            assert "\n" not in message
            for word in words:
                assert word in message, (parameters, message)


class PairwiseSuite(KernelSuite):
    def test_jet_holds_the_derivatives_of_the_value(self):
        kernel = self.make()
        e = torch.linspace(-3.0, -0.05, 40, dtype=torch.float64)
        if not isinstance(kernel, Isotropic):
            e = -e
        h = 1e-4
        f, slope, bend = kernel.jet(e.clone(), 2)
        up, down = kernel.values(e + h), kernel.values(e - h)
        torch.testing.assert_close(f, kernel.values(e.clone()))
        torch.testing.assert_close(slope, (up - down) / (2 * h), rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(bend, (up - 2 * f + down) / h**2, rtol=1e-3, atol=1e-4)

    def test_jet_of_lower_order_is_the_beginning_of_the_longer_one(self):
        kernel = self.make()
        e = torch.linspace(-2.0, 0.0, 9, dtype=torch.float64)
        longest = kernel.jet(e.clone(), 2)
        for order in (0, 1):
            shorter = kernel.jet(e.clone(), order)
            assert len(shorter) == order + 1
            for a, b in zip(shorter, longest, strict=False):
                assert torch.equal(a, b)

    @pytest.mark.parametrize("order", [0, 1, 2])
    def test_jet_in_memory_of_the_caller_is_the_same_and_takes_no_other(self, order):
        kernel = self.make()
        e = torch.cat([draw(6, 5, seed=4).square().neg(), torch.zeros(1, 5)])
        expected = kernel.jet(e.clone(), order)
        room = [torch.full_like(e, torch.nan) for _ in range(kernel.rooms)]
        with FreshMemory(e, *room) as fresh:
            found = kernel.jet(e, order, room)
        assert fresh.count == 0
        for a, b in zip(found, expected, strict=True):
            assert torch.equal(a, b)

    def test_jet_without_memory_of_the_caller_carries_gradients(self):
        kernel = self.make()
        e = -(0.1 + draw(6, 5, seed=4).square()).requires_grad_()
        f, slope = kernel.jet(e * 1.0, 1)
        (expected,) = torch.autograd.grad(f.sum(), e, retain_graph=True)
        torch.testing.assert_close(slope, expected)

    def test_many_values_replace_their_exponents_block_by_block(self, monkeypatch):
        kernel = self.make()
        e = draw(23, 7, seed=4).square().neg()
        expected, by_jet = kernel.values(e.clone()), kernel.jet(e.clone(), 0)[0]
        monkeypatch.setitem(BLOCK_ENTRIES, "cpu", 40)
        found = kernel.values(e)
        assert torch.equal(found, expected)
        # On some CPUs exponentials come from numpy: both are accurate to the last bit or two.
        torch.testing.assert_close(found, by_jet, rtol=4 * torch.finfo(e.dtype).eps, atol=0)
        assert found.data_ptr() == e.data_ptr()

    def test_factors_multiply_to_the_exponent(self):
        kernel = self.make()
        exponent = kernel.factors(X)[0] @ kernel.factors(Y)[1].T
        torch.testing.assert_close(kernel.values(exponent), values(kernel, X, Y), rtol=1e-11, atol=1e-13)


class IsotropicSuite(PairwiseSuite):
    bad: ClassVar = [
        ({"sigma2": 0.0}, ValueError, ["sigma2", "0.0", "positive"]),
        ({"sigma2": -1.5}, ValueError, ["sigma2", "-1.5", "positive"]),
        ({"sigma2": float("nan")}, ValueError, ["sigma2", "nan", "positive"]),
        ({"sigma2": float("inf")}, ValueError, ["sigma2", "inf", "finite"]),
        ({"sigma2": "mean"}, ValueError, ["sigma2", "'mean'", "auto, median, scale"]),
        ({"sigma2": None}, TypeError, ["sigma2", "None", "positive number"]),
        ({"sigma2": True}, TypeError, ["sigma2", "True", "positive number"]),
        ({"sigma2": [1.0]}, TypeError, ["sigma2", "[1.0]", "positive number"]),
    ]

    def test_coincident_points_have_value_one(self):
        kernel = self.make()
        doubled = torch.cat([X, X])
        torch.testing.assert_close(kernel(X, doubled).diagonal(), torch.ones(len(X)).double(), rtol=0, atol=1e-7)

    def test_jet_is_finite_at_coincident_points_and_just_beyond(self):
        kernel = self.make()
        for part in kernel.jet(torch.tensor([0.0, 1e-17, -1e-300, -1e-18]).double(), 2):
            assert torch.isfinite(part).all()

    def test_values_far_from_the_origin_keep_their_digits(self):
        torch.testing.assert_close(self.make()(X + 1e4, Y + 1e4), values(self.make(), X, Y), rtol=1e-8, atol=1e-10)

    @pytest.mark.parametrize("outlier", [1e3, 1e4, 1e6])
    def test_no_value_is_above_one_however_far_out_a_point_is(self, outlier):
        far = torch.cat([outlier * X[:1], X]).float()
        assert (self.make()(far, far) <= 1).all()

    @pytest.mark.parametrize(("dtype", "spread"), [(torch.float32, 1e3), (torch.float64, 1e8)])
    def test_a_width_that_rounding_hides_is_refused(self, dtype, spread):
        kernel, points = self.make(), (spread * X).to(dtype)
        kind = str(dtype).removeprefix("torch.")
        with pytest.raises(ValueError, match=rf"sigma2: 1.7 is too narrow in {kind} for samples that are"):
            kernel.resolve(points, layer=1)
        kernel.resolve(0.03 * points, layer=1)

    @pytest.mark.parametrize(("dtype", "narrow"), [(torch.float32, 1e-7), (torch.float64, 1e-15)])
    def test_a_deep_width_that_rounding_hides_is_refused(self, dtype, narrow):
        codes = torch.eye(40, 4, dtype=dtype)
        kernel, kind = self.make().with_parameters(sigma2=narrow), str(dtype).removeprefix("torch.")
        with pytest.raises(ValueError, match=rf"sigma2: {narrow} is too narrow in {kind} for codes .* layer 2"):
            kernel.resolve(codes, layer=2)
        kernel.with_parameters(sigma2=100 * narrow).resolve(codes, layer=2)

    def test_a_learnable_bandwidth_can_be_replaced(self):
        kernel = self.make()
        assert kernel.has_bandwidth
        wider = kernel.with_parameters(sigma2=7.0)
        assert wider.sigma2 == wider.bandwidth == 7.0
        assert type(wider) is type(kernel)

    def test_median_rule_is_half_the_median_squared_distance(self):
        kernel = self.make().with_parameters(sigma2="median").resolve(X, layer=1)
        squared = [((a - b) ** 2).sum() for i, a in enumerate(X.numpy()) for b in X.numpy()[i + 1 :]]
        assert kernel.sigma2 == pytest.approx(0.5 * np.median(squared), rel=1e-12)

    def test_median_rule_looks_at_2000_evenly_spaced_rows(self):
        many = torch.zeros(4000, 1, dtype=torch.float64)
        many[2000:] = 3.0
        kernel = self.make().with_parameters(sigma2="median").resolve(many, layer=1)
        assert kernel.sigma2 == pytest.approx(4.5)

    def test_scale_rule_is_the_mean_squared_distance_of_all_pairs(self):
        kernel = self.make().with_parameters(sigma2="scale").resolve(X, layer=1)
        d2 = ((X[:, None] - X[None]) ** 2).sum(-1)
        assert kernel.sigma2 == pytest.approx(d2.mean().item(), rel=1e-12)

    def test_scale_rule_above_the_first_layer_is_twice_the_size_over_n(self):
        H = torch.linalg.qr(draw(40, 6))[0]
        assert self.make().with_parameters(sigma2="scale").resolve(H, layer=2).sigma2 == pytest.approx(12 / 40)

    def test_auto_rule_is_median_first_and_scale_above(self):
        auto = self.make().with_parameters(sigma2="auto")
        median = auto.with_parameters(sigma2="median")
        assert auto.resolve(X, layer=1) == median.resolve(X, layer=1)
        assert auto.resolve(X, layer=3).sigma2 == pytest.approx(2 * 3 / len(X))

    def test_median_rule_above_the_first_layer_says_what_to_use(self):
        with pytest.raises(ValueError, match=r'sigma2: "median".*layer 2.*"scale" or a positive number'):
            self.make().with_parameters(sigma2="median").resolve(X, layer=2)

    @pytest.mark.parametrize("rule", ["median", "scale", "auto"])
    def test_rules_give_a_positive_number_for_constant_and_duplicated_samples(self, rule):
        kernel = self.make().with_parameters(sigma2=rule)
        constant = torch.full((9, 2), 3.0, dtype=torch.float64)
        mostly = torch.cat([constant, constant[:1] + 1])
        assert kernel.resolve(constant, layer=1).sigma2 > 0
        assert kernel.resolve(mostly, layer=1).sigma2 > 0

    @pytest.mark.parametrize("rule", ["median", "scale"])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_rules_do_not_take_rounding_for_a_distance(self, rule, dtype):
        kernel = self.make().with_parameters(sigma2=rule)
        same = draw(1, 30).to(dtype).repeat(50, 1)
        assert kernel.resolve(same, layer=1).sigma2 == 1.0
        close = same + 20 * torch.finfo(dtype).eps * draw(50, 30).to(dtype)
        assert kernel.resolve(close, layer=1).sigma2 < 1e-3

    @pytest.mark.parametrize(("unit", "size"), [(1e-21, "small"), (1e21, "large")])
    def test_rules_say_that_the_precision_cannot_hold_squared_distances(self, unit, size):
        with pytest.raises(ValueError, match=f"X: squared distances are too {size} for float32, divide"):
            self.make().with_parameters(sigma2="auto").resolve(X.float() * unit, layer=1)
