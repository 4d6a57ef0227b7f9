import gc
import time

import pytest

from drkm.experiments.reproduce import reproduce
from drkm.experiments.request import Request
from drkm.runs.configuration import Configuration
from drkm.runs.runner import Swept, sweep
from drkm.runs.store import Store
from runs.probes import TASKS

distributed = pytest.importorskip("distributed")
# Dask's threads close their sockets and event loops late.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _tidy():
    """Collect Dask's objects here: their finalisers run code, which must not happen while another test is parsed."""
    yield
    gc.collect()


def probe(seed=0, **parameters):
    return Configuration("probe", parameters, seed)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "runs.sqlite", TASKS) as opened:
        yield opened


def test_an_address_that_does_not_answer_is_one_sentence_within_ten_seconds(store):
    clock = time.monotonic()
    with pytest.raises(ValueError, match=r"dask: no scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        sweep([probe()], store, dask="tcp://127.0.0.1:9")
    assert time.monotonic() - clock < 10
    with pytest.raises(ValueError, match="dask: no scheduler answers at 'nonsense'"):
        sweep([probe()], store, dask="nonsense")
    assert store.counts() == []


def test_an_address_that_does_not_answer_leaves_no_store(tmp_path):
    with pytest.raises(ValueError, match="dask: no scheduler answers at 'nonsense'"):
        reproduce(Request(["figure1"]), out=tmp_path / "results", dask="nonsense")
    assert not (tmp_path / "results").exists()


def test_a_cluster_in_this_process_computes_what_it_is_given_and_what_fails_is_recorded(store):
    runs = [probe(seed) for seed in range(3)]
    few = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "protocol": "tcp"}
    with distributed.LocalCluster(**few, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        assert sweep([*runs, probe(fail=True)], store, dask=address) == Swept(asked=4, computed=3, failed=1)
        results = store.results(runs)
        assert all(results[run] == TASKS.perform(run) for run in runs)
        with pytest.raises(ValueError, match="is the address of a worker, not of a scheduler"):
            sweep([probe(99)], store, dask=cluster.workers[0].address)


@pytest.mark.slow
def test_a_local_cluster_gives_the_results_of_this_process(store):
    runs = [probe(seed, rounds=2) for seed in range(30)]
    assert sweep([*runs, probe(fail=True)], store, jobs=2, dask="local") == Swept(asked=31, computed=30, failed=1)
    results = store.results(runs)
    assert all(results[run] == TASKS.perform(run) for run in runs)
    assert store.failures()[0].reason == "ValueError: fail: the run was asked to fail"
    assert {place["threads"] for place in store.environments()} == {1}


@pytest.mark.slow
def test_an_existing_cluster_is_used_by_its_address_and_left_running(store):
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster:
        runs = [probe(seed) for seed in range(10)]
        assert sweep(runs, store, dask=cluster.scheduler_address).computed == 10
        worker = next(iter(cluster.workers.values())).worker_address
        with pytest.raises(ValueError, match="is the address of a worker, not of a scheduler"):
            sweep([probe(99)], store, dask=worker)
        cluster.scale(0)
        while cluster.scheduler.workers:
            time.sleep(0.1)
        with pytest.raises(ValueError, match="has no worker"):
            sweep([probe(99)], store, dask=cluster.scheduler_address)
    assert len(store.results(runs)) == 10


@pytest.mark.slow
def test_a_run_that_kills_dask_workers_has_failed_and_the_others_are_done(store):
    runs = [probe(seed) for seed in range(6)]
    assert sweep([*runs, probe(die=True)], store, jobs=2, dask="local") == Swept(asked=7, computed=6, failed=1)
    assert "KilledWorker" in store.failures()[0].reason
