import java.util.concurrent.TimeUnit;
import org.agrona.DeadlineTimerWheel;

/** Agrona's wheel: one thread, numbers for timers, time moved by hand. */
final class AgronaPeer implements Bench.Peer {
    /** About a millisecond: it has to be a power of two. */
    private static final long TICK = 1 << 20;

    private final DeadlineTimerWheel wheel =
            new DeadlineTimerWheel(TimeUnit.NANOSECONDS, 0, TICK, 1024);
    private long[] ids = new long[1024];
    private int count;

    @Override
    public void add(long after) {
        if (count == ids.length) {
            ids = java.util.Arrays.copyOf(ids, 2 * count);
        }
        ids[count++] = wheel.scheduleTimer(after);
    }

    @Override
    public void pair(long after) {
        if (!wheel.cancelTimer(wheel.scheduleTimer(after))) {
            throw new IllegalStateException("a timer was gone");
        }
    }

    @Override
    public void pushOut(int timer, long after) {
        if (!wheel.cancelTimer(ids[timer])) {
            throw new IllegalStateException("a timer was gone");
        }
        ids[timer] = wheel.scheduleTimer(after);
    }

    @Override
    public long pending() {
        return wheel.timerCount();
    }

    @Override
    public long[] expire(long[] after) {
        for (long one : after) {
            wheel.scheduleTimer(one);
        }
        long[] fired = {0};
        DeadlineTimerWheel.TimerHandler handler =
                (unit, now, id) -> {
                    fired[0]++;
                    return true;
                };
        long began = Bench.threadTime();
        for (long ms = 1; ms <= 1150; ms++) {
            long now = ms * 1_000_000;
            while (wheel.currentTickTime() <= now && wheel.timerCount() > 0) {
                wheel.poll(now, handler, Integer.MAX_VALUE);
            }
        }
        return new long[] {fired[0], Bench.threadTime() - began};
    }

    @Override
    public Object arm(long after) {
        throw new UnsupportedOperationException("for one thread");
    }

    @Override
    public void cancel(Object timer) {
        throw new UnsupportedOperationException("for one thread");
    }
}
