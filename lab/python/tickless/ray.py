"""Campaigns on a Ray cluster: ``pip install tickless[ray]``.

The driver alone writes results, as they come, into the folder that a campaign of one process
has; it holds the folder's lock. So nothing is there twice, a driver that is killed loses what
was under way, and the next one goes on. Workers need no file system in common with the driver
but for the traces and machines' files that the campaign names.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from . import Campaign, Path, Status, _native

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Ran", "run"]

#: How long a task takes, roughly: long beside what Ray takes for one.
TASK_SECONDS = 2.0


class Ran(NamedTuple):
    """What a run has done."""

    status: Status
    performed: int
    failed: int
    tasks: int
    seconds: float
    #: What a task takes beside its cells, at most: the CPUs' time that was not work, shared out.
    overhead_ms: float


def _task(plan: str, cells: list[str]) -> tuple[list[str], float]:
    begun = time.perf_counter()
    return _native.perform_batch(plan, cells), time.perf_counter() - begun


def run(
    spec: Path,
    out: Path,
    *,
    retry: bool = False,
    batch: int | None = None,
    under_way: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Ran:
    """Performs what is missing of a campaign on the Ray cluster that this process is connected to.

    A task is a batch of cells that takes about two seconds, or ``batch`` cells. A task whose
    worker or node dies is run again by Ray, however often that happens. ``progress`` is called
    with how many cells are done, and of how many.
    """
    import ray

    campaign = Campaign(spec, out)
    native = campaign._native
    cells = native.begin(retry=retry)
    try:
        if not ray.is_initialized():
            ray.init()
        # Workers read traces from where this process finds them.
        folder = os.getcwd()
        plan = ray.put(native.plan())
        remote = ray.remote(_in_folder).options(max_retries=-1, num_cpus=1)
        begun = time.perf_counter()
        waiting = list(reversed(cells))
        size = batch or 1
        least = 1
        started: set[object] = set()
        performed = failed = tasks = 0
        work = 0.0
        cpus = 1
        asked = float("-inf")
        while waiting or started:
            # A call to another process, so not for each task.
            if time.perf_counter() - asked > 1.0:
                cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
                asked = time.perf_counter()
            most = under_way or 2 * cpus
            while waiting and len(started) < most:
                # Smaller batches towards the end, so that no CPU waits long for the last one.
                share = len(waiting) if batch else max(least, len(waiting) // (2 * cpus))
                few = [waiting.pop() for _ in range(min(size, share, len(waiting)))]
                started.add(remote.remote(folder, plan, few))
            done, _ = ray.wait(list(started), num_returns=1, timeout=1.0)
            for task in done:
                outcomes, worked = ray.get(task)
                started.discard(task)
                work += worked
                failed += native.add(outcomes)
                performed += len(outcomes)
                tasks += 1
                if batch is None and outcomes:
                    each = max(worked, 1e-6) / len(outcomes)
                    size = max(1, min(10_000, int(TASK_SECONDS / each)))
                    least = max(1, size // 20)
                if progress is not None:
                    progress(performed, len(cells))
        seconds = time.perf_counter() - begun
    finally:
        native.end()
    beside = 1e3 * max(0.0, seconds * cpus - work) / max(tasks, 1)
    return Ran(campaign.status(), performed, failed, tasks, seconds, beside)


def _in_folder(folder: str, plan: str, cells: list[str]) -> tuple[list[str], float]:
    if os.path.isdir(folder):
        os.chdir(folder)
    return _task(plan, cells)
