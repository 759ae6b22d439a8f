"""What timers cost: simulated, replayed and projected, over fleets.

>>> import tickless
>>> tickless.Machine("x5675-2s").cpus
24
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from typing import NamedTuple

from . import _native
from ._native import Fleet, Machine, Table, TicklessError, __version__, machine_names

__all__ = [
    "Campaign",
    "Fleet",
    "Machine",
    "Status",
    "Table",
    "TicklessError",
    "__version__",
    "fleet",
    "machine_names",
    "project",
    "read_trace",
    "replay",
    "report",
    "simulate",
    "sweep",
]

Path = str | os.PathLike[str]
#: Called now and then with how many steps are done, and of how many. An exception in it ends the
#: call.
Progress = Callable[[int, int], object]


class Status(NamedTuple):
    """How far a campaign is."""

    cells: int
    done: int
    failed: int
    missing: int
    running: int


class Campaign:
    """A campaign in a folder; what is there already is not done again."""

    def __init__(self, spec: Path, out: Path) -> None:
        self._native = _native.Campaign(os.fspath(spec), os.fspath(out))

    def run(
        self,
        *,
        shard: str | None = None,
        retry: bool = False,
        threads: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Status:
        """Performs what is missing, on all CPUs; Ctrl-C writes what is done.

        ``progress`` is called now and then with the number of cells performed. An exception in it
        ends the run as Ctrl-C does.
        """
        self._native.run(shard=shard, retry=retry, threads=threads, progress=progress)
        return self.status()

    def status(self) -> Status:
        """How far it is."""
        return Status(*self._native.status())

    def results(self) -> Table:
        """All rows, in the order of the campaign's cells; an error if cells are missing."""
        return self._native.results()

    def merge(self, to: Path) -> int:
        """Writes all rows as a ``.parquet`` or ``.csv`` file; returns how many."""
        return self._native.merge(os.fspath(to))


def _machine(machine: Machine | str) -> Machine:
    return Machine(machine) if isinstance(machine, str) else machine


def simulate(
    study: str,
    machine: Machine | str,
    *,
    cpus: int | None = None,
    policy: str | None = None,
    hz: int | None = None,
    seed: int = 0,
    length: int | None = None,
    progress: Progress | None = None,
) -> Table:
    """Runs a study on a simulated machine.

    ``length`` is the number of round trips of ``rearm`` under one policy, or of messages of
    ``schedule``.

    >>> rows = simulate("rearm", "x5675-2s", policy="eager", length=100)
    >>> round(rows["value"][1])
    8
    """
    return _native.simulate(
        study,
        _machine(machine),
        cpus=cpus,
        policy=policy,
        hz=hz,
        seed=seed,
        length=length,
        progress=progress,
    )


def replay(
    paths: Path | Iterable[Path],
    policies: Iterable[str] | None = None,
    *,
    inference: bool = True,
    progress: Progress | None = None,
) -> Table:
    """Replays kernel traces through the timer core, once for each policy.

    ``progress`` is called now and then with how many traces are done, and of how many.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    every = [os.fspath(path) for path in paths]
    chosen = None if policies is None else list(policies)
    return _native.replay(every, chosen, inference=inference, progress=progress)


def fleet(paths: Path | Iterable[Path], *, progress: Progress | None = None) -> Fleet:
    """What many kernel traces say as a whole, one trace for each machine.

    A trace that cannot be used is a row with its error, and ends nothing.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    return _native.fleet([os.fspath(path) for path in paths], progress=progress)


def project(
    path: Path,
    machine: Machine | str,
    *,
    cpus: Iterable[int] | None = None,
    clock: str = "tsc",
    policies: Iterable[str] | None = None,
    seed: int = 0,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Table:
    """Lays a kernel trace onto a simulated machine, once for each number of CPUs and policy."""
    return _native.project(
        os.fspath(path),
        _machine(machine),
        cpus=None if cpus is None else list(cpus),
        clock=clock,
        policies=None if policies is None else list(policies),
        seed=seed,
        seconds=seconds,
        progress=progress,
    )


def read_trace(path: Path, *, progress: Progress | None = None) -> Table:
    """The events of a kernel trace, one a row."""
    return _native.read_trace(os.fspath(path), progress=progress)


def sweep(
    spec: Path,
    out: Path | None = None,
    *,
    retry: bool = False,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Table:
    """Runs a campaign, and returns all of its rows.

    With ``out``, a folder, it goes on where it was.
    """
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            return sweep(spec, folder, retry=retry, threads=threads, progress=progress)
    campaign = Campaign(spec, out)
    campaign.run(retry=retry, threads=threads, progress=progress)
    return campaign.results()


def report(
    out: Path,
    *,
    quick: bool = False,
    only: Iterable[str] | None = None,
    live: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[str, str]:
    """Writes the report of all studies; returns the paths of its page and of its JSON."""
    page, json = _native.report(
        os.fspath(out),
        quick=quick,
        only=None if only is None else list(only),
        live=live,
        seed=seed,
        progress=progress,
    )
    return os.fspath(page), os.fspath(json)
