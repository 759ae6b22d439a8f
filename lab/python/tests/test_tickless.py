"""The built wheel: results, errors, Ctrl-C, and what reads Arrow."""

from __future__ import annotations

import copy
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.csv
import pytest
import tickless

TRACES = pathlib.Path(os.environ.get("TICKLESS_TRACES", "../../traces"))


def test_the_module_has_only_its_own_names() -> None:
    assert {name for name in dir(tickless) if not name.startswith("_")} == {
        name for name in tickless.__all__ if not name.startswith("_")
    }


def test_polars_pyarrow_pandas_and_duckdb_read_a_table() -> None:
    rows = tickless.replay(TRACES / "nginx.txt.gz", ["eager", "lazy"])
    frame = polars.DataFrame(rows)
    table = pyarrow.table(rows)
    assert len(rows) == frame.height == table.num_rows > 10
    assert frame.columns == table.column_names == rows.columns
    writes = frame.filter(polars.col("figure") == "device_writes")
    assert dict(zip(writes["policy"], writes["value"])) == {
        "recorded": 320.0,
        "eager": 320.0,
        "lazy": 192.0,
    }
    assert table.to_pandas()["value"].max() == frame["value"].max()
    assert isinstance(table.to_pandas(), pandas.DataFrame)
    arrow = table
    found = duckdb.sql("select count(*) from arrow where figure = 'early' and value = 0")
    assert found is not None and found.fetchall() == [(2,)]
    assert arrow.num_rows == len(rows)
    assert rows.to_dicts()[0]["trace"].endswith("nginx.txt.gz")


def test_machines_can_be_changed_and_saved(tmp_path: pathlib.Path) -> None:
    machine = tickless.Machine("x5675-2s")
    assert machine.cpus == 24 and "event.program_ns" in machine.keys()
    eager = tickless.simulate("rearm", machine, policy="eager", length=100)
    machine["event.program_ns"] *= 10
    machine.name = "slow device"
    slow = tickless.simulate("rearm", machine, policy="eager", length=100)
    assert slow["value"][0] > eager["value"][0]
    machine.save(str(tmp_path / "slow.toml"))
    again = tickless.Machine(str(tmp_path / "slow.toml"))
    assert again.name == "slow device" and again["event.program_ns"] == machine["event.program_ns"]
    assert machine.sized(4).cpus == 4
    with pytest.raises(KeyError, match="the nearest is event.program_ns"):
        machine["event.progam_ns"]
    with pytest.raises(KeyError, match="there is no number"):
        machine["event.program"] = 1
    with pytest.raises(tickless.TicklessError):
        machine["event.program_ns"] = -1
    assert again.to_toml() == machine.to_toml()


def test_an_error_has_its_file_line_and_cause(tmp_path: pathlib.Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("name = 'x'\n[line]\nhit = 3\n")
    with pytest.raises(tickless.TicklessError) as caught:
        tickless.Machine(str(wrong))
    error = caught.value
    assert (error.file, error.line) == (str(wrong), 3) and "line.hit" in error.cause
    with pytest.raises(tickless.TicklessError, match="cannot be opened"):
        tickless.replay(tmp_path / "nothing.txt")
    with pytest.raises(tickless.TicklessError, match="policies: there is no policy lazier.*eager"):
        tickless.replay(TRACES / "idle.txt.gz", ["lazier"])
    with pytest.raises(tickless.TicklessError, match="study: there is no study rearming.*phase"):
        tickless.simulate("rearming", "host")


def test_rows_are_labelled_with_what_ran() -> None:
    for cpus in [2, 4, 12, 24, 36]:
        rows = tickless.simulate("rearm", "x5675-2s", cpus=cpus, policy="lazy", length=50)
        assert set(rows["cpus"]) == {cpus}
    machine = tickless.Machine("x5675-2s")
    for cpus, why in [(0, "1 to 4096"), (1, "next has 2"), (5, "next has 6"), (25, "next has 36")]:
        with pytest.raises(tickless.TicklessError, match=why):
            tickless.simulate("rearm", machine, cpus=cpus, policy="lazy", length=50)
        with pytest.raises(tickless.TicklessError, match=why):
            machine.sized(cpus)
    idle = TRACES / "idle.txt.gz"
    for cpus in [0, 4097]:
        with pytest.raises(tickless.TicklessError, match="ask for 1 to 4096"):
            tickless.project(idle, "host", cpus=[cpus])
    with pytest.raises(tickless.TicklessError, match="no time"):
        tickless.project(idle, "host", cpus=[2], seconds=float("nan"))
    with pytest.raises(tickless.TicklessError, match="knows eager, lazy"):
        tickless.simulate("rearm", machine, policy="linux-7.1")
    with pytest.raises(tickless.TicklessError, match="leave the policy out"):
        tickless.simulate("phase", machine, policy="lazy")


def test_an_argument_out_of_range_is_named() -> None:
    with pytest.raises(OverflowError, match="cpus is 70000, but must be from 0 to 65535"):
        tickless.simulate("rearm", "host", cpus=70_000)
    with pytest.raises(OverflowError, match="seed is -1"):
        tickless.simulate("rearm", "host", seed=-1)
    with pytest.raises(OverflowError, match="length is 4294967296"):
        tickless.simulate("rearm", "host", length=2**32)
    with pytest.raises(OverflowError, match="cpus is -1"):
        tickless.project(TRACES / "idle.txt.gz", "host", cpus=[-1])
    with pytest.raises(OverflowError, match="cpus is 65536, but must be from 1 to 4096"):
        tickless.Machine("host").sized(65_536)
    with pytest.raises(TypeError, match="hz is 2.5, but must be a whole number"):
        tickless.simulate("rearm", "host", hz=2.5)  # type: ignore[arg-type]


def test_tables_and_machines_are_iterated_copied_and_pickled() -> None:
    for table in [
        tickless.simulate("rearm", "x5675-2s", policy="lazy", length=50),
        tickless.read_trace(TRACES / "idle.txt.gz"),
    ]:
        assert list(table) == table.to_dicts()
        frame = pandas.DataFrame(table)
        assert list(frame.columns) == table.columns and len(frame) == len(table)
        for again in [copy.copy(table), copy.deepcopy(table), pickle.loads(pickle.dumps(table))]:
            assert pyarrow.table(again).equals(pyarrow.table(table))
        with pytest.raises(KeyError, match="there is no column figur"):
            table["figur"]

    machine = tickless.Machine("x5675-2s")
    machine["event.program_ns"] = 1234.5
    machine.name = "ours"
    assert list(machine) == machine.keys()
    assert dict(machine)["event.program_ns"] == 1234.5
    assert "event.program_ns" in machine and "event" not in machine
    rows = tickless.simulate("rearm", machine, policy="lazy", length=50).to_dicts()
    for twin in [copy.copy(machine), copy.deepcopy(machine), pickle.loads(pickle.dumps(machine))]:
        assert twin.to_toml() == machine.to_toml()
        again = tickless.simulate("rearm", twin, policy="lazy", length=50)
        assert again.to_dicts() == rows
        twin["event.program_ns"] = 1
        assert machine["event.program_ns"] == 1234.5


def test_commands_return_their_documents(tmp_path: pathlib.Path) -> None:
    late = tickless.late(TRACES / "bursts.txt.gz", threshold="1ms", all=True)
    assert late["sleeps"] > 0
    quota = tickless.quota(TRACES / "bursts.txt.gz", limits=["500m", 2], periods=["20ms"])
    assert len(quota["settings"]) == 2
    with pytest.raises(tickless.TicklessError, match="monitor leaves out none"):
        tickless.quota(TRACES / "bursts.txt.gz", without=["monitor", 7])
    for name in "ab":
        tickless.report(tmp_path / name, quick=True, only=["phase"], live=False)
    changes = tickless.compare(tmp_path / "a/report.json", tmp_path / "b/report.json")["changes"]
    assert changes and all(change["a"] == change["b"] for change in changes)
    (finding,) = tickless.doctor(duration="100ms", checks=["clock-source"])
    assert finding["check"] == "clock-source"
    with pytest.raises(tickless.TicklessError, match="nowhere") as caught:
        tickless.late("nowhere")
    assert "nowhere" in caught.value.cause and caught.value.line is None
    with pytest.raises(tickless.TicklessError, match="soon"):
        tickless.late(TRACES / "bursts.txt.gz", threshold="soon")


def test_a_sweep_has_the_rows_of_a_call_for_each_cell() -> None:
    by_hand = [
        tickless.simulate("rearm", "x5675-2s", policy=policy, seed=seed, length=50).to_dicts()
        for policy in ["eager", "lazy"]
        for seed in range(10)
    ]
    command = str(pathlib.Path(sys.executable).with_name("tickless"))
    cells = "--policy eager --policy lazy --seeds 0-9 --length 50".split()
    run = [command, "sweep", "rearm", "--machine", "x5675-2s", *cells]
    done = subprocess.run(run, check=True, stdout=subprocess.PIPE)
    rows = pyarrow.csv.read_csv(pyarrow.BufferReader(done.stdout)).to_pylist()
    assert [row["value"] for row in rows] == [row["value"] for row in sum(by_hand, [])]
    assert rows[0].keys() == by_hand[0][0].keys()


def test_an_interrupt_ends_a_call() -> None:
    # A shell starts what runs in its background with interrupts ignored, and Python leaves them so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    killer = threading.Timer(1.5, os.kill, [os.getpid(), signal.SIGINT])
    killer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        tickless.replay([TRACES / "nginx.txt.gz"] * 10_000)
    assert time.monotonic() - begun < 30


def test_other_threads_run_during_a_call() -> None:
    turns = 0
    over = threading.Event()

    def turn() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1
            time.sleep(0.001)

    thread = threading.Thread(target=turn)
    thread.start()
    before = turns
    tickless.replay([TRACES / "nginx.txt.gz"] * 2)
    after = turns
    over.set()
    thread.join()
    assert after - before > 10


def test_traces_are_tables_and_can_be_projected(tmp_path: pathlib.Path) -> None:
    shutil.copy(TRACES / "idle.txt.gz", tmp_path)
    events = polars.DataFrame(tickless.read_trace(tmp_path / "idle.txt.gz"))
    assert events.height == 5908 and set(events["cpu"]) == {0, 1}
    starts = events.filter(polars.col("event") == "hrtimer_start")
    assert starts.height > 0 and starts["function"].null_count() == 0
    rows = tickless.project(tmp_path / "idle.txt.gz", "host", cpus=[2, 4], policies=["lazy"])
    assert {row["cpus"] for row in rows.to_dicts()} == {2, 4}


def test_the_report_is_written(tmp_path: pathlib.Path) -> None:
    page, json = tickless.report(tmp_path, quick=True, only=["phase"], live=False)
    assert "<svg" in pathlib.Path(page).read_text() and pathlib.Path(json).stat().st_size > 100


def test_a_fleet_is_seen_as_a_whole(tmp_path: pathlib.Path) -> None:
    broken = tmp_path / "broken.txt"
    broken.write_text("nothing of a trace\n")
    told: list[tuple[int, int]] = []
    traces = sorted(TRACES.glob("*.txt.gz"))
    fleet = tickless.fleet([*traces, broken], progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (len(traces) + 1, len(traces) + 1)
    machines = polars.DataFrame(fleet.machines)
    assert len(fleet) == machines.height == len(traces) + 1
    assert machines["error"].null_count() == len(traces) and "broken.txt" in machines["error"][-1]
    nginx = machines.filter(polars.col("trace").str.contains("nginx")).to_dicts()[0]
    ratio = nginx["lazy_writes_per_cpu_s"] / nginx["device_writes_per_cpu_s"]
    assert round(100 * ratio) == 60 and nginx["arms_most"]
    assert "spurious_wakeups_per_cpu_s" in fleet.quantiles["figure"]
    assert "for the median machine" in fleet.differ["why"][0]


def test_long_calls_tell_how_far_they_are(tmp_path: pathlib.Path) -> None:
    told: list[tuple[int, int]] = []
    idle = TRACES / "idle.txt.gz"

    def tell(done: int, of: int) -> None:
        told.append((done, of))

    tickless.replay([idle, idle], progress=tell)
    tickless.project(idle, "host", cpus=[2, 4], policies=["lazy"], progress=tell)
    tickless.read_trace(idle, progress=tell)
    tickless.simulate("rearm", "x5675-2s", policy="lazy", length=100, progress=tell)
    tickless.report(tmp_path, quick=True, only=["phase"], live=False, progress=tell)
    # Each of the first four is told its end.
    assert told.count((2, 2)) >= 2 and told.count((1, 1)) >= 2

    def stop(done: int, of: int) -> None:
        raise StopIteration("enough")

    with pytest.raises(StopIteration):
        tickless.project(idle, "host", cpus=[2], progress=stop)


def peak_mb(*command: str) -> float:
    """The most memory that a command had at once, in MB."""
    # The kernel counts what a process had before it became the command: that must not be this one.
    starter = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    started = [sys.executable, "-S", "-c", starter, *command]
    done = subprocess.run(started, check=True, capture_output=True, text=True)
    return int(done.stdout) * 1024 / 1e6


def test_ten_thousand_rows_fit_into_200_mb() -> None:
    python = (
        "import tickless\n"
        "tables = [tickless.simulate('rearm', 'x5675-2s', policy='lazy', length=10, seed=seed)\n"
        "          for seed in range(2_000)]\n"
        "assert sum(len(table.to_dicts()) for table in tables) == 10_000\n"
    )
    assert peak_mb(sys.executable, "-c", python) <= 200
