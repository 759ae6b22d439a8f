from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any, final

_Path = str | PathLike[str]

__version__: str
__all__ = [
    "Fleet",
    "Machine",
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
]

class TicklessError(Exception):
    """Why something could not be done."""

    file: str | None
    line: int | None
    cause: str

@final
class Table:
    """A table of results: Arrow by the PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __getitem__(self, key: str, /) -> list[Any]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def columns(self) -> list[str]: ...
    def to_dicts(self) -> list[dict[str, Any]]: ...

@final
class Machine:
    """A simulated machine. Its numbers can be changed and saved."""

    def __new__(cls, name: str) -> Machine: ...
    name: str
    @property
    def about(self) -> str: ...
    @property
    def cpus(self) -> int: ...
    def keys(self) -> list[str]: ...
    def __iter__(self) -> Iterator[str]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __getitem__(self, key: str, /) -> float: ...
    def __setitem__(self, key: str, value: float, /) -> None: ...
    def sized(self, cpus: int) -> Machine: ...
    def save(self, path: _Path) -> None: ...
    def to_toml(self) -> str: ...

@final
class Fleet:
    """A summary of many traces, as tables."""

    @property
    def machines(self) -> Table: ...
    @property
    def quantiles(self) -> Table: ...
    @property
    def differ(self) -> Table: ...
    def __len__(self) -> int: ...

def machine_names() -> list[str]: ...
def simulate(
    study: str,
    machine: Machine,
    *,
    cpus: int | None = None,
    policy: str | None = None,
    hz: int | None = None,
    seed: int = 0,
    length: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Table: ...
def replay(
    paths: list[_Path],
    policies: list[str] | None = None,
    *,
    inference: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Table: ...
def fleet(
    paths: list[_Path], *, progress: Callable[[int, int], object] | None = None
) -> Fleet: ...
def project(
    path: _Path,
    machine: Machine,
    *,
    cpus: list[int] | None = None,
    clock: str = ...,
    policies: list[str] | None = None,
    seed: int = 0,
    seconds: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Table: ...
def read_trace(
    path: _Path, *, progress: Callable[[int, int], object] | None = None
) -> Table: ...
def report(
    out: _Path,
    *,
    quick: bool = False,
    only: list[str] | None = None,
    live: bool = True,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[_Path, _Path]: ...
