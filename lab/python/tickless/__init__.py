"""What timers cost: simulated, replayed and projected, over fleets.

>>> import tickless
>>> tickless.Machine("x5675-2s").cpus
24
"""

from __future__ import annotations

import operator as _operator
import os as _os
from collections.abc import Callable as _Callable
from collections.abc import Iterable as _Iterable

from . import _native
from ._commands import compare, doctor, late, quota
from ._native import Fleet, Machine, Table, TicklessError, __version__, machine_names

__all__ = [
    "Fleet",
    "Machine",
    "Path",
    "Progress",
    "Table",
    "TicklessError",
    "__version__",
    "compare",
    "doctor",
    "fleet",
    "late",
    "machine_names",
    "project",
    "quota",
    "read_trace",
    "replay",
    "report",
    "simulate",
]

Path = str | _os.PathLike[str]
#: Called now and then with the numbers of steps done and of all steps. An exception in it ends the
#: call.
Progress = _Callable[[int, int], object]


def _whole(name: str, value: int, most: int) -> int:
    """An argument as a whole number that the native part can take."""
    try:
        number = _operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, but must be a whole number") from None
    if not 0 <= number <= most:
        raise OverflowError(f"{name} is {number}, but must be from 0 to {most}")
    return number


def _optional(name: str, value: int | None, most: int) -> int | None:
    return None if value is None else _whole(name, value, most)


#: The greatest numbers of 16, 32 and 64 bits.
_U16, _U32, _U64 = 2**16 - 1, 2**32 - 1, 2**64 - 1


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
    """Runs a study on a simulated machine: a name from ``machine_names()``, a file, or a Machine.

    ``study`` is ``cancel``, ``clock``, ``deferred``, ``phase``, ``rearm`` or ``schedule``. ``cpus``
    is a number that the machine can have, its own if left out. ``policy`` is one of ``rearm``
    (``eager``, ``lazy``, ``restart-aware``) or of ``schedule``; all run if it is left out. ``hz`` is
    the tick rate. ``length`` is the number of round trips of ``rearm`` under one policy, or of
    messages of ``schedule``. What the machine or the study does not have is an error.

    >>> rows = simulate("rearm", "x5675-2s", policy="eager", length=100)
    >>> round(rows["value"][1])
    8
    """
    return _native.simulate(
        study,
        _machine(machine),
        cpus=_optional("cpus", cpus, _U16),
        policy=policy,
        hz=_optional("hz", hz, _U32),
        seed=_whole("seed", seed, _U64),
        length=_optional("length", length, _U32),
        progress=progress,
    )


def replay(
    paths: Path | _Iterable[Path],
    policies: _Iterable[str] | None = None,
    *,
    inference: bool = True,
    progress: Progress | None = None,
) -> Table:
    """Replays kernel traces through the timer core, once for each policy.

    ``policies`` are ``eager``, ``lazy`` and ``restart-aware`` if left out. Without ``inference``
    only the operations that the trace records are replayed.

    ``progress`` is called now and then with the numbers of traces done and of all traces.
    """
    if isinstance(paths, str | _os.PathLike):
        paths = [paths]
    chosen = None if policies is None else list(policies)
    return _native.replay([*paths], chosen, inference=inference, progress=progress)


def fleet(paths: Path | _Iterable[Path], *, progress: Progress | None = None) -> Fleet:
    """A summary of many kernel traces, one for each machine.

    A trace that cannot be used is a row with its error.
    """
    if isinstance(paths, str | _os.PathLike):
        paths = [paths]
    return _native.fleet([*paths], progress=progress)


def project(
    path: Path,
    machine: Machine | str,
    *,
    cpus: _Iterable[int] | None = None,
    clock: str = "tsc",
    policies: _Iterable[str] | None = None,
    seed: int = 0,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Table:
    """Lays a kernel trace onto a simulated machine, once for each number of CPUs and policy.

    ``cpus`` are from 1 to 4096, the machine's own number if left out. ``clock`` is ``tsc``,
    ``hpet`` or ``combined``. ``seconds`` of the trace run, about a million operations if left out.
    """
    return _native.project(
        path,
        _machine(machine),
        cpus=None if cpus is None else [_whole("cpus", count, _U16) for count in cpus],
        clock=clock,
        policies=None if policies is None else list(policies),
        seed=_whole("seed", seed, _U64),
        seconds=seconds,
        progress=progress,
    )


def read_trace(path: Path, *, progress: Progress | None = None) -> Table:
    """The events of a kernel trace, one a row."""
    return _native.read_trace(path, progress=progress)


def report(
    out: Path,
    *,
    quick: bool = False,
    only: _Iterable[str] | None = None,
    live: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[str, str]:
    """Writes the report of all studies; returns the paths of its page and of its JSON.

    ``quick`` takes seconds, ``only`` names studies, and without ``live`` nothing is measured.
    """
    page, json = _native.report(
        out,
        quick=quick,
        only=None if only is None else list(only),
        live=live,
        seed=_whole("seed", seed, _U64),
        progress=progress,
    )
    return _os.fspath(page), _os.fspath(json)


del annotations
