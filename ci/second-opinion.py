"""Compares figures of the program with those of other tools; see second-opinion.sh."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TICKLESS, SECONDS = sys.argv[1], float(sys.argv[2])
LONG_MS = 5.0
# Four threads work for 3 ms every 10 ms: 1.2 CPUs, where the limit is 0.3.
SERVICE = """
import threading, time
def work():
    due = time.monotonic()
    while True:
        until = time.thread_time() + 0.003
        while time.thread_time() < until: pass
        due = max(due + 0.01, time.monotonic())
        time.sleep(max(0, due - time.monotonic()))
for _ in range(4): threading.Thread(target=work, daemon=True).start()
time.sleep(600)
"""
SLEEPER = "import time\nwhile True: time.sleep(0.002)"
# Works for 30 ms in each 100 ms, less than what the kernel leaves to real-time threads.
COMPETITOR = """
import os, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
while True:
    until = time.monotonic() + 0.03
    while time.monotonic() < until: pass
    time.sleep(0.07)
"""
rows, missing, children, folders = [], set(), [], []


def has(*tools):
    """Whether these tools are installed; one that is not is named at the end."""
    absent = {tool for tool in tools if not shutil.which(tool)}
    missing.update(absent)
    return not absent


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    # The doctor returns 3 if it finds something.
    if done.returncode not in (0, 3):
        sys.exit(f"{command}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def start(name, code, cpu=None, group=None):
    """Runs a Python program as a process of this name."""
    path = Path(work, name)
    if not path.exists():
        path.symlink_to(shutil.which("python3"))

    def prepare():
        if group:
            Path(group, "cgroup.procs").write_text(str(os.getpid()))
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})

    child = subprocess.Popen([path, "-c", code], preexec_fn=prepare)
    children.append(child)
    time.sleep(0.5)
    return child


def stop(*programs):
    for child in programs:
        child.kill()
        child.wait()


def row(what, ours, theirs, source, is_near):
    rows.append((what, ours, theirs, source, is_near))


def near(ours, theirs, share, least=0.0):
    return abs(ours - theirs) <= max(share * theirs, least)


def limited_group():
    """Makes a group with 30 ms of CPU time in each 100 ms, of either version."""
    for root, limits in [
        ("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "30000"}),
        ("/sys/fs/cgroup", {"cpu.max": "30000 100000"}),
    ]:
        group = Path(root, f"second-opinion-{os.getpid()}")
        try:
            group.mkdir()
            folders.append(group)
            for name, value in limits.items():
                Path(group, name).write_text(value)
            return group
        except OSError:
            continue
    missing.add("a cpu controller")
    return None


def throttled(group):
    counted = dict(line.split() for line in Path(group, "cpu.stat").read_text().splitlines())
    return int(counted["nr_periods"]), int(counted["nr_throttled"])


def waits_of_perf(recording, process):
    """The long waits for a CPU of a process, as perf counts them: delays after a wakeup, and the
    time after a switch away from a thread that was ready to run."""
    text = run("perf", "sched", "timehist", "--state", "-i", recording)
    long, states = [], {}
    pattern = r"^ *\d+\.\d+ +\[\d+\] +(.*?)\[(\d+).*?\] +([\d.]+) +([\d.]+) +([\d.]+) +(\S+)"
    for line in text.splitlines():
        if not (found := re.match(pattern, line)):
            continue
        name, tid, wait, delay, _, state = found.groups()
        # perf 6.1 prints W for a thread that was preempted, on kernels which it does not know.
        is_ready = states.get(tid) in ("R", "R+", "W")
        states[tid] = state
        waited = float(wait) if is_ready else float(delay)
        if name.strip() == process and waited > LONG_MS:
            long.append(waited)
    return len(long), sum(long)


def late_beside_perf(what, process):
    recording, trace = Path(work, "perf.data"), Path(work, "trace.txt.gz")
    perf = ["perf", "sched", "record", "-o", recording, "sleep", str(SECONDS)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    other = subprocess.Popen(perf, **quiet)
    run(TICKLESS, "record", "--events", "late", "--force", "-D", f"{SECONDS}s", "-o", trace)
    other.wait()
    options = ["--process", process, "--threshold", f"{LONG_MS}ms", "--format", "json"]
    waits = json.loads(run(TICKLESS, "late", trace, *options))["waits"]
    count, total = waits_of_perf(recording, process)
    ours, ours_ms = waits["late"], waits["late_ns"] / 1e6
    # They begin and end at slightly different times.
    row(f"{what}: waits above {LONG_MS} ms", ours, count, "perf sched", near(ours, count, 0.1, 5))
    is_near = near(ours_ms, total, 0.1, 300)
    row(f"{what}: their ms", round(ours_ms), round(total), "perf sched", is_near)


def a_throttled_service():
    group = limited_group()
    if not group:
        return
    service = start("service", SERVICE, group=group)
    if has("perf"):
        late_beside_perf("throttled service", "service")
    before = throttled(group)
    command = [TICKLESS, "doctor", "--check", "quota-throttled", "-D", f"{SECONDS}s"]
    check = json.loads(run(*command, "--format", "json"))[0]
    periods, stopped = (late - early for late, early in zip(throttled(group), before))
    percent = 100 * stopped / periods
    is_near = near(check["figure"], percent, 0.05, 2)
    ours = round(check["figure"], 1)
    row("doctor: % of periods throttled", ours, round(percent, 1), "cpu.stat", is_near)
    stop(service)


def a_competitor():
    if not has("perf"):
        return
    programs = [start("sleeper", SLEEPER, cpu=0), start("competitor", COMPETITOR, cpu=0)]
    late_beside_perf("real-time competitor", "sleeper")
    stop(*programs)


def a_poll_loop():
    if not has("bpftrace"):
        return
    sleeper = start("poller", SLEEPER)
    probe = (
        f'tracepoint:timer:hrtimer_start /comm == "poller"/ {{ @starts = count(); }} '
        f"interval:ms:{round(1000 * SECONDS)} {{ exit(); }}"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    other = subprocess.Popen(["bpftrace", "-e", probe], **pipes)
    options = ["--once", "-i", f"{SECONDS}s", "--filter", "poller", "--format", "json"]
    table = json.loads(run(TICKLESS, "top", *options))
    found = re.search(r"@starts: (\d+)", other.communicate()[0])
    theirs = int(found.group(1)) / SECONDS if found else 0
    ours = sum(it["arms"] for it in table["rows"] if it["process"] == "poller") / table["seconds"]
    is_near = near(ours, theirs, 0.1)
    row("top: timers armed a second", round(ours), round(theirs), "bpftrace", is_near)
    stop(sleeper)


def latency():
    if not has("cyclictest"):
        return
    options = ["--sleeper", "clock_nanosleep", "-p", "90", "-q", "-D", f"{SECONDS}s"]
    ours = json.loads(run(TICKLESS, "latency", *options, "--format", "json"))[0]["min"] / 1e3
    text = run("cyclictest", "-q", "-p", "90", "-i", "1000", "-D", str(round(SECONDS)))
    theirs = int(re.search(r"Min: +(\d+)", text).group(1))
    # One after the other, so only the least is comparable on a busy machine.
    row("latency: least us", round(ours), theirs, "cyclictest", near(ours, theirs, 1.0, 20))


with tempfile.TemporaryDirectory() as work:
    try:
        for part in (a_throttled_service, a_competitor, a_poll_loop, latency):
            part()
    finally:
        stop(*(child for child in children if child.poll() is None))
        for folder in folders:
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)

for what, ours, theirs, source, is_near in rows:
    print(f"{what:40} {ours:>8} {source:>12} {theirs:>8} {'' if is_near else '  TOO FAR'}")
for tool in sorted(missing):
    print(f"SKIPPED: there is no {tool.removeprefix('a ')}")
sys.exit(not all(row[-1] for row in rows))
