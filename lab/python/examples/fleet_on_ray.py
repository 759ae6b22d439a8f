"""A campaign on a Ray cluster, and its table as a polars frame.

    python fleet_on_ray.py campaign.toml results [ADDRESS]
"""

import sys

import polars
import ray
import tickless
import tickless.ray

spec, out, *address = sys.argv[1:]
ray.init(address=address[0] if address else None)
done = tickless.ray.run(spec, out, progress=lambda so_far, of: print(f"{so_far} of {of}"))
print(f"{done.tasks} tasks, at most {done.overhead_ms:.1f} ms each beside their cells")
frame = polars.DataFrame(tickless.Campaign(spec, out).results())
print(frame.filter(polars.col("error").is_null()).group_by("figure").agg(polars.col("value").median()))
