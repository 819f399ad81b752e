"""Runs on a real Ray cluster of two nodes, which are processes of this machine that listen on loopback alone."""

import io
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import pytest
from helpers.runs import TESTS, ending, short_runs
from rich.console import Console

from alma.launch.job import Resources
from alma.launch.launcher import train_all
from alma.launch.local import Local
from alma.launch.ray import Ray, require_ray

SETTINGS = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # clients dial loopback, not the machine's own address
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": os.urandom(16).hex(),
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # so that it takes no longer than it must on a busy machine
}
"""Ray reads them when it is imported."""

NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 100_000_000}
SECONDS = 300

os.environ.update(SETTINGS)
ray = pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@dataclass
class RayAndAnotherNode(Ray):
    """Adds a node once the driver is connected to the first one, which can then not be the one that is killed."""

    cluster: Any = None

    def __enter__(self):
        super().__enter__()
        self.node = self.cluster.add_node(**NODE)
        return self


def kill_when_both_train(engine, jobs):
    """Kill the node when there are two runs that have saved and are not done: one of them is there."""
    until = time.monotonic() + SECONDS
    while sum(bool(job.folder.saved()) and not job.done for job in jobs) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    engine.cluster.remove_node(engine.node, allow_graceful=False)


def test_all_runs_end_as_on_this_machine_although_a_node_dies(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(TESTS)
    jobs, said = short_runs(tmp_path / "ray", 6, chunks=60), io.StringIO()
    engine = RayAndAnotherNode(Resources(cores=1), cluster.address, cluster=cluster)
    killer = threading.Thread(target=kill_when_both_train, args=(engine, jobs))
    killer.start()
    assert train_all(jobs, engine, Console(file=said)) == []
    killer.join()
    assert "it is started again from its last checkpoint" in said.getvalue().replace("\n", " ")
    here = short_runs(tmp_path / "local", 6, chunks=60)
    assert train_all(here, Local(jobs=1, cores=1), Console(file=io.StringIO())) == []
    for one, other in zip(jobs, here, strict=True):
        assert one.folder.read_result()["cores"] == 1
        assert ending(one) == ending(other)


def test_there_must_be_a_cluster(monkeypatch):
    def init(**_):
        raise ConnectionError("Could not find any running Ray instance.")

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(ValueError, match=r"no Ray cluster was found at 10\.0\.0\.1:6379: start one"):
        Ray(Resources(cores=1), "10.0.0.1:6379").__enter__()
    with pytest.raises(ValueError, match="no Ray cluster was found on this machine: start one, or give its --address"):
        Ray(Resources(cores=1)).__enter__()


def test_that_ray_is_missing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"--engine ray needs an extra: pip install 'alma-marl\[ray\]'"):
        require_ray()
