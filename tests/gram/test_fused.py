from __future__ import annotations
import os
os.environ["TRITON_INTERPRET"]="1"
import pytest
import torch
from gram_suite import GramSuite, MovingSuite, N
from drkm.gram.fused import FusedGram, FusedStoredGram, form
from drkm.kernels import RBF, Laplacian, Matern
ISOTROPIC = [RBF(2.0), Laplacian(2.0), Matern(1.5, 2.0), Matern(2.5, 2.0)]
class Moving(MovingSuite):
    @pytest.fixture(autouse=True, params=ISOTROPIC, ids=lambda kernel: kernel.describe())
    def choose(self, request):
        self.chosen = request.param
    def kernel(self):
        return self.chosen
    def bare(self, points):
        return FusedGram(self.chosen, points)
class TestFused(Moving):
    pass
class TestCenteredFused(Moving):
    centered = True
class TestStored(GramSuite):
    def kernel(self):
        return RBF(2.0)
    def bare(self, points):
        return FusedStoredGram(form(self.kernel(), points))
