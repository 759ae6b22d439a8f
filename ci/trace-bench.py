"""Makes a large recording of a small one, and measures what reads it: see trace-bench.sh."""

import gzip, os, re, shutil, statistics, struct, subprocess, sys, tempfile, threading, time

DATA = "lab/tickless-trace/tests/data/"
MOVED = {b"expires", b"softexpires", b"now", b"baseclk", b"bucket_expiry"}
TICK_NS = 4_000_000


def sample():
    """Returns the head of the recording, its pages for each CPU, and where its deadlines are."""
    file = gzip.open(DATA + "version-6.dat.gz").read()
    formats = {}
    for name, number, fields in re.findall(rb"name: (\w+)\nID: (\d+)\nformat:\n(.*?)print fmt", file, re.S):
        found = re.findall(rb"field:[^;]*?(\w+);\s*offset:(\d+);\s*size:(\d+)", fields)
        is_wheel = name.startswith(b"timer_")
        if is_wheel or name.startswith(b"hrtimer_"):
            formats[int(number)] = [(int(at), is_wheel) for field, at, size in found
                                    if field in MOVED and size == b"8"]
    head = file.index(b"flyrecord\0") + len(b"flyrecord\0")
    cpus = struct.unpack_from("<I", file, file.rindex(b"options  \0", 0, head) - 4)[0]
    places = struct.unpack_from(f"<{2 * cpus}Q", file, head)
    pages, events = [], 0
    for at, size in zip(places[::2], places[1::2]):
        pages.append([])
        for start in range(at, at + size, 4096):
            page, moved, place = file[start:start + 4096], [], 16
            end = 16 + (struct.unpack_from("<Q", page, 8)[0] & 0xFFFFFFF)
            while place < end:
                word = struct.unpack_from("<I", page, place)[0]
                kind, place = word & 31, place + 4
                if kind >= 29:
                    if kind == 29 and word >> 5 == 0:
                        break
                    place += 4 if kind > 29 else struct.unpack_from("<I", page, place)[0]
                    continue
                length = 4 * kind if kind else struct.unpack_from("<I", page, place)[0] - 4
                place += 0 if kind else 4
                fields = formats.get(struct.unpack_from("<H", page, place)[0], [])
                moved += [(place + at, is_wheel) for at, is_wheel in fields]
                place, events = place + length, events + 1
            pages[-1].append((page, moved))
    return file[:head], pages, events


def make(path, copies, pages, head, period):
    """Writes a trace.dat with so many copies of the pages."""
    places, at = [], (len(head) + 16 * len(pages) + 4095) // 4096 * 4096
    for of_cpu in pages:
        places += [at, len(of_cpu) * 4096 * copies]
        at += places[-1]
    with open(path, "wb") as out:
        out.write((head + struct.pack(f"<{len(places)}Q", *places)).ljust(places[0], b"\0"))
        for of_cpu in pages:
            for copy in range(copies):
                for page, moved in of_cpu:
                    page = bytearray(page)
                    for field, is_wheel in [(0, False)] + moved:
                        old = struct.unpack_from("<Q", page, field)[0]
                        by = copy * (period // TICK_NS if is_wheel else period)
                        struct.pack_into("<Q", page, field, old + by)
                    out.write(page)


def make_text(path, copies, period):
    """Writes the same events as text."""
    lines = gzip.open(DATA + "version-6.txt.gz", "rt").read().splitlines()
    pattern = re.compile(r"(?<=\] )( *\d+\.\d+)(?=: )|(?<=expires=)\d+|(?<=now=)\d+|(?<=baseclk=)\d+|(?<=bucket_expiry=)\d+")
    parts, values = [], []
    for line in lines[1:]:
        is_wheel, last = ": timer_" in line, 0
        for found in pattern.finditer(line):
            parts.append(line[last:found.start()])
            last = found.end()
            text = found.group()
            is_time = "." in text
            values.append((int(text.replace(".", "")), is_time, is_wheel and not is_time))
        parts.append(line[last:] + "\n")
        values.append(None)
    with open(path, "w") as out:
        out.write(lines[0] + "\n")
        for copy in range(copies):
            row = []
            for part, value in zip(parts, values):
                row.append(part)
                if value:
                    number = value[0] + copy * (period // TICK_NS if value[2] else period)
                    row.append(f"{number // 10**9:6}.{number % 10**9:09}" if value[1] else str(number))
            out.write("".join(row))


def run(command):
    """Returns the wall time in seconds, and the peak of memory in MB; stops it after 5 minutes."""
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    alarm = threading.Timer(300, child.kill)
    alarm.start()
    _, status, usage = os.wait4(child.pid, 0)
    alarm.cancel()
    if status and os.waitstatus_to_exitcode(status) >= 0:
        sys.exit(f"{command}: exit status {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - began, usage.ru_maxrss / 1024


def main():
    millions, turns, programs = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    head, pages, events = sample()
    copies = round(millions * 1e6 / events)
    with gzip.open(DATA + "version-6.txt.gz", "rt") as text:
        times = [float(at) for at in re.findall(r"\] +(\d+\.\d+): ", text.read())]
    period = (int((times[-1] - times[0]) * 1e9) // TICK_NS + 1) * TICK_NS
    folder = tempfile.mkdtemp(prefix="trace-bench.")
    try:
        dat, text = folder + "/copies.dat", folder + "/copies.txt"
        make(dat, copies, pages, head, period)
        files = [dat]
        if millions <= 20:
            make_text(text, copies, period)
            files.append(text)
        print(f"{copies * events} events: " + ", ".join(
            f"{os.path.getsize(file) / 1e6:.0f} MB of {file.rpartition('.')[2]}" for file in files))
        commands = [[program, *words, file, "--format", "json"] for file in files for program in programs
                    for words in (["replay"], ["late"], ["quota", "--thread", "load"])]
        if shutil.which("trace-cmd"):
            commands.append(["trace-cmd", "report", "-t", "-N", dat])
        results = {}
        for _ in range(turns):
            for command in commands:
                results.setdefault(" ".join(command), []).append(run(command))
        for command, measured in results.items():
            seconds = sorted(wall for wall, _ in measured)
            print(f"{statistics.median(seconds):8.2f} s ({seconds[0]:.2f} to {seconds[-1]:.2f})"
                  f" {max(memory for _, memory in measured):7.0f} MB  {command.replace(folder + '/', '')}")
    finally:
        shutil.rmtree(folder)


main()
