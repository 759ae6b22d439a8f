"""What timers cost: simulated, replayed and projected, over fleets.

Each function calls the program ``tickless``, which the package contains, and returns what it says:
a list of rows, or a JSON document as dictionaries and lists. The keys are described in
``docs/book/src/json.md``. Messages of the program go to standard error. Ctrl-C ends a call.

>>> import tickless
>>> [machine["cpus"] for machine in tickless.machines() if machine["name"] == "x5675-2s"]
[24]
"""

from __future__ import annotations

import csv as _csv
import json as _json
import os as _os
import pathlib as _pathlib
import re as _re
import shutil as _shutil
import subprocess as _subprocess
import sys as _sys
import sysconfig as _sysconfig
from collections.abc import Iterable as _Iterable
from collections.abc import Mapping as _Mapping
from concurrent.futures import ThreadPoolExecutor as _ThreadPoolExecutor
from importlib.metadata import version as _version
from typing import Any

__all__ = [
    "TicklessError",
    "compare",
    "doctor",
    "fleet",
    "late",
    "machine",
    "machines",
    "project",
    "quota",
    "replay",
    "report",
    "save_machine",
    "simulate",
    "study",
]
__version__ = _version("tickless")

_Path = str | _os.PathLike[str]
_Value = str | int | float
_Values = _Value | _Iterable[_Value] | None
_Paths = _Path | _Iterable[_Path]
_Document = dict[str, Any]


class TicklessError(Exception):
    """Why something could not be done. ``file`` and ``line`` are ``None`` if it is about no file."""

    def __init__(self, message: str, *places: str) -> None:
        super().__init__(message)
        # A place that was given can be any text; another one is known by its dot or slash.
        names = "|".join([*map(_re.escape, places), r"[^\s:]*[./][^\s:]*"])
        place = _re.match(rf"({names})(?::(\d+))?: (.*)", message, _re.DOTALL)
        self.file = place[1] if place else None
        self.line = int(place[2]) if place and place[2] else None
        self.cause = place[3] if place else message


#: What ``doctor --strict`` and ``compare --fail-above`` exit with after their document.
_OUT_OF_BOUNDS = 3


def _program() -> str:
    beside = _pathlib.Path(_sysconfig.get_path("scripts"), "tickless")
    found = str(beside) if beside.exists() else _shutil.which("tickless")
    if found is None:
        raise TicklessError("there is no command tickless; install the package with pip, which builds it")
    return found


def _several(name: str, values: _Values) -> list[str]:
    """The values of an option; none if it is left out. A number of numpy counts as one value."""
    if values is None:
        return []
    if isinstance(values, str) or not isinstance(values, _Iterable):
        return [str(values)]
    if isinstance(values, range) and values.step == 1 and values:
        return [f"{values.start}-{values.stop - 1}"]
    several = [str(value) for value in values]
    if not several:
        raise TicklessError(f"{name} is empty; leave it out, or name a value")
    return several


def _output(
    command: str,
    *places: _Path,
    lists: _Mapping[str, _Values] = {},
    says: bool = True,
    **options: Any,
) -> str:
    """What the command prints. ``lists`` become one option each, separated by commas.

    Unless ``says``, messages of a command that succeeds are dropped.
    """
    given = []
    for name, value in options.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            given += [f"--{option}"] * value
        else:
            given += [f"--{option}={one}" for one in _several(name, value)]
    given += [f"--{name}={','.join(all)}" for name, of in lists.items() if (all := _several(name, of))]
    named = [_os.fspath(place) for place in places]
    arguments = [_program(), command, *given, "--", *named]
    try:
        done = _subprocess.run(arguments, capture_output=True, text=True, check=False)
    except OSError as error:
        raise TicklessError(f"tickless {command} cannot be started: {error.strerror}") from error
    said = done.stderr.strip()
    if done.returncode in (0, _OUT_OF_BOUNDS):
        _sys.stderr.write(done.stderr if says else "")
        return done.stdout
    said = said.split("\n\nFor more information")[0].split("\n\nUsage:")[0]
    # Remarks about a trace come before the error.
    said = said.split("\ntickless: ")[-1].removeprefix("tickless: ").removeprefix("error: ")
    raise TicklessError(said, *named)


def _document(command: str, *places: _Path, lists: _Mapping[str, _Values] = {}, **options: Any) -> Any:
    return _json.loads(_output(command, *places, lists=lists, format="json", **options))


def machines() -> list[_Document]:
    """The simulated machines that the program has, each with its ``name`` and ``cpus``."""
    found: list[_Document] = _document("machines")
    return found


def machine(name: _Path) -> _Document:
    """A machine, by its name or its file: ``numbers`` has each with its ``key``, ``value`` and origin.

    >>> numbers = {number["key"]: number["value"] for number in machine("x5675-2s")["numbers"]}
    >>> numbers["topology.sockets"]
    2.0
    """
    found: _Document = _document("machines", _machine(name))
    return found


def _machine(name: _Path) -> str:
    """A name, or a file's path, which the program tells from a name by its folder."""
    path = _os.fspath(name)
    return path if isinstance(name, str) or _os.path.dirname(path) else _os.path.join(_os.curdir, path)


def save_machine(
    path: _Path,
    like: _Path,
    numbers: _Mapping[str, float] = {},
    *,
    cpus: int | None = None,
    title: str | None = None,
) -> str:
    """Writes the file of a machine like another one, with other numbers. Returns its path.

    ``cpus`` keeps cores and sockets whole. ``title`` is the machine's name in results. A file that is
    there is replaced. The name of a machine of the program is refused without a folder (``./host``).
    """
    changes = [f"{key}={value}" for key, value in dict(numbers).items()]
    written = _machine(path)
    _output("machines", _machine(like), set=changes or None, cpus=cpus, title=title, output=written)
    return written


def simulate(
    study: str | _Iterable[str],
    machine: _Paths,
    *,
    cpus: int | _Iterable[int] | None = None,
    policy: str | _Iterable[str] | None = None,
    hz: int | _Iterable[int] | None = None,
    seed: int | _Iterable[int] = 0,
    length: int | None = None,
    threads: int | None = None,
) -> list[_Document]:
    """Simulates studies on all combinations of machines and parameters, as ``tickless sweep`` does.

    ``study`` is ``cancel``, ``clock``, ``deferred``, ``phase``, ``rearm`` or ``schedule``;
    ``machine`` a name of ``machines()`` or a file. ``cpus`` is a number that the machine can have,
    its own if left out. ``policy`` is one of ``rearm`` (``eager``, ``lazy``, ``restart-aware``) or
    of ``schedule``; all run if it is left out. ``hz`` is the tick rate, from 1 to 100,000, the
    machine's own if left out;
    ``deferred`` has rates of its own. ``length`` is the number of round trips of ``rearm``
    (20,000), or of messages of ``schedule`` (2,000). A rate is ``None`` if fewer than
    ten ticks were simulated. Each of the others can be several. ``seed`` is for ``cancel``,
    ``deferred`` and ``schedule``, which draw by chance. What the machine or the study does not have
    is an error. It takes ``threads`` CPUs, all if left out. Ctrl-C leaves no rows.

    >>> rows = simulate("rearm", "x5675-2s", policy="eager", length=100)
    >>> [round(row["value"]) for row in rows if row["figure"] == "device_writes_per_round_trip"]
    [8]
    """
    text = _output(
        "sweep",
        *_several("study", study),
        machine=[_machine(name) for name in _paths(machine)],
        policy=policy,
        length=length,
        threads=threads,
        lists={"cpus": cpus, "hz": hz, "seeds": seed},
    )
    whole, real = ("cpus", "hz", "seed"), ("value", "low", "high")

    def value(name: str, text: str) -> _Value | None:
        if not text:
            return None
        return int(text) if name in whole else float(text) if name in real else text

    rows = _csv.DictReader(text.splitlines())
    return [{name: value(name, text) for name, text in row.items()} for row in rows]


def replay(
    trace: _Path,
    policy: str | _Iterable[str] | None = None,
    *,
    inference: bool = True,
    hz: int | _Iterable[int] | None = None,
    upgrade: str | None = None,
) -> _Document:
    """Replays a kernel trace through the timer core, once for each policy, in their own order.

    ``policy`` is ``eager``, ``lazy`` and ``restart-aware`` if left out. Without ``inference`` only
    the operations that the trace records are replayed. ``hz`` are other tick rates to replay with,
    and ``upgrade`` is a kernel's version, such as ``"7.2"``.
    """
    options: dict[str, Any] = {"policy": policy, "no_inference": not inference}
    options |= {"hz": hz, "upgrade": upgrade}
    found: _Document = _document("replay", trace, **options)
    return found


#: The figures that ``fleet`` compares: their units, and what they are.
_FIGURES = {
    "device_writes_per_cpu_s": ("writes/s", "device writes"),
    "wakeups_per_cpu_s": ("wakeups/s", "wakeups"),
    "spurious_wakeups_per_cpu_s": ("wakeups/s", "wakeups for nothing"),
    "eager_writes_per_cpu_s": ("writes/s", "writes under eager"),
    "lazy_writes_per_cpu_s": ("writes/s", "writes under lazy"),
    "restart_aware_writes_per_cpu_s": ("writes/s", "writes under restart-aware"),
    "lazy_wakeups_per_cpu_s": ("wakeups/s", "wakeups under lazy"),
    "armed_per_cpu_s": ("timers/s", "armings"),
    "cancelled_percent": ("%", "armings that did not fire"),
}

#: Rates of a shorter trace, in seconds, are not those of its machine: it has hardly more than a tick.
_SPAN_MIN = 0.01


def fleet(traces: _Paths, *, threads: int | None = None) -> _Document:
    """A summary of many kernel traces, one for each machine.

    ``machines`` has a row for each trace with its ``figures``, which are rates of each CPU and second,
    and the function that arms most; recorded ones, or those of a replay under ``restart-aware`` if
    nothing was recorded. A trace that cannot be used has an ``error`` instead, and what is wrong with
    one that can is in its ``notes``. ``quantiles`` has the distribution of each figure, and
    ``differ`` the ten machines that are farthest from the median, with the reason. Traces are read
    on ``threads`` CPUs, all if left out.

    >>> fleet(["no such file"])["machines"][0]["error"]
    'no such file: cannot be opened (No such file or directory (os error 2)). Check the name and who may read it'
    """
    wanted = list(_paths(traces))
    if not wanted:
        raise TicklessError("traces is empty; name the files of a fleet")
    if threads is not None and threads < 1:
        raise TicklessError(f"threads is {threads}; name a number from 1, or leave it out for all CPUs")
    with _ThreadPoolExecutor(threads or _os.cpu_count()) as pool:
        return _compared(list(pool.map(_seen, wanted)))


def _seen(trace: _Path) -> _Document:
    """The row of a trace in a fleet."""
    row: _Document = {"trace": _os.fspath(trace), "figures": None, "error": None, "notes": []}
    try:
        found = _document("replay", trace, says=False)
    except TicklessError as error:
        row["error"] = str(error)
        return row
    about, operations = found["trace"], found["operations"]
    damage = (found["agreement"] or {}).get("damage") or []
    time = about["cpus"] * about["seconds"] * about["seen_percent"] / 100
    if damage:
        row["error"] = f"{row['trace']}: damaged: {damage[0]}"
    elif about["seconds"] < _SPAN_MIN or time <= 0:
        row["error"] = f"{row['trace']}: {1e6 * about['seconds']:.0f} us are too short for rates"
    if row["error"]:
        return row
    eager, lazy, aware = found["policies"]
    recorded, most = about["recorded"], (found["top_functions"] or [{"function": "", "starts": 0}])[0]

    def first(*counts: int | None) -> float:
        return float(next(count for count in counts if count is not None) / time)

    row["notes"] = found["notes"]
    row["figures"] = {
        "cpus": about["cpus"],
        "seconds": about["seconds"],
        "device_writes_per_cpu_s": first(recorded["device_writes"], aware["device_writes"]),
        "wakeups_per_cpu_s": first(recorded["timer_interrupts"], aware["wakeups"]),
        "spurious_wakeups_per_cpu_s": first(aware["spurious_wakeups"]),
        "eager_writes_per_cpu_s": first(eager["device_writes"]),
        "lazy_writes_per_cpu_s": first(lazy["device_writes"]),
        "restart_aware_writes_per_cpu_s": first(aware["device_writes"]),
        "lazy_wakeups_per_cpu_s": first(lazy["wakeups"]),
        "armed_per_cpu_s": first(operations["start"]),
        "cancelled_percent": found["cancelled_percent"],
        "arms_most": most["function"],
        "arms_most_percent": 100 * most["starts"] / max(operations["start"], 1),
    }
    return row


def _compared(machines: list[_Document]) -> _Document:
    """The quantiles of the figures of a fleet, and the machines that differ most."""
    usable = [one for one in machines if one["figures"]]
    quantiles, far = [], []
    for figure, (unit, about) in _FIGURES.items() if usable else ():
        values = sorted(one["figures"][figure] for one in usable)
        shares = {f"p{percent}": percent / 100 for percent in (5, 25, 50, 75, 95)}
        at = {name: values[int((len(values) - 1) * share + 0.5)] for name, share in shares.items()}
        quantiles.append({"figure": figure, "unit": unit, **at})
        median = at["p50"]
        # If half of all machines are equal, so are the quartiles, and every distance would be
        # infinite: then it counts in quarters of the mean distance.
        mean = sum(abs(value - median) for value in values) / len(values)
        usual = max((at["p75"] - at["p25"]) / 2, mean / 4)
        for number, one in enumerate(usable):
            value, figures = one["figures"][figure], one["figures"]
            if value == median:
                continue
            why = f"{about}: {value:.1f} {unit}, and {median:.1f} for the median machine; "
            why += f"{figures['arms_most']} arms {figures['arms_most_percent']:.0f} % of its timers"
            distance = abs(value - median) / usual
            differs = {"trace": one["trace"], "figure": figure, "unit": unit, "value": value}
            far.append((number, differs | {"median": median, "distance": distance, "why": why}))
    farthest: dict[int, _Document] = {}
    for number, differs in far:
        if number not in farthest or differs["distance"] > farthest[number]["distance"]:
            farthest[number] = differs
    differ = sorted(farthest.values(), key=lambda differs: -differs["distance"])[:10]
    return {"machines": machines, "quantiles": quantiles, "differ": differ}


def _paths(paths: _Paths) -> _Iterable[_Path]:
    return [paths] if isinstance(paths, str | _os.PathLike) else paths


def project(
    trace: _Path,
    machine: _Path,
    *,
    cpus: int | _Iterable[int] | None = None,
    clock: str = "tsc",
    policy: str | _Iterable[str] | None = None,
    seed: int = 0,
    seconds: float | None = None,
) -> _Document:
    """Lays a kernel trace onto a simulated machine, once for each number of CPUs and policy.

    ``cpus`` are from 1 to 4096, the machine's own number if left out. ``clock`` is ``tsc``,
    ``hpet`` or ``combined``. ``seconds`` of the trace run, about a million operations if left out.
    """
    options = {"machine": _machine(machine), "clock": clock, "seed": seed, "seconds": seconds}
    found: _Document = _document("project", trace, policy=policy, lists={"cpus": cpus}, **options)
    return found


def late(
    trace: _Path,
    *,
    threshold: str | None = None,
    process: str | None = None,
    pid: int | None = None,
    thread: str | None = None,
    all: bool = False,
) -> _Document:
    """Explains why threads ran late or waited for a CPU, as ``tickless late`` does.

    The trace is one of ``tickless record --events late``. ``threshold`` is a time with its unit,
    ``"200us"`` if left out.
    """
    chosen: dict[str, Any] = {"process": process, "pid": pid, "thread": thread, "all": all}
    found: _Document = _document("late", trace, threshold=threshold, **chosen)
    return found


def quota(
    trace: _Path,
    *,
    cgroup: str | None = None,
    process: str | None = None,
    pid: int | None = None,
    thread: str | None = None,
    without: str | int | _Iterable[str | int] | None = None,
    limit: str | float | _Iterable[str | float] | None = None,
    period: str | _Iterable[str] | None = None,
    burst: float | _Iterable[float] | None = None,
    cpus: int | _Iterable[int] | None = None,
    delay: str | None = None,
    delayed: float | None = None,
) -> _Document:
    """Predicts what other CPU limits would have done, as ``tickless quota`` does.

    The trace is one of ``tickless record --events quota``. ``limit`` is in CPUs, ``period`` and
    ``delay`` times with their unit, ``burst`` and ``delayed`` percentages. The delays of threads
    ``without`` do not count; it has parts of names, and numbers.
    """
    chosen: dict[str, Any] = {"cgroup": cgroup, "process": process, "pid": pid, "thread": thread}
    lists: dict[str, _Values] = {"without": without, "limit": limit, "period": period}
    lists |= {"burst": burst, "cpus": cpus}
    found: _Document = _document("quota", trace, delay=delay, delayed=delayed, lists=lists, **chosen)
    return found


def compare(a: _Path, b: _Path, *, all: bool = False) -> _Document:
    """Shows what moved between two results, as ``tickless compare`` does.

    ``all`` also has what did not move.
    """
    found: _Document = _document("compare", a, b, all=all)
    return found


def doctor(
    *, duration: str | None = None, check: str | _Iterable[str] | None = None
) -> list[_Document]:
    """Looks for needless costs of this machine's timers, as ``tickless doctor`` does.

    ``duration`` is a time with its unit, ``"3s"`` if left out. Root sees more.
    """
    found: list[_Document] = _document("doctor", duration=duration, lists={"check": check})
    return found


def study(
    name: str,
    *,
    live: bool = False,
    quick: bool = False,
    full: bool = False,
    cpus: int | _Iterable[int] | None = None,
    machine: _Path | None = None,
    seed: int = 0,
    sensitivity: bool = False,
) -> _Document:
    """A study with its published figures, verdicts and plots, as ``tickless study`` shows it.

    It is simulated, or with ``live`` measured on this machine. ``cpus`` are the points of a curve:
    a number that the machine cannot have is an error.
    """
    options: dict[str, Any] = {"live": live, "quick": quick, "full": full}
    options["machine"] = None if machine is None else _machine(machine)
    options |= {"seed": seed, "sensitivity": sensitivity}
    found: _Document = _document("study", name, lists={"cpus": cpus}, **options)
    return found


def report(
    out: _Path,
    *,
    quick: bool = False,
    only: _Iterable[str] | None = None,
    live: bool = True,
    seed: int = 0,
) -> tuple[str, str]:
    """Writes the report of all studies into a folder. Returns the paths of its page and its JSON.

    ``quick`` takes seconds, ``only`` names studies, and without ``live`` nothing is measured.
    """
    _output("report", out=_os.fspath(out), quick=quick, only=only, sim_only=not live, seed=seed)
    return _os.path.join(out, "report.html"), _os.path.join(out, "report.json")


del annotations
