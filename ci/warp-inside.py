# What `ci/warp.sh` runs in virtual time: work that the kernel does while every thread sleeps must
# hold the clock, threads wake in the order of their deadlines, a thread may run a program, and the
# timeouts of sockets end each call, as those of a listener do on its connections.
import ctypes, errno, fcntl, os, pty, select, signal, socket, struct, sys, threading, time, tty


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


def sockets():
    libc = ctypes.CDLL(None, use_errno=True)
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener = socket.create_server(("127.0.0.1", 0))
    for of in near, listener:
        for option in socket.SO_RCVTIMEO, socket.SO_SNDTIMEO:
            of.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", 2, 0))
    client = socket.create_connection(listener.getsockname())
    accepted = listener.accept()[0]
    assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16) == struct.pack("ll", 2, 0)
    fd, pipe, memory = near.fileno(), os.pipe(), os.memfd_create("memory")
    os.write(memory, b"x" * 8)
    os.write(pipe[1], b"x" * 8)
    message = ctypes.create_string_buffer(64)

    def fill():
        try:
            while True:
                near.send(b"x" * 65536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass

    def fails(call):
        try:
            assert call() == -1 and ctypes.get_errno() == errno.EAGAIN
        except BlockingIOError:
            pass

    for call in (
        lambda: accepted.recv(1),
        lambda: near.recv(1),
        lambda: os.read(fd, 1),
        lambda: libc.recvmmsg(fd, message, 1, 0, None),
        lambda: libc.recvmmsg(far.fileno(), message, 1, 0, struct.pack("ll", 2, 0)),
        lambda: os.preadv(fd, [bytearray(8)], -1),
        lambda: os.splice(fd, pipe[1], 8),
        fill,
        lambda: near.send(b"x"),
        lambda: libc.sendmmsg(fd, message, 1, 0),
        lambda: os.pwritev(fd, [b"x"], -1),
        lambda: os.sendfile(fd, memory, 0, 8),
        lambda: os.splice(pipe[0], fd, 8),
    ):
        if call is fill:
            fill()
        else:
            takes(2, lambda: fails(call))


def signals_that_do_nothing():
    """They make no call fail, also where a traced thread is interrupted, and the call gives up."""
    libc = ctypes.CDLL(None, use_errno=True)
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 3, 0))
    epoll, memory = libc.epoll_create1(0), ctypes.create_string_buffer(128)
    semaphore, down = libc.semget(0, 1, 0o600), struct.pack("HhH", 0, -1, 0)
    time_of, none = struct.pack("ll", 3, 0), bytes(128)
    calls = [
        lambda: libc.nanosleep(time_of, None),
        lambda: libc.poll(None, 0, 3000),
        lambda: libc.epoll_wait(epoll, memory, 1, 3000),
        lambda: libc.epoll_pwait2(epoll, memory, 1, time_of, None),
        lambda: libc.sigtimedwait(none, None, time_of),
        lambda: libc.semtimedop(semaphore, down, 1, time_of),
        lambda: libc.recv(near.fileno(), memory, 1, 0),
    ]

    def ends(call):
        assert call() == 0 or ctypes.get_errno() == errno.EAGAIN

    for call in calls:
        for number in signal.SIGCHLD, signal.SIGCONT:
            child = os.fork()
            if child == 0:
                for _ in range(2):
                    time.sleep(1)
                    os.kill(os.getppid(), number)
                os._exit(0)
            takes(3, lambda: ends(call))
            os.waitpid(child, 0)
    libc.semctl(semaphore, 0, 0)


tests = terminal, signal_of_the_kernel, order, program, sockets, signals_that_do_nothing
for test in tests:
    test()
print("all is well")
