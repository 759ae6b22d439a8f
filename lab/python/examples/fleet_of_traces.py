"""A fleet, cell by cell: the committed traces, and machines that are made up.

    python fleet_of_traces.py TRACES [MACHINES]

TRACES is the folder of the repository's traces; MACHINES is how many more are made up
(300). A made-up machine has a thread that sleeps, and requests whose timeouts are cancelled before
they fire; each tenth machine has fifty times as many requests. What a device write costs is taken
from simulated machines.
"""

# %% What it is about
import pathlib
import random
import statistics
import sys
import tempfile

import polars
import tickless

traces = pathlib.Path(sys.argv[1])
count = int(sys.argv[2]) if len(sys.argv) > 2 else 300


# %% A machine that is made up: one CPU for a fifth of a second
def made_up(seed: int) -> str:
    """A kernel trace of it, as ftrace prints one."""
    chance = random.Random(seed)
    sleep_ns = chance.randint(500_000, 5_000_000)
    requests = chance.randint(1, 20) * (50 if seed % 10 == 0 else 1)
    events: list[tuple[int, str]] = []

    def at(time: int, what: str) -> None:
        events.append((time, what))

    def start(time: int, timer: str, function: str, expires: int) -> None:
        at(time, f"hrtimer_start: hrtimer={timer} function={function} expires={expires} "
                 f"softexpires={expires} mode=ABS was_armed=0")

    due = 1_000_000_000
    while due < 1_200_000_000:
        # A thread goes to sleep, its timer fires, and it works for a moment.
        begun, due = due + 20_000, due + 20_000 + sleep_ns
        start(begun, "0a", "hrtimer_wakeup", due)
        at(due + 1_000, f"hrtimer_expire_entry: hrtimer=0a function=hrtimer_wakeup now={due + 1_000}")
        at(due + 2_000, "hrtimer_expire_exit: hrtimer=0a")
        # Requests arm a timeout and cancel it at the same time.
        for request in range(requests):
            then = begun + 1_000 + request * (sleep_ns - 40_000) // requests
            start(then, "0b", "request_timeout", then + sleep_ns // 4)
            at(then + 200, "hrtimer_cancel: hrtimer=0b")
    lines = ["# tracer: nop", "# kernel 6.18.0 HZ=250 clock=mono"]
    for time, what in sorted(events):
        seconds, rest = divmod(time, 1_000_000_000)
        lines.append(f" made-up-7 [000] d..1. {seconds}.{rest:09}: {what}")
    return "\n".join(lines) + "\n"


# %% All traces as one fleet
with tempfile.TemporaryDirectory() as folder:
    paths = sorted(traces.glob("*.txt.gz"))
    for seed in range(count):
        path = pathlib.Path(folder) / f"made-up-{seed:03}.txt"
        path.write_text(made_up(seed))
        paths.append(path)
    fleet = tickless.fleet(paths)
machines = polars.DataFrame(
    [{"trace": one["trace"], **(one["figures"] or {})} for one in fleet["machines"]],
    infer_schema_length=None,
)
print(machines.select("trace", "device_writes_per_cpu_s", "lazy_writes_per_cpu_s", "arms_most").head(8))

# %% How it is spread, and which machines differ
print(polars.DataFrame(fleet["quantiles"]))
for one in fleet["differ"]:
    print(f"{pathlib.Path(one['trace']).name}: {one['why']}")

# %% What the saved writes are worth on machines that can be bought, in CPU time
saved = machines["device_writes_per_cpu_s"] - machines["lazy_writes_per_cpu_s"]
for machine in tickless.machines():
    for number in tickless.machine(machine["name"])["numbers"]:
        if number["key"] == "event.program_ns":
            ns = number["value"] * statistics.mean(saved.drop_nulls())
            print(f"{machine['name']}: {ns:.0f} ns of each CPU's second")
