import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.util.ArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Netty's wheel with its defaults: a thread that ticks every 100 ms and is told through queues. */
final class NettyPeer implements Bench.Peer {
    private final HashedWheelTimer timer = new HashedWheelTimer();
    private final ArrayList<Timeout> timeouts = new ArrayList<>();
    private final AtomicLong fired = new AtomicLong();
    private final TimerTask task = timeout -> fired.lazySet(fired.get() + 1);
    private final long made = System.nanoTime();

    private Timeout start(long after) {
        return timer.newTimeout(task, after, TimeUnit.NANOSECONDS);
    }

    @Override
    public void add(long after) {
        timeouts.add(start(after));
    }

    @Override
    public void pair(long after) {
        if (!start(after).cancel()) {
            throw new IllegalStateException("a timer was gone");
        }
    }

    @Override
    public void pushOut(int timer, long after) {
        if (!timeouts.get(timer).cancel()) {
            throw new IllegalStateException("a timer was gone");
        }
        timeouts.set(timer, start(after));
    }

    @Override
    public long pending() {
        // Its own count includes cancelled ones that its thread has not seen yet.
        return timeouts.stream().filter(one -> !one.isCancelled() && !one.isExpired()).count();
    }

    @Override
    public long[] expire(long[] after) {
        // Far enough for all to be armed before the first is due.
        long base = System.nanoTime() - made + 2_000_000L * (1 + after.length / 1000);
        for (long one : after) {
            start(base + one - (System.nanoTime() - made));
        }
        long began = Bench.processTime();
        for (int waited = 0; fired.get() < after.length && waited < 1500; waited++) {
            try {
                Thread.sleep(20);
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }
        long took = Bench.processTime() - began;
        timer.stop();
        return new long[] {fired.get(), took};
    }

    @Override
    public Object arm(long after) {
        return start(after);
    }

    @Override
    public void cancel(Object timeout) {
        if (!((Timeout) timeout).cancel()) {
            throw new IllegalStateException("a timer was gone");
        }
    }
}
