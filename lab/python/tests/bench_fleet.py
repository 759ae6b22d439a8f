"""What campaigns, projections and Python cost beside each other; run by ci/fleet-bench.sh."""

from __future__ import annotations

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


def campaign(cells: int, rounds: int) -> pathlib.Path:
    """A campaign of so many cells."""
    spec = place / f"{cells}-{rounds}.toml"
    spec.write_text(
        f"[simulate]\nstudies = ['rearm']\nmachines = ['x5675-2s']\npolicies = ['lazy']\n"
        f"seeds = '0-{cells - 1}'\nrounds = {rounds}\n"
    )
    return spec


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


def sweeps() -> None:
    """A campaign beside the same cells by hand, and two threads beside one."""
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
        swept = took(lambda: tickless.sweep(spec, threads=1))
        ratios.append(100 * (swept / by_hand - 1))
    show("overhead of a sweep, cells of 100 ms", "<= 3 %", ratios, "%")

    spec = campaign(1_000, fifty)
    ratios = []
    for _ in range(turns):
        one, two = (took(lambda: tickless.sweep(spec, threads=count)) for count in (1, 2))
        ratios.append(one / two)
    show("cells of 50 ms, two threads beside one (1,000 cells)", ">= 1.8x", ratios, "x")


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


print("| | goal | measured: median (least to greatest) |\n|---|---|---|")
parts = {part.__name__: part for part in (sweeps, replays, projections, memory)}
for name in sys.argv[4:] or parts:
    parts[name]()
