"""The built wheel: results, errors, Ctrl-C, and what reads the rows."""

from __future__ import annotations

import gzip
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pandas
import polars
import pyarrow
import pytest
import tickless

TRACES = pathlib.Path(os.environ.get("TICKLESS_TRACES", "../../traces"))


def test_the_module_has_only_its_own_names() -> None:
    names = {name for name in dir(tickless) if not name.startswith("_")}
    assert names - {"Any"} == set(tickless.__all__)


def test_polars_pyarrow_and_pandas_read_rows() -> None:
    rows = tickless.simulate("rearm", "x5675-2s", policy=["eager", "lazy"], cpus=[4, 12, 24])
    assert len(rows) == 2 * 3 * 5
    calibrated = [row for row in rows if row["role"] == "calibrated"]
    assert [(row["policy"], row["cpus"], row["figure"]) for row in calibrated] == [
        ("lazy", 24, "us_per_round_trip")
    ]
    frame = polars.DataFrame(rows, infer_schema_length=None)
    assert frame.height == len(pandas.DataFrame(rows)) == pyarrow.Table.from_pylist(rows).num_rows
    assert frame["value"].dtype == polars.Float64 and frame["seed"].dtype == polars.Int64
    writes = frame.filter(figure="device_writes_per_round_trip").group_by("policy")
    means = writes.agg(polars.col("value").mean().round()).rows()
    assert set(means) == {("eager", 8.0), ("lazy", 0.0)}
    assert pickle.loads(pickle.dumps(rows)) == rows


def test_several_values_are_a_grid(tmp_path: pathlib.Path) -> None:
    def one(machine: str, cpus: int, hz: int, seed: int) -> list[dict[str, Any]]:
        return tickless.simulate(
            "schedule", machine, policy="lazy", cpus=cpus, hz=hz, seed=seed, length=1
        )

    slow = tickless.save_machine(tmp_path / "slow.toml", "x5675-2s", {"event.program_ns": 5_000})
    machines = ["x5675-2s", slow]
    grid = tickless.simulate(
        ["schedule"], machines, policy="lazy", cpus=[2, 4], hz=[250, 1000], seed=[7, 9], length=1, threads=2
    )
    by_hand = [
        row
        for machine in machines
        for cpus in [2, 4]
        for hz in [250, 1000]
        for seed in [7, 9]
        for row in one(machine, cpus, hz, seed)
    ]
    assert grid == by_hand and {row["machine"] for row in grid} == set(machines)


def test_a_replay_is_a_document() -> None:
    nginx = tickless.replay(TRACES / "nginx.txt.gz", ["eager", "lazy"])
    assert nginx["trace"]["recorded"]["device_writes"] == 320
    writes = {one["policy"]: one["device_writes"] for one in nginx["policies"]}
    assert writes == {"eager": 320, "lazy": 192}
    assert polars.DataFrame(nginx["policies"]).height == 2
    assert "the header promises 810406 events" in nginx["notes"][0]
    assert tickless.replay(TRACES / "idle.txt.gz", inference=False)["inferred_operations"] == 0


def test_machines_can_be_changed(tmp_path: pathlib.Path) -> None:
    def numbers(machine: str) -> dict[str, float]:
        return {one["key"]: one["value"] for one in tickless.machine(machine)["numbers"]}

    price = numbers("x5675-2s")["event.program_ns"]
    slow = tickless.save_machine(
        tmp_path / "slow.toml", "x5675-2s", {"event.program_ns": 10 * price}, title="slow device"
    )
    assert tickless.machine(slow)["title"] == "slow device"
    assert numbers(slow)["event.program_ns"] == 10 * price
    rows = [tickless.simulate("rearm", name, policy="eager", length=100) for name in ["x5675-2s", slow]]
    assert rows[1][0]["value"] > rows[0][0]["value"] and rows[1][0]["machine"] == slow
    small = tickless.save_machine(tmp_path / "small.toml", slow, cpus=4)
    assert tickless.simulate("rearm", small, policy="lazy", length=50)[0]["cpus"] == 4
    with pytest.raises(tickless.TicklessError, match="no number event.progam_ns"):
        tickless.save_machine(tmp_path / "none.toml", slow, {"event.progam_ns": 1})
    assert not (tmp_path / "none.toml").exists()


def test_an_error_has_its_file_line_and_cause(tmp_path: pathlib.Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("name = 'x'\n[line]\nhit = 3\n")
    with pytest.raises(tickless.TicklessError) as caught:
        tickless.machine(wrong)
    error = caught.value
    assert (error.file, error.line) == (str(wrong), 3) and "line.hit" in error.cause
    with pytest.raises(tickless.TicklessError, match="cannot be opened") as caught:
        tickless.replay(tmp_path / "nothing.txt")
    assert caught.value.file == str(tmp_path / "nothing.txt") and caught.value.line is None
    with pytest.raises(tickless.TicklessError, match="cannot be opened") as caught:
        tickless.replay("no such trace")
    assert caught.value.file == "no such trace"
    with pytest.raises(tickless.TicklessError, match="^.*nginx.txt.gz: no sched_switch"):
        tickless.late(TRACES / "nginx.txt.gz")
    with pytest.raises(tickless.TicklessError, match="soon") as caught:
        tickless.late(TRACES / "bursts.txt.gz", threshold="soon")
    assert caught.value.file is None


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"cpus": 0}, "'0' for '--cpus <LIST>'.*from 1 to 4096"),
        ({"cpus": 1}, "next has 2"),
        ({"cpus": 25}, "next has 36"),
        ({"cpus": 70_000}, "70000 is not a number from 1 to 4096"),
        ({"seed": -1}, "--seeds"),
        ({"seed": 1}, "draws nothing by chance"),
        ({"seed": []}, "seeds is empty"),
        ({"machine": "haswell-ex-4s"}, "runs on x5675-2s"),
        ({"hz": 2.5}, "--hz.*2.5"),
        ({"policy": "linux-7.1"}, "knows none of these policies"),
        ({"policy": "lazier"}, "lazier(.|\n)*eager"),
    ],
)
def test_what_a_machine_or_a_study_does_not_have_is_named(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(tickless.TicklessError, match=why):
        tickless.simulate("rearm", **{"machine": "x5675-2s"} | arguments)


def test_a_file_is_not_taken_for_a_machine_of_its_name(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = tickless.save_machine("plain", "x5675-2s", cpus=4)
    assert tickless.simulate("rearm", plain, policy="lazy", length=50)[0]["cpus"] == 4
    with pytest.raises(tickless.TicklessError, match="write ./x5675-2s"):
        tickless.save_machine("x5675-2s", "host")
    path = pathlib.Path("x5675-2s")
    for same in (tickless.save_machine(path, "x5675-2s", {"event.program_ns": 7}), path):
        numbers = {number["key"]: number["value"] for number in tickless.machine(same)["numbers"]}
        assert numbers["event.program_ns"] == 7
    with pytest.raises(tickless.TicklessError, match="^./host: cannot be read"):
        tickless.project(TRACES / "idle.txt.gz", pathlib.Path("host"))


def test_projections_have_a_point_for_each_size_and_policy() -> None:
    idle = TRACES / "idle.txt.gz"
    points = tickless.project(idle, "host", cpus=[2, 4], policy="lazy", seconds=1)["points"]
    assert [(one["cpus"], one["policy"]) for one in points] == [(2, "lazy"), (4, "lazy")]
    for wrong, why in [({"cpus": [4097]}, "from 1 to 4096"), ({"seconds": float("nan")}, "no time")]:
        with pytest.raises(tickless.TicklessError, match=why):
            tickless.project(idle, "host", **wrong)  # type: ignore[arg-type]


def test_commands_return_their_documents(tmp_path: pathlib.Path) -> None:
    late = tickless.late(TRACES / "bursts.txt.gz", threshold="1ms", all=True)
    assert late["sleeps"] > 0
    quota = tickless.quota(TRACES / "bursts.txt.gz", limit=["500m", 2], period="20ms")
    assert len(quota["settings"]) == 2
    with pytest.raises(tickless.TicklessError, match="monitor leaves out none"):
        tickless.quota(TRACES / "bursts.txt.gz", without=["monitor", 7])
    with pytest.raises(tickless.TicklessError, match="--process <NAME>' but none"):
        tickless.late(TRACES / "bursts.txt.gz", process="")
    study = tickless.study("phase", quick=True)
    assert study["world"] == "sim" and any(cell["published"] for cell in study["cells"])
    pages = [tickless.report(tmp_path / name, quick=True, only=["phase"], live=False) for name in "ab"]
    assert "<svg" in pathlib.Path(pages[0][0]).read_text()
    changes = tickless.compare(pages[0][1], pages[1][1], all=True)["changes"]
    assert changes and all(change["a"] == change["b"] for change in changes)
    (finding,) = tickless.doctor(duration="100ms", check="clock-source")
    assert finding["check"] == "clock-source"


def test_a_fleet_is_seen_as_a_whole(tmp_path: pathlib.Path) -> None:
    broken = tmp_path / "broken.txt"
    broken.write_text("nothing of a trace\n")
    traces = sorted(TRACES.glob("*.txt.gz"))
    fleet = tickless.fleet([*traces, broken])
    assert [one["trace"] for one in fleet["machines"]] == [str(path) for path in [*traces, broken]]
    assert [one["figures"] is None for one in fleet["machines"]] == [False] * len(traces) + [True]
    assert "broken.txt" in fleet["machines"][-1]["error"]
    assert "for the median machine" in fleet["differ"][0]["why"]
    assert polars.DataFrame(fleet["quantiles"]).height > 5
    for figures in (one["figures"] for one in fleet["machines"][:-1]):
        assert all(figures[name] >= 0 for name in tickless._FIGURES) and figures["cancelled_percent"] <= 100
    # Traces that are damaged or short count nowhere.
    text = gzip.decompress((TRACES / "idle.txt.gz").read_bytes()).decode()
    lines = [line for line in text.splitlines(True) if line[0] != "#"]
    (tmp_path / "twice.txt").write_text(text + "".join(lines))
    (tmp_path / "short.txt").write_text(text[: text.index(lines[9])])
    bad = tickless.fleet([tmp_path / "twice.txt", tmp_path / "short.txt", broken], threads=1)
    errors = [one["error"] for one in bad["machines"]]
    assert "damaged: " in errors[0] and "too short for rates" in errors[1] and len(errors) == 3
    assert bad["quantiles"] == bad["differ"] == []
    with pytest.raises(tickless.TicklessError, match="traces is empty"):
        tickless.fleet([])
    with pytest.raises(tickless.TicklessError, match="threads is 0"):
        tickless.fleet(broken, threads=0)


def test_the_machine_that_differs_most_is_first_with_its_figure() -> None:
    def machine(number: int) -> dict[str, Any]:
        figures = dict.fromkeys(tickless._FIGURES, 50.0)
        figures["device_writes_per_cpu_s"] = 900.0 if number == 7 else 100.0 + number % 5
        figures["armed_per_cpu_s"] = 2_000.0 if number == 9 else 1_000.0 + 20 * (number % 7)
        most = {"arms_most": "hrtimer_wakeup", "arms_most_percent": 60.0}
        return {"trace": str(number), "figures": figures | most, "error": None, "notes": []}

    cut: dict[str, Any] = {"trace": "cut", "figures": None, "error": "cut off", "notes": []}
    fleet = tickless._compared([*map(machine, range(40)), cut])
    assert fleet["quantiles"][0]["p50"] == 102 and len(fleet["differ"]) == 10
    first = [(one["trace"], one["figure"]) for one in fleet["differ"][:2]]
    assert first == [("7", "device_writes_per_cpu_s"), ("9", "armed_per_cpu_s")]
    why = "device writes: 900.0 writes/s, and 102.0 for the median machine; hrtimer_wakeup arms 60 % of its timers"
    assert fleet["differ"][0]["why"] == why
    assert tickless._compared([machine(0)] * 20)["differ"] == []


def test_an_interrupt_ends_a_call() -> None:
    # A shell starts what runs in its background with interrupts ignored, and Python leaves them so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    killer = threading.Timer(1.5, os.kill, [os.getpid(), signal.SIGINT])
    killer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        tickless.simulate("schedule", "x5675-2s", seed=range(100_000))
    assert time.monotonic() - begun < 30


def test_ten_thousand_rows_fit_into_200_mb() -> None:
    python = (
        "import resource, tickless\n"
        "rows = tickless.simulate('schedule', 'x5675-2s', policy='lazy', length=1, seed=range(2_000))\n"
        "assert len(rows) == 10_000\n"
        "for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):\n"
        "    assert resource.getrusage(who).ru_maxrss < 200_000\n"
    )
    subprocess.run([sys.executable, "-c", python], check=True)
