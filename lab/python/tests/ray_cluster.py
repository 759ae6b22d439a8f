"""A campaign on a Ray cluster of several nodes, with workers, nodes and drivers killed.

Run by ci/ray.sh. The table is always the one that one process makes, byte for byte.
"""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import psutil
import ray
import tickless
import tickless.ray
from ray.cluster_utils import Cluster

CAMPAIGN = """
[simulate]
studies = ["rearm"]
machines = ["x5675-2s"]
policies = ["eager", "lazy"]
seeds = "0-{last}"
rounds = 2000
"""


def table(spec: pathlib.Path, out: pathlib.Path) -> bytes:
    """The merged table; an error if a cell is missing or double."""
    to = out.with_suffix(".csv")
    tickless.Campaign(spec, out).merge(to)
    return to.read_bytes()


def workers() -> list[psutil.Process]:
    """Processes that perform cells just now."""
    found = psutil.process_iter(["cmdline"])
    return [one for one in found if "ray::_in_folder" in " ".join(one.info["cmdline"] or [])]


def kill_a_worker() -> None:
    """Kills a worker in the middle of its task."""
    for _ in range(200):
        if busy := workers():
            print("killing worker", busy[0].pid)
            busy[0].send_signal(signal.SIGKILL)
            return
        time.sleep(0.05)
    raise SystemExit("no worker to kill was ever seen")


def driver(address: str, spec: str, out: str) -> None:
    """Another process that drives the campaign, to be killed."""
    ray.init(address=address, log_to_driver=False)
    tickless.ray.run(spec, out, batch=4)


def main() -> None:
    """All of it."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        spec = place / "campaign.toml"
        spec.write_text(CAMPAIGN.format(last=149))
        tickless.Campaign(spec, place / "alone").run()
        wanted = table(spec, place / "alone")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        second = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False)

        done = tickless.ray.run(spec, place / "plain")
        assert done.performed == 300 and done.status.missing == 0, done
        assert table(spec, place / "plain") == wanted
        print("plain:", done)
        again = tickless.ray.run(spec, place / "plain")
        assert again.performed == 0, again

        killer = threading.Thread(target=kill_a_worker)
        killer.start()
        done = tickless.ray.run(spec, place / "worker", batch=10)
        killer.join()
        assert done.performed == 300 and table(spec, place / "worker") == wanted
        print("a worker killed:", done)

        timer = threading.Timer(0.5, cluster.remove_node, [second], {"allow_graceful": False})
        timer.start()
        done = tickless.ray.run(spec, place / "node", batch=5)
        timer.join()
        assert done.performed == 300 and table(spec, place / "node") == wanted
        print("a node killed:", done)

        cluster.add_node(num_cpus=1)
        spec.write_text(CAMPAIGN.format(last=399))
        tickless.Campaign(spec, place / "long").run()
        out = place / "driver"
        arguments = [sys.executable, __file__, "driver", cluster.address, str(spec), str(out)]
        running = subprocess.Popen(arguments)
        while not list((out / "parts").glob("*.jsonl")) and running.poll() is None:
            time.sleep(0.02)
        os.kill(running.pid, signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL, "it was through before it could be killed"
        before = tickless.Campaign(spec, out).status()
        assert before.done > 0 and before.missing > 0, before
        done = tickless.ray.run(spec, out)
        assert done.performed == before.missing, (done, before)
        assert table(spec, out) == table(spec, place / "long")
        print("the driver killed:", before, done)
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    if sys.argv[1:2] == ["driver"]:
        driver(*sys.argv[2:])
    else:
        main()
