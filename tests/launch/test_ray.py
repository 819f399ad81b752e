"""Runs on a real Ray cluster of two nodes, which are processes of this machine that listen on loopback alone."""

import io
import os
import sys
import threading
import time

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


def wait_until(condition):
    until = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)


def lend_a_node(cluster, jobs):
    """Add a node once the driver is connected to the first one, and kill it when both nodes train."""
    wait_until(ray.is_initialized)
    node = cluster.add_node(**NODE)
    wait_until(lambda: sum(bool(job.folder.saved()) and not job.done for job in jobs) >= 2)
    cluster.remove_node(node, allow_graceful=False)


def test_all_runs_end_as_on_this_machine_although_a_node_dies(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(TESTS)
    jobs, said = short_runs(tmp_path / "ray", 6), io.StringIO()
    lender = threading.Thread(target=lend_a_node, args=(cluster, jobs))
    lender.start()
    assert train_all(jobs, Ray(Resources(cores=1), cluster.address), Console(file=said)) == []
    lender.join()
    assert "it is started again from its last checkpoint" in said.getvalue().replace("\n", " ")
    here = short_runs(tmp_path / "local", 6)
    assert train_all(here, Local(jobs=1, cores=1), Console(file=io.StringIO())) == []
    for one, other in zip(jobs, here, strict=True):
        assert one.folder.read_result()["cores"] == 1
        assert ending(one) == ending(other)


def test_there_must_be_a_cluster(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "")
    with pytest.raises(ValueError, match="no Ray cluster was found"), Ray(Resources(cores=1), "127.0.0.1:1"):
        pass


def test_that_ray_is_missing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"--engine ray needs an extra: pip install 'alma-marl\[ray\]'"):
        require_ray()
