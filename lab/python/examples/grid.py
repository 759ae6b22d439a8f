"""A grid of simulated machines, one call for each cell, on processes of your own.

    python grid.py [SEEDS]

Other pools take the same function: ``joblib.delayed(cell)``, dask's ``client.map(cell, ...)``,
``ray.remote(cell)``. Tables and machines can be pickled.
"""

import concurrent.futures
import itertools
import sys

import polars
import tickless


def cell(cpus: int, policy: str, seed: int) -> tickless.Table:
    """One cell; nothing else is shared between them."""
    return tickless.simulate("rearm", "x5675-2s", cpus=cpus, policy=policy, seed=seed, length=200)


if __name__ == "__main__":
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
    grid = list(itertools.product([4, 12, 24], ["eager", "lazy", "restart-aware"], seeds))
    with concurrent.futures.ProcessPoolExecutor() as pool:
        tables = list(pool.map(cell, *zip(*grid)))
    rows = polars.concat([polars.DataFrame(table) for table in tables])
    print(rows.pivot("policy", index=["figure", "cpus"], values="value", aggregate_function="median"))
