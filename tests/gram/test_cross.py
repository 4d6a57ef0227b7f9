from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from test_gram import EXPLICIT, PAIRWISE

from dense_oracle import draw, values
from drkm.files.rows import Rows
from drkm.gram import Cross
from drkm.kernels import RBF, Precomputed

X, NEW = draw(37, 3), draw(9, 3, seed=5)


@pytest.mark.parametrize("kernel", PAIRWISE, ids=lambda kernel: kernel.describe())
class TestCross:
    def test_equals_the_dense_values_batch_by_batch(self, kernel):
        cross = Cross(kernel, X)
        for new in (NEW, NEW[:2]):
            torch.testing.assert_close(cross(new), values(kernel, new, X), rtol=1e-9, atol=1e-9)

    def test_has_the_bits_of_the_kernel_itself(self, kernel):
        assert torch.equal(Cross(kernel, X)(NEW), kernel(NEW, X))

    def test_of_a_file_equals_that_of_the_samples(self, kernel, tmp_path, monkeypatch):
        np.save(tmp_path / "X.npy", X.numpy())
        monkeypatch.setattr("drkm.files.rows.PASS_BYTES", 8 * 3 * 10)
        rows = Rows(np.load(tmp_path / "X.npy", mmap_mode="r"))
        torch.testing.assert_close(Cross(kernel, rows)(NEW), values(kernel, NEW, X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", EXPLICIT[:4], ids=lambda kernel: kernel.describe())
def test_points_with_explicit_features_are_seen_by_these(kernel):
    features = Cross(kernel, X)(NEW)
    torch.testing.assert_close(features @ kernel.features(X).T, values(kernel, NEW, X), rtol=1e-9, atol=1e-9)


def test_rows_of_a_precomputed_matrix_are_the_values():
    K = X @ X.T
    assert torch.equal(Cross(Precomputed(), K)(K[:4]), K[:4])


def test_copies_travel_without_what_can_be_computed_again():
    cross = Cross(RBF(2.0), X)
    before = cross(NEW)
    again = pickle.loads(pickle.dumps(cross))
    assert len(pickle.dumps(cross)) < 2 * X.nbytes + 2000
    assert torch.equal(again(NEW), before)
