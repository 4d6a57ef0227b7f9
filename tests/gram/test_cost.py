from __future__ import annotations

import logging

import pytest
import torch

from drkm import ConstrDRKM
from drkm import gram as grams
from drkm.experiments.disentanglement._distances import RememberedDistances
from drkm.gram import (
    Auto,
    Dense,
    Fourier,
    NotEnoughMemory,
    Nystroem,
    Sharded,
    Strategy,
    Tiled,
    Workload,
    auto,
)
from drkm.gram.cost import THREAD_BYTES, in_flops
from drkm.kernels import RBF, FeatureMap, Linear, Matern, Precomputed
from drkm.machine import memory
from drkm.machine import memory as this_machine
from drkm.wording import in_bytes

RBFS = (RBF(), RBF())


def work(n=1000, d=64, sizes=(10, 5), kernels=RBFS, **more):
    return Workload(n, d, sizes, kernels, **more)


@pytest.fixture
def machine(monkeypatch):
    """A machine of which the memory can be chosen."""

    def with_memory(bytes_):
        monkeypatch.setattr(memory, "available", lambda device: int(bytes_))

    return with_memory


class TestCost:
    @pytest.mark.parametrize("strategy", [Dense(), Tiled(keep=0), RememberedDistances()], ids=lambda s: s.name)
    def test_grows_with_the_number_of_samples_and_halves_in_single_precision(self, strategy):
        small, large = strategy.cost(work(1000)), strategy.cost(work(4000))
        assert large.bytes > 2 * small.bytes
        assert large.flops > 15 * small.flops
        half = strategy.cost(work(1000, dtype=torch.float32)).bytes
        assert half == pytest.approx(small.bytes / 2, rel=1e-9)

    def test_dense_holds_the_matrix_and_tiled_half_of_it_at_most(self):
        n = 50_000
        assert Dense().cost(work(n)).bytes >= 8 * n * n
        assert 4 * n * n <= Tiled(keep=1e15).cost(work(n)).bytes <= 0.6 * 8 * n * n
        assert Tiled(keep=0).cost(work(n)).bytes <= 0.1 * 8 * n * n

    def test_what_is_not_kept_is_paid_at_every_gradient(self):
        kept, half, none = (Tiled(keep=keep).cost(work(20_000, 4096)).flops for keep in (1e15, 8e8, 0))
        values = 20_000**2 / 2 * 2 * 4096
        assert none - kept == pytest.approx(values, rel=0.01)
        assert kept < half < none

    def test_samples_in_a_file_take_no_memory_when_they_are_read_in_tiles(self):
        on_disk, held = (Tiled(keep=0).cost(work(50_000, 4096, on_disk=file)).bytes for file in (True, False))
        assert held - on_disk == 8 * 50_000 * 4096

    @pytest.mark.parametrize("kernel", [Linear(), Precomputed(), FeatureMap(torch.sin)], ids=lambda k: k.describe())
    def test_features_and_a_given_matrix_store_nothing_n_by_n(self, kernel):
        n = 20_000
        for strategy in (Dense(), Tiled()):
            assert strategy.cost(work(n, 10, kernels=(kernel, Matern()))).bytes < 8 * n * n / 10

    def test_a_strategy_that_says_nothing_is_taken_to_sweep_everything(self):
        class Plain(Strategy):
            fixed = moving = None

        Plain.__abstractmethods__ = frozenset()
        cost = Plain().cost(work())
        assert cost.flops > 1000**2 * 2 * 64
        assert cost.bytes < 8 * 1000**2 * 3

    def test_is_told_in_units_for_people(self):
        assert in_bytes(1.5e9) == "1.5 GB"
        assert in_bytes(12) == "12 B"
        assert in_flops(3.21e13) == "32.1 Tflop"
        assert in_bytes(999_600) == "1 MB"


class TestChoice:
    def chosen(self, **more):
        return grams.by_name("auto").settle(work(**more))

    def test_auto_is_dense_for_one_tile_and_tiled_beyond(self, machine):
        machine(4e9)
        assert type(self.chosen(n=1000)) is Dense
        assert type(self.chosen(n=100_000)) is Tiled

    def test_more_memory_keeps_more_tiles_until_it_keeps_all(self, machine):
        kept = []
        for bytes_ in (1e9, 2e9, 100e9, 200e9):
            machine(bytes_)
            kept.append(self.chosen(n=15_000).keep)
        assert kept[0] < kept[1] < kept[2] == kept[3]
        assert kept[3] == pytest.approx(8 * 15_000**2 / 2, rel=0.1)

    def test_a_file_is_read_into_memory_if_it_fits(self, machine):
        machine(100e9)
        assert type(self.chosen(n=15_000, on_disk=True)) is Dense

    def test_auto_leaves_memory_to_others_that_an_explicit_choice_may_take(self, machine):
        machine(Dense().cost(work(n=15_000)).bytes / 0.9)
        assert type(self.chosen(n=15_000)) is Tiled
        assert type(grams.settle(Dense(), work(n=15_000))[0]) is Dense

    def test_the_others_are_made_when_an_error_names_one_that_fits(self, machine, monkeypatch):
        made = []
        monkeypatch.setattr(Nystroem, "__post_init__", lambda self: made.append(self))
        machine(100e9)
        grams.settle(Dense(), work(n=1000))
        assert not made
        machine(1e9)
        with pytest.raises(NotEnoughMemory, match='gram="tiled" would need'):
            grams.settle(Dense(), work(n=20_000))
        machine(1e6)
        with pytest.raises(NotEnoughMemory):
            grams.settle(Dense(), work(n=20_000))
        assert made

    def test_a_strategy_is_passed_over_where_it_cannot_serve(self, monkeypatch):
        class Picky(Dense):
            def serves(self, work):
                return False

        monkeypatch.setitem(auto.ORDER, "cpu", (Picky, Tiled))
        assert type(Auto().settle(work())) is Tiled

    def test_small_fits_are_those_of_dense_bit_by_bit(self):
        X = torch.randn(60, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy()
        auto, dense = (ConstrDRKM((3, 2), gram=gram).fit(X) for gram in ("auto", "dense"))
        assert (auto.codes_ == dense.codes_).all()

    def test_what_was_chosen_is_said_in_the_log_before_the_fit_and_in_the_summary(self, caplog):
        X = torch.randn(60, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy()
        with caplog.at_level(logging.INFO, "drkm.gram"):
            model = ConstrDRKM((3, 2)).fit(X)
        assert [r.message for r in caplog.records] == [f"gram: dense for 60 samples, {model.fitted_.cost.describe()}"]
        assert "gram: dense, " in model.summary()

    def test_verbose_shows_the_line_on_standard_error(self, capsys):
        X = torch.randn(60, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy()
        ConstrDRKM((3, 2), verbose=1).fit(X)
        assert "gram: dense for 60 samples, " in capsys.readouterr().err
        assert logging.getLogger("drkm").handlers == []

    def test_tiled_keeps_what_its_budget_leaves(self):
        asked = work(20_000, 4096)
        settled = Tiled(memory=2e9).settle(asked)
        assert settled.cost(asked).bytes <= 2e9
        assert settled.keep > 5e8

    @pytest.mark.parametrize("inner", [Nystroem(m=10), Fourier(30)])
    def test_shared_features_stay_what_they_are_and_are_priced_as_such(self, inner):
        asked = work(sizes=(3,), kernels=(RBF(1.0),))
        settled = Sharded(inner).settle(asked)
        assert settled.inner is inner
        assert settled.cost(asked) == inner.cost(asked)

    def test_the_budget_includes_what_a_blas_keeps_for_its_threads(self, monkeypatch):
        kept = []
        for threads in (1, 3):
            monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
            kept.append(Tiled(memory=1e9).settle(work(20_000)).keep)
        assert kept[0] - kept[1] == 2 * THREAD_BYTES

    def test_a_budget_below_the_least_is_refused_with_what_is_needed(self):
        with pytest.raises(NotEnoughMemory, match=r"memory: tiled needs at least .* GB for 200000 samples of 4096"):
            Tiled(memory=1e9).settle(work(200_000, 4096))


class TestForesight:
    def test_what_does_not_fit_is_told_with_both_sizes_and_what_would_fit(self, machine):
        machine(4e9)
        sentence = "gram: dense for 100000 samples needs 80.8 GB of memory, available on cpu are 4 GB; "
        with pytest.raises(NotEnoughMemory, match=f'^{sentence}gram="tiled" would need 2 GB$'):
            grams.settle(Dense(), work(100_000))

    def test_a_fit_is_refused_before_anything_is_allocated(self, machine, monkeypatch):
        machine(1e6)
        monkeypatch.setattr(memory, "TRIFLE", 0)
        monkeypatch.setattr(Dense, "fixed", lambda *_: pytest.fail("allocated"))
        with pytest.raises(MemoryError, match="gram: dense for 500 samples needs"):
            ConstrDRKM((3, 2), gram="dense").fit(torch.randn(500, 5).numpy())

    def test_a_copy_of_the_samples_is_foreseen_too(self, machine, monkeypatch):
        machine(1e4)
        monkeypatch.setattr(memory, "TRIFLE", 0)
        match = (
            r"^X: a copy of 2500 values needs 20 kB of memory, available on cpu are 10 kB; a numpy\.memmap or the path"
        )
        with pytest.raises(NotEnoughMemory, match=match):
            ConstrDRKM((3, 2)).fit(torch.randn(500, 5).double().numpy())

    def test_nothing_that_fits_is_said_too(self, machine):
        machine(1e8)
        with pytest.raises(NotEnoughMemory, match="none of the operators fits"):
            grams.settle(Dense(), work(1_000_000))

    def test_samples_that_are_there_already_are_not_asked_for_again(self, machine):
        asked = work(20_000, 4096)
        machine(Dense().cost(asked).bytes - 1)
        with pytest.raises(NotEnoughMemory):
            grams.settle(Dense(), asked)
        grams.settle(Dense(), work(20_000, 4096, resident=asked.sample_bytes))


class TestAvailableMemory:
    @pytest.fixture
    def system(self, tmp_path, monkeypatch):
        monkeypatch.setattr(this_machine, "PROC", tmp_path / "proc")
        monkeypatch.setattr(this_machine, "CGROUP", tmp_path / "cgroup")

        def write(name, text):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

        write("proc/meminfo", "MemTotal: 16000 kB\nMemFree: 10 kB\nMemAvailable: 8000 kB\n")
        return write

    def now(self):
        return memory.available(torch.device("cpu"))

    def test_is_what_the_system_says(self, system):
        assert self.now() == 8000 * 1024

    def test_is_what_a_container_leaves(self, system):
        system("cgroup/memory.max", "5000000\n")
        system("cgroup/memory.current", "3000000\n")
        assert self.now() == 2_000_000

    def test_files_in_cache_can_be_given_back(self, system):
        system("cgroup/memory.max", "5000000\n")
        system("cgroup/memory.current", "3000000\n")
        system("cgroup/memory.stat", "anon 100\ninactive_file 500000\n")
        assert self.now() == 2_500_000

    def test_a_limit_of_an_inner_group_counts(self, system):
        system("proc/self/cgroup", "0::/jobs/mine\n")
        system("cgroup/jobs/memory.max", "4000000\n")
        system("cgroup/jobs/memory.current", "1000000\n")
        system("cgroup/jobs/mine/memory.max", "max\n")
        system("cgroup/jobs/mine/memory.current", "900000\n")
        assert self.now() == 3_000_000

    def test_a_limit_of_the_older_kind_counts(self, system):
        system("proc/self/cgroup", "4:memory:/job\n2:cpu:/other\n")
        system("cgroup/memory/job/memory.limit_in_bytes", "3000000\n")
        system("cgroup/memory/job/memory.usage_in_bytes", "1000000\n")
        system("cgroup/memory/memory.limit_in_bytes", str((1 << 63) - 4096))
        system("cgroup/memory/memory.usage_in_bytes", "1000000\n")
        assert self.now() == 2_000_000

    def test_is_what_a_limit_of_the_process_leaves(self, system, monkeypatch):
        resource = pytest.importorskip("resource")
        page = resource.getpagesize()
        monkeypatch.setattr(resource, "getrlimit", lambda kind: (700 * page, 800 * page))
        assert self.now() == 8000 * 1024
        system("proc/self/statm", "500 100 10 1 0 20 0\n")
        assert self.now() == 200 * page
        system("proc/self/statm", "900 100 10 1 0 20 0\n")
        assert self.now() == 0

    def test_without_a_system_that_says_it_is_all_there_is(self, tmp_path, monkeypatch):
        monkeypatch.setattr(this_machine, "PROC", tmp_path)
        monkeypatch.setattr(this_machine, "CGROUP", tmp_path)
        assert self.now() > 1 << 28
