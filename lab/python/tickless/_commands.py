"""The commands of the program that answer with a JSON document."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from typing import Any

from ._native import TicklessError

Path = str | os.PathLike[str]
Option = str | int | float | Iterable[str | int | float] | None

#: What `doctor --strict` and `compare --fail-above` exit with after their document.
_OUT_OF_BOUNDS = 3


def _program() -> str:
    beside = pathlib.Path(sysconfig.get_path("scripts"), "tickless")
    found = str(beside) if beside.exists() else shutil.which("tickless")
    if found is None:
        raise _error("there is no command tickless; install the package with pip, which builds it")
    return found


def _error(cause: str) -> TicklessError:
    error = TicklessError(cause)
    error.file, error.line, error.cause = None, None, cause
    return error


def _document(command: str, *places: Path, **options: Option) -> Any:
    """What `tickless COMMAND --format json` prints. Its messages go to standard error."""
    given = []
    for name, value in options.items():
        if isinstance(value, bool):
            given += [f"--{name}"] * value
        elif value is not None:
            values = [value] if isinstance(value, str | int | float) else value
            given.append(f"--{name}={','.join(map(str, values))}")
    paths = [os.fspath(place) for place in places]
    arguments = [_program(), command, "--format=json", *given, "--", *paths]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode not in (0, _OUT_OF_BOUNDS):
        raise _error(done.stderr.strip().removeprefix("tickless: "))
    sys.stderr.write(done.stderr)
    return json.loads(done.stdout)


def late(
    trace: Path,
    *,
    threshold: str | None = None,
    process: str | None = None,
    pid: int | None = None,
    thread: str | None = None,
    all: bool = False,
) -> dict[str, Any]:
    """Explains why threads ran late or waited for a CPU, as ``tickless late`` does.

    The trace is one of ``tickless record --events late``. ``threshold`` is a time with its unit,
    ``"200us"`` if left out.
    """
    chosen = {"process": process, "pid": pid, "thread": thread, "all": all}
    document: dict[str, Any] = _document("late", trace, threshold=threshold, **chosen)
    return document


def quota(
    trace: Path,
    *,
    cgroup: str | None = None,
    process: str | None = None,
    pid: int | None = None,
    thread: str | None = None,
    without: Iterable[str | int] | None = None,
    limits: Iterable[str | float] | None = None,
    periods: Iterable[str] | None = None,
    bursts: Iterable[float] | None = None,
    cpus: Iterable[int] | None = None,
    delay: str | None = None,
    delayed: float | None = None,
) -> dict[str, Any]:
    """Predicts what other CPU limits would have done, as ``tickless quota`` does.

    The trace is one of ``tickless record --events quota``. ``limits`` are in CPUs, ``periods`` and
    ``delay`` times with their unit, ``bursts`` and ``delayed`` percentages. The delays of threads
    ``without`` do not count; it has parts of names, and numbers.
    """
    chosen = {"cgroup": cgroup, "process": process, "pid": pid, "thread": thread}
    limit = {"without": without, "limit": limits, "period": periods, "burst": bursts, "cpus": cpus}
    document: dict[str, Any] = _document("quota", trace, delay=delay, delayed=delayed, **limit, **chosen)
    return document


def compare(a: Path, b: Path, *, all: bool = False) -> dict[str, Any]:
    """Shows what moved between two results, as ``tickless compare`` does.

    ``all`` also has what did not move.
    """
    document: dict[str, Any] = _document("compare", a, b, all=all)
    return document


def doctor(
    *, duration: str | None = None, checks: Iterable[str] | None = None
) -> list[dict[str, Any]]:
    """Looks for needless costs of this machine's timers, as ``tickless doctor`` does.

    ``duration`` is a time with its unit, ``"3s"`` if left out. Root sees more.
    """
    document: list[dict[str, Any]] = _document("doctor", duration=duration, check=checks)
    return document
