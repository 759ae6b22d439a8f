# What `ci/warp.sh` runs in virtual time: work that the kernel does while every thread sleeps must
# hold the clock, threads wake in the order of their deadlines, and a thread may run a program.
import fcntl, os, pty, select, signal, sys, threading, time, tty


def takes(seconds, call):
    start = time.monotonic()
    call()
    took = time.monotonic() - start
    assert seconds - 0.5 < took < seconds + 0.5, (took, seconds)


def terminal():
    """A worker thread of the kernel moves what is written to one end to the other end."""
    signal.alarm(1000)
    master, slave = pty.openpty()
    tty.setraw(slave)

    def read(fd):
        select.select([fd], [], [])
        return os.read(fd, 1)

    def echo():
        while (byte := read(slave)) != b"\0":
            os.write(slave, byte)

    echoes = threading.Thread(target=echo)
    echoes.start()
    for _ in range(300):
        os.write(master, b"\1")
        read(master)
    os.write(master, b"\0")
    echoes.join()
    assert signal.alarm(0) >= 998
    os.close(master)
    os.close(slave)


def signal_of_the_kernel():
    """The kernel sends a signal, because another process writes. It ends a sleep."""

    class Signalled(Exception):
        pass

    def handle(*_):
        raise Signalled

    signal.signal(signal.SIGIO, handle)
    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC)

    def sleep():
        try:
            time.sleep(1000)
            assert False, "the sleep has not ended early"
        except Signalled:
            pass

    for _ in range(100):
        child = os.fork()
        if child == 0:
            time.sleep(1)
            os.write(writer, b"x")
            time.sleep(2000)
            os._exit(1)
        takes(1, sleep)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def order():
    woken = []

    def sleep(seconds):
        time.sleep(seconds)
        woken.append(seconds)

    threads = [threading.Thread(target=sleep, args=(n,)) for n in range(100, 0, -1)]
    [thread.start() for thread in threads]
    takes(100, lambda: [thread.join() for thread in threads])
    assert woken == list(range(1, 101)), woken


def program():
    """It takes the number of the process; the process's other threads end."""
    for _ in range(20):
        child = os.fork()
        if child == 0:
            for _ in range(3):
                threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
            threading.Thread(target=os.execvp, args=("sleep", ["sleep", "5"])).start()
            time.sleep(1000)
            os._exit(1)
        statuses = []
        takes(5, lambda: statuses.append(os.waitpid(child, 0)[1]))
        assert statuses == [0]


for test in terminal, signal_of_the_kernel, order, program:
    test()
print("all is well")
