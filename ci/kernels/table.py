"""Compares what the guests of ci/kernels.sh recorded and printed with what their kernels counted,
and writes the tables of the book. Exits with 1 if something differs.

Usage: table.py TICKLESS FOLDER PAGE GUEST...
"""

import gzip
import json
import pathlib
import re
import subprocess
import sys

OFF_PERCENT = 3
EVENT = re.compile(r".*?\[\d+\] +\S+ +[\d.]+: (\w+): ?(.*)")
wrong = []


class Guest:
    """What one guest has left."""

    def __init__(self, folder, name):
        self.name = name
        self.kernel, self.cpus = re.fullmatch(r"(.*)-(\d)cpus", name).groups()
        self.folder = folder / name
        releases = [self.text(f"{job}/release").strip() for job in ("loads", "commands")]
        self.release = max(releases)
        self.jobs = {"loads": releases[0] != "", "commands": releases[1] != ""}
        self.counts_writes = int(self.release.split(".")[0]) >= 7
        lines = self.text("commands/status").splitlines()
        self.status = {line.split()[0]: int(line.split()[1]) for line in lines}

    def text(self, file):
        path = self.folder / file
        return path.read_text(errors="replace") if path.exists() else ""

    def json(self, command):
        return json.loads(self.text(f"commands/{command}.out") or "{}")

    def counted(self, command):
        """The kernel's counts during a command: interrupts, writes of the device, and ms."""
        both = (self.text(f"commands/{command}.{when}").split() for when in ("before", "after"))
        return [int(after) - int(before) for before, after in zip(*both)]

    def fails(self, what):
        wrong.append(f"Linux {self.release}, {self.cpus} CPUs: {what}")
        return f"**{what}**"

    def near(self, what, ours, kernels, most):
        """A count beside the kernel's, of a time that is a little shorter or as long."""
        is_near = kernels <= ours <= kernels * (1 + most) + 100
        return f"{ours} {what}" if is_near else self.fails(f"{ours} {what}, the kernel {kernels}")

    def recording(self, replay):
        """The recorded interrupts and writes, of which the kernel counted a part itself."""
        recorded = self.json(replay)["trace"]["recorded"]
        command = replay.replace("replay", "record")
        interrupts, writes, _ = self.counted(command)
        cell = self.near("interrupts", recorded["timer_interrupts"], interrupts, 0.1)
        if recorded["device_writes"] is None:
            return f"{cell}, writes unknown" if not self.counts_writes else self.fails("no writes")
        return f"{cell}, {self.near('writes', recorded['device_writes'], writes, 0.1)}"

    def replayed(self, replay):
        agreement = self.json(replay).get("agreement")
        if agreement is None:
            unknown = "no agreement: writes unknown"
            return unknown if not self.counts_writes else self.fails(unknown)
        return f"{agreement['off_percent']:+.1f} % of writes"

    def top(self):
        _, counted, ms = self.counted("top")
        top = self.json("top")
        writes = [row["device_writes"] for row in top["rows"]]
        if None in writes:
            return "writes `-`" if not self.counts_writes else self.fails("writes unknown")
        # The kernel's counts include what the start of `top` causes.
        ours, kernels = sum(writes) / top["seconds"], counted / ms * 1000
        cell = f"{ours:.0f} writes a second"
        is_near = sum(writes) <= counted and abs(ours - kernels) <= 0.2 * kernels
        return cell if is_near else self.fails(f"{cell}, the kernel {kernels:.0f}")

    def doctor(self):
        checks = self.json("doctor")
        verdicts = [check["verdict"] for check in checks]
        names = ", ".join(c["check"] for c in checks if c["verdict"] == "unknown")
        return f"{len(verdicts) - verdicts.count('unknown')} of {len(verdicts)}" + (
            f", unknown: {names}" if names else "")

    def quota(self):
        stat = [dict(line.split() for line in self.text(f"commands/quota.{when}").splitlines())
                for when in ("before", "after")]
        recorded = self.json("quota")["recorded"]
        counted = [int(stat[1][key]) - int(stat[0][key]) for key in ("nr_periods", "nr_throttled")]
        ours = [recorded["periods"], recorded["throttled"]]
        # The recording is longer than the time between both readings by what starting cat takes.
        is_near = all(mine - 5 <= kernels <= mine for mine, kernels in zip(ours, counted))
        cell = f"{ours[1]} of {ours[0]} periods throttled"
        return cell if is_near else self.fails(f"{cell}, the kernel {counted[1]} of {counted[0]}")

    def study(self):
        """The kernel's own row, which kernels since 7.1 have; others say why not."""
        lines = self.text("commands/study.out").splitlines()
        if not self.counts_writes:
            is_said = any("no row for Linux" in line for line in lines)
            return "no row of its own" if is_said else self.fails("no word of a missing row")
        row = "linux-" + ".".join(re.findall(r"\d+", self.release)[:2])
        found = [line.split()[1] for line in lines if line.startswith(f"{row} ")]
        return f"{found[0]} writes a round trip" if found else self.fails(f"no row {row}")

    def warp(self):
        begin, end = map(int, self.text("commands/warp.out").split())
        return "works" if 0 <= end - begin - 3600 < 5 else self.fails(f"{end - begin} s passed")


COMMANDS = {
    "record": lambda guest: guest.recording("replay"),
    "record-dat": lambda guest: guest.recording("replay-dat"),
    "record-late": lambda guest: guest.recording("replay-late"),
    "record-quota": Guest.quota,
    "replay": lambda guest: guest.replayed("replay"),
    "replay-dat": lambda guest: guest.replayed("replay-dat"),
    "late": None,
    "quota": None,
    "top": Guest.top,
    "doctor": Guest.doctor,
    "latency": None,
    "warp": Guest.warp,
    "study": Guest.study,
    "report": None,
}
TITLES = {
    "record-dat": "`record -o rec.dat`",
    "record-late": "`record --events late`",
    "record-quota": "`record --events quota`",
    "replay-dat": "`replay rec.dat`",
    "study": "`study rearm --live --quick`",
    "report": "`report --quick`",
}


def command_cell(guest, command):
    status = guest.status.get(command)
    if status is None:
        return guest.fails("did not run")
    if status != 0 and not (command == "doctor" and status == 3):
        message = guest.text(f"commands/{command}.err").strip().splitlines()[-1:]
        return guest.fails(f"status {status}: {''.join(message)}")
    check = COMMANDS[command]
    return check(guest) if check else "works"


def replay_load(guest, tickless, load):
    """Replays a recorded load. Returns the recorded and replayed writes and interrupts for nothing."""
    path = guest.folder / "loads" / f"{load}.txt.gz"
    if not path.exists():
        return guest.fails("not recorded")
    text = gzip.open(path, "rt", errors="replace").read()
    events = [match.groups() for match in map(EVENT.match, text.splitlines()) if match]
    counted = sum(name == "dev" for name, _ in events)
    if not guest.counts_writes:
        # The probe takes the place of the register that other machines write.
        text = re.sub(r": dev: \S+", ": write_msr: 6e0, value 1", text)
    command = [tickless, "replay", "--format", "json", "-"]
    output = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    agreement = json.loads(output.stdout)["agreement"]
    measures = {each["measure"]: (each["recorded"], each["replayed"])
                for each in agreement["measures"]}
    (recorded, replayed), (nothing, ours) = (measures["device_writes"],
                                             measures["spurious_wakeups"])
    cell = f"{recorded} → {replayed}, {nothing} → {ours}"
    if recorded != counted:
        return guest.fails(f"{cell}; the kernel wrote {counted}")
    interrupts = measures["wakeups"][0]
    if abs(replayed - recorded) * 100 > OFF_PERCENT * recorded:
        return guest.fails(cell)
    return cell if abs(nothing - ours) * 100 <= OFF_PERCENT * interrupts else guest.fails(cell)


LOADS = {
    "idle": "idle",
    "arm": "arm and disarm at 300 us",
    "periodic": "periodic, 1 ms",
    "past": "armed in the past",
}
for load, title in [("ping-one", "ping-pong, 1 CPU"), ("ping-two", "ping-pong, 2 CPUs"),
                    ("hack1x5", "1 x 5 senders"), ("hack2x5", "2 x 5 senders")]:
    for slices in ("off", "on"):
        LOADS[f"{load}-{slices}"] = f"{title}, slice timer {slices}"


def table(first, guests, rows):
    heads = [f"{re.match(r'[0-9.]+(-rc[0-9]+)?', guest.release)[0]}{' rt' if guest.kernel.endswith('rt') else ''}, "
             f"{guest.cpus} CPUs" for guest in guests]
    lines = [f"| {first} | " + " | ".join(heads) + " |", "|---" * (len(guests) + 1) + "|"]
    lines += [f"| {title} | " + " | ".join(map(cell, guests)) + " |" for title, cell in rows]
    return "\n".join(lines) + "\n"


def main():
    tickless, folder, page, *names = sys.argv[1:]
    guests = [Guest(pathlib.Path(folder), name) for name in names]
    text = pathlib.Path(page).read_text()
    commands = [(TITLES.get(name, f"`{name}`"), lambda guest, name=name: command_cell(guest, name))
                for name in COMMANDS]
    loads = [(title, lambda guest, load=load: replay_load(guest, tickless, load))
             for load, title in LOADS.items()]
    for mark, first, rows in (("commands", "command", commands), ("loads", "load", loads)):
        done = [guest for guest in guests if guest.jobs[mark]]
        new = f"<!-- {mark} -->\n\n" + table(first, done, rows) + f"\n<!-- end of {mark} -->"
        text = re.sub(f"<!-- {mark} -->.*<!-- end of {mark} -->", lambda _: new, text, flags=re.S)
    pathlib.Path(page).write_text(text)
    for line in wrong:
        print(line, file=sys.stderr)
    return bool(wrong)


sys.exit(main())
