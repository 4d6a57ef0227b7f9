from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from drkm.inference.preimage.descent import Derivatives, Minima, _newton, minimise


def evaluation(function: Callable[[torch.Tensor], torch.Tensor], *, hessian: bool) -> Callable[..., Derivatives]:
    """The value of each row with its derivatives, from automatic differentiation."""

    def evaluate(points: torch.Tensor, index: torch.Tensor) -> Derivatives:
        evaluate.seen.append(points.clone())
        first = torch.func.grad(function)
        value, gradient = torch.func.vmap(function)(points), torch.func.vmap(first)(points)
        second = torch.func.vmap(torch.func.jacrev(first))(points) if hessian else None
        return Derivatives(value, gradient, torch.ones_like(value), second)

    evaluate.seen = []
    return evaluate


def double_well(x: torch.Tensor) -> torch.Tensor:
    """Minima at (±1, 0), where the Hessian is diag(2, 1); it is indefinite for |x_0| < 1/√3."""
    return 0.25 * (x[0] ** 2 - 1) ** 2 + 0.5 * x[1] ** 2


def valley(x: torch.Tensor) -> torch.Tensor:
    """Rosenbrock's function, with its minimum at (1, 1)."""
    return (1 - x[0]) ** 2 + 20 * (x[1] - x[0] ** 2) ** 2


def run(evaluate: Callable[..., Derivatives], start: torch.Tensor, **options: float) -> Minima:
    return minimise(evaluate, start, **{"scale": 1.0, "unit": 1.0, "tol": 1e-8, "max_iter": 500, **options})


@pytest.mark.parametrize("memory", [0, 4])
def test_rows_with_an_indefinite_hessian_go_down_to_a_minimum(memory):
    start = torch.tensor([[0.1, 1.0], [-0.3, -0.5], [0.5, 0.0], [1.4, 0.3]]).double()
    found = run(evaluation(double_well, hessian=True), start, memory=memory)
    expected = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]).double()
    assert found.converged.all()
    torch.testing.assert_close(found.points, expected, atol=1e-7, rtol=0)


def test_newton_steps_solve_with_the_positive_definite_hessians_alone():
    hessian = torch.tensor([[[4.0, 1], [1, 2]], [[1, 2], [2, 1]], [[-1, 0], [0, -1]], [[1, 1], [1, 1]]]).double()
    gradient = torch.tensor([[1.0, 2]]).double().expand(4, 2)
    step, positive = _newton(gradient, hessian)
    assert positive.tolist() == [True, False, False, False]
    torch.testing.assert_close(hessian[0] @ step[0], gradient[0])


def test_a_newton_step_that_leads_up_is_shortened():
    start = torch.tensor([[-1.2, 1.0], [-0.5, 0.8]]).double()
    evaluate = evaluation(valley, hessian=True)
    found = run(evaluate, start)
    assert found.converged.all()
    torch.testing.assert_close(found.points, torch.ones(2, 2).double(), atol=1e-7, rtol=0)
    assert len(evaluate.seen) > found.iterations.max() + 1


def test_hessians_save_evaluations():
    start = torch.tensor([[0.8, 0.8]]).double()
    newton, quasi = evaluation(valley, hessian=True), evaluation(valley, hessian=False)
    run(newton, start)
    run(quasi, start)
    assert 2 * len(newton.seen) <= len(quasi.seen)


def test_a_newton_step_cut_short_is_not_the_last():
    # The Hessian of a parabola is constant: only the length of the step shows that the minimum is far away.
    found = run(evaluation(lambda x: 0.5 * (x**2).sum(), hessian=True), torch.tensor([[9.0, 2.0]]).double())
    torch.testing.assert_close(found.points, torch.zeros(1, 2).double(), atol=1e-8, rtol=0)


def test_the_last_newton_step_needs_no_evaluation_and_meets_the_tolerance():
    torch.manual_seed(0)
    side = torch.sign(torch.randn(200).double())
    start = torch.stack([side * (1 + 0.2 * torch.randn(200).double()), 0.3 * torch.randn(200).double()], dim=1)
    evaluate = evaluation(double_well, hessian=True)
    found = run(evaluate, start)
    seen = torch.cat(evaluate.seen)
    unseen = ~(found.points[:, None] == seen).all(dim=2).any(dim=1)
    assert unseen.sum() > 100
    assert found.converged.all()
    there = evaluate(found.points, torch.arange(200))
    assert there.gradient.norm(dim=1).max() <= 1e-8
    torch.testing.assert_close(found.values, there.value, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("landing", "far"), [(1e-3, 1.0), (1e-2, 3.0)], ids=["hessian turns", "hessian returns"])
def test_one_lucky_step_does_not_count_as_convergence(landing, far):
    """A distant parabola leads close to the minimum at 0, where the curvature is a hundred times larger."""

    def lopsided(x: torch.Tensor) -> torch.Tensor:
        y = x[0]
        return torch.where(y.abs() > 0.5, 0.5 * far * (y - landing) ** 2, 0.5 * y**2 + 100 / 3 * y**3)

    found = run(evaluation(lopsided, hessian=True), torch.ones(1, 1).double(), tol=1e-8)
    assert found.points.abs().max() <= 1e-8


def test_a_decrease_within_rounding_is_no_step_past_the_minimum():
    """Rounding may make any step look like a descent; this one leads from near the minimum to its far side."""
    values = iter(torch.tensor([[1.0], [1.0 - 1e-7]]).double())
    start = torch.tensor([[1e-3]]).double()
    found = run(lambda points, _: Derivatives(next(values), points), start, unit=1e9, tol=1e-15, max_iter=1)
    assert torch.equal(found.points, start)


def test_a_plateau_is_left_though_decreases_there_are_within_rounding():
    def well(x: torch.Tensor) -> torch.Tensor:
        return 1 - torch.exp(-0.5 * x.square().sum())

    function = evaluation(well, hessian=False)
    found = run(lambda *at: function(*at)._replace(curvature=None), torch.tensor([[5.2, 0.0]]), tol=1e-7)
    assert found.converged.all()
    assert found.points.norm() < 1e-3
