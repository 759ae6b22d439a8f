# `ci/attacks.sh 60 bpf` runs it in virtual time, with a seed. A random history: a token goes around
# threads and processes. Whoever has it sleeps for a second, computes, and passes it on. All others
# wait for an hour: a clock that jumps while the token is under way ends one of these waits.
import ctypes, os, random, select, signal, sys, threading, time

random.seed(int(sys.argv[1]))
libc = ctypes.CDLL(None)
COUNT, ROUNDS, HOUR = random.choice((3, 12, 60)), 150, 3600
pipes = [os.pipe() for _ in range(COUNT)]
slots = random.sample(range(2000, 60000), 3)


def same_slot():
    """Has the next thread or process get a number that is equal to others modulo 65,536."""
    try:
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(random.choice(slots) + 65536 * random.randrange(1, 40)))
    except OSError:
        pass


def wait(fd):
    kind = random.randrange(3)
    if kind == 0:
        return bool(select.select([fd], [], [], HOUR)[0])
    if kind == 1:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(HOUR * 1000))
    with select.epoll() as epoll:
        epoll.register(fd, select.EPOLLIN)
        return bool(epoll.poll(HOUR))


def compute():
    until = time.thread_time() + random.choice((0, 0.0002, 0.003))
    while time.thread_time() < until:
        pass


def run(at):
    libc.prctl(15, b"%d) R (%d" % (at, at))
    while True:
        if not wait(pipes[at][0]):
            os.write(2, b"the clock has jumped over work\n")
            os._exit(1)
        left = int(os.read(pipes[at][0], 8))
        if left < 0:
            return
        compute()
        kind = random.randrange(3)
        if kind == 0:
            time.sleep(1)
        elif kind == 1:
            select.poll().poll(1000)
        else:
            select.select([], [], [], 1)
        compute()
        kind = random.randrange(12)
        if kind < 3:
            same_slot()
        if kind == 0:
            os.waitpid(os.posix_spawnp("sh", ["sh", "-c", "sleep 0; :"], os.environ), 0)
        elif kind == 1:
            child = os.fork()
            if child == 0:
                os.write(pipes[(at + 1) % COUNT][1], b"%8d" % left)
                os._exit(0)
            os.waitpid(child, 0)
            continue
        elif kind == 2:
            thread = threading.Thread(target=compute)
            thread.start()
            thread.join()
        pass_on(at, left)


def pass_on(at, left):
    if left == 0:
        os.write(done[1], b"x")
    else:
        os.write(pipes[(at + 1) % COUNT][1], b"%8d" % (left - 1))


done, start = os.pipe(), time.monotonic()
for at in range(COUNT):
    same_slot()
    if random.random() > 0.2:
        threading.Thread(target=run, args=(at,), daemon=True).start()
    elif os.fork() == 0:
        run(at)
        os._exit(0)
pass_on(COUNT - 1, ROUNDS)
assert select.select([done[0]], [], [], 5 * HOUR)[0]
took = time.monotonic() - start
print(COUNT, "threads:", took, "s")
assert ROUNDS <= took < ROUNDS + 100
for at in range(COUNT):
    os.write(pipes[at][1], b"%8d" % -1)
