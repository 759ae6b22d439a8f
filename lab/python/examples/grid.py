"""A grid of simulated machines, one call for each cell.

    python grid.py [SEEDS]

One call of ``simulate`` with several seeds does the same on all CPUs of one machine. A call for each
cell is for several machines, and keeps what it has if a cell fails: other pools take the same
function (``joblib.delayed(cell)``, dask's ``client.map(cell, ...)``, ``ray.remote(cell)``).
"""

import concurrent.futures
import itertools
import sys
from typing import Any

import polars
import tickless


def cell(cpus: int, policy: str, seed: int) -> list[dict[str, Any]]:
    """One cell; nothing else is shared between them."""
    return tickless.simulate(
        "schedule", "haswell-ex-4s", cpus=cpus, policy=policy, seed=seed, length=500, threads=1
    )


if __name__ == "__main__":
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
    grid = list(itertools.product([2, 4, 8], ["restart-aware", "linux-7.1"], seeds))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        cells = list(pool.map(cell, *zip(*grid)))
    rows = polars.DataFrame(list(itertools.chain(*cells)), infer_schema_length=None)
    print(rows.pivot("policy", index=["figure", "cpus"], values="value", aggregate_function="median"))
