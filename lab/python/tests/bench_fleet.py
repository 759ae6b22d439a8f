"""What sweeps, projections and Python cost beside each other; run by ci/fleet-bench.sh."""

from __future__ import annotations

import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import tickless

program, turns = sys.argv[1], int(sys.argv[3])
trace = str(pathlib.Path(sys.argv[2]) / "nginx.txt.gz")


def sweep(cells: int, rounds: int, threads: int) -> None:
    """So many cells, by the command."""
    arguments = f"--machine x5675-2s --policy lazy --seeds 0-{cells - 1} --length {rounds}"
    command = [program, "sweep", "rearm", *arguments.split(), "--threads", str(threads)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


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
    """A sweep beside the same cells by hand, and two threads beside one."""
    hundred, fifty = rounds_for(0.1), rounds_for(0.05)
    ratios = []
    for _ in range(turns):
        by_hand = took(
            lambda: [
                tickless.simulate("rearm", "x5675-2s", policy="lazy", length=hundred, seed=seed)
                for seed in range(50)
            ]
        )
        ratios.append(100 * (took(lambda: sweep(50, hundred, 1)) / by_hand - 1))
    show("overhead of a sweep, cells of 100 ms", "<= 3 %", ratios, "%")

    ratios = []
    for _ in range(turns):
        one, two = (took(lambda: sweep(1_000, fifty, threads)) for threads in (1, 2))
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


print("| | goal | measured: median (least to greatest) |\n|---|---|---|")
parts = {part.__name__: part for part in (sweeps, replays, projections)}
for name in sys.argv[4:] or parts:
    parts[name]()
