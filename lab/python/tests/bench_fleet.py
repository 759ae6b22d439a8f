"""What campaigns, projections, Python and Ray cost beside each other; run by ci/fleet-bench.sh."""

from __future__ import annotations

import contextlib
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import tickless

program, turns = sys.argv[1], int(sys.argv[3])
trace = str(pathlib.Path(sys.argv[2]) / "nginx.txt.gz")
place = pathlib.Path(tempfile.mkdtemp())
made = 0


def campaign(cells: int, rounds: int) -> pathlib.Path:
    """A campaign of so many cells."""
    spec = place / f"{cells}-{rounds}.toml"
    spec.write_text(
        f"[simulate]\nstudies = ['rearm']\nmachines = ['x5675-2s']\npolicies = ['lazy']\n"
        f"seeds = '0-{cells - 1}'\nrounds = {rounds}\n"
    )
    return spec


def folder() -> pathlib.Path:
    """A new folder."""
    global made
    made += 1
    return place / f"out{made}"


def took(work: Callable[[], object]) -> float:
    """Seconds."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def show(what: str, goal: str, values: list[float], unit: str) -> None:
    """A row of the table: the median, the least and the greatest."""
    low, middle, high = min(values), statistics.median(values), max(values)
    print(f"| {what} | {goal} | {middle:.3g} {unit} ({low:.3g} to {high:.3g}) |", flush=True)


def rounds_for(seconds: float) -> int:
    """So many round trips take so long here."""
    probe = 20_000
    each = min(
        took(lambda: tickless.simulate("rearm", "x5675-2s", policy="lazy", length=probe))
        for _ in range(5)
    )
    return max(1, int(probe * seconds / each))


def sweep(spec: pathlib.Path, *processes: str) -> float:
    """Seconds that a campaign takes, in one process of one thread for each shard."""
    out = str(folder())
    command = [program, "sweep", str(spec), "--out", out, "--threads", "1", "--shard"]

    def run() -> None:
        started = [
            subprocess.Popen([*command, shard], stdout=subprocess.DEVNULL) for shard in processes
        ]
        assert all(one.wait() == 0 for one in started)

    return took(run)


def cpu_seconds() -> float:
    """CPU time of this process and of those that it has started, Ray's among them."""
    import psutil

    this = psutil.Process()
    used = 0.0
    for process in [this, *this.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            used += times.user + times.system
    return used


def on_ray(spec: pathlib.Path, nodes: int) -> tuple[float, float]:
    """Seconds on so many nodes of one CPU each, and CPU time of a task of one short cell, in ms."""
    import ray
    import tickless.ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    for _ in range(nodes - 1):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    # Workers start before the clock does.
    tickless.ray.run(campaign(8 * nodes, 100), folder(), batch=1)
    before = cpu_seconds()
    short = tickless.ray.run(campaign(300, 100), folder(), batch=1)
    used = cpu_seconds() - before
    done = tickless.ray.run(spec, folder())
    ray.shutdown()
    cluster.shutdown()
    return done.seconds, 1e3 * used / short.tasks


def sweeps() -> None:
    """A campaign beside the same cells by hand, and two processes beside one."""
    hundred, fifty = rounds_for(0.1), rounds_for(0.05)
    spec = campaign(50, hundred)
    ratios = []
    for _ in range(turns):
        by_hand = took(
            lambda: [
                tickless.simulate("rearm", "x5675-2s", policy="lazy", length=hundred, seed=seed)
                for seed in range(50)
            ]
        )
        swept = took(lambda: tickless.Campaign(spec, folder()).run(threads=1))
        ratios.append(100 * (swept / by_hand - 1))
    show("overhead of a sweep, cells of 100 ms", "<= 3 %", ratios, "%")

    spec = campaign(1_000, fifty)
    ratios = [sweep(spec, "0/1") / sweep(spec, "0/2", "1/2") for _ in range(turns)]
    show("cells of 50 ms, two processes beside one (1,000 cells)", ">= 1.8x", ratios, "x")


def replays() -> None:
    """A replay in Python beside the command."""
    ratios = []
    for _ in range(3 * turns):
        command = took(
            lambda: subprocess.run([program, "replay", trace], capture_output=True, check=True)
        )
        ratios.append(took(lambda: tickless.replay(trace)) / command)
    show("replay in Python beside the command", "<= 1.05x", ratios, "x")


def projections() -> None:
    """A projection onto many CPUs."""
    seconds = []
    for seed in range(turns):
        arguments = ["--machine", "ivybridge-ex-16s", "--cpus", "480", "--policy", "lazy"]
        command = [program, "project", trace, *arguments, "--seconds", "1", "--seed", str(seed)]
        # The trace is a third of a second long.
        whole = took(lambda: subprocess.run(command, capture_output=True, check=True))
        seconds.append(whole / 0.331505)
    show("project: nginx onto 480 CPUs, for 1 s of trace", "<= 60 s", seconds, "s")


def memory() -> None:
    """What many rows take."""
    spec = campaign(2_000, 10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = tickless.sweep(spec)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(rows) == 10_000
    show("memory of 10,000 rows, the interpreter included", "<= 200 MB", [after / 1024], "MB")
    show("of these, beside the interpreter", "", [(after - before) / 1024], "MB")


def ray() -> None:
    """A campaign on one node and on two."""
    spec = campaign(1_000, rounds_for(0.1))
    one, two, beside = [], [], []
    for _ in range(max(1, turns // 2)):
        one.append(on_ray(spec, 1)[0])
        seconds, used = on_ray(spec, 2)
        two.append(seconds)
        beside.append(used)
    ratios = [first / second for first, second in zip(one, two)]
    show("Ray, 1,000 cells of 100 ms: two nodes beside one", ">= 1.6x", ratios, "x")
    show("Ray, CPU time of a task of one short cell, Ray's processes included", "<= 10 ms", beside, "ms")


print("| | goal | measured: median (least to greatest) |\n|---|---|---|")
parts = {part.__name__: part for part in (sweeps, replays, projections, memory, ray)}
for name in sys.argv[4:] or parts:
    parts[name]()
