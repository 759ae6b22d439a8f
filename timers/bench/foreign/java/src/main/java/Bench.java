import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;

/**
 * One peer in Java, measured by a program that asks for one sample after the other:
 * timers/bench/src/peers/foreign.rs has the questions and the answers, and foreign/cpp/bench.hpp says what
 * the cases are.
 */
final class Bench {
    private static final long SECOND = 1_000_000_000L;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** The generator of all peers. */
    static final class Random {
        private long state = 0x2545_f491_4f6c_dd1dL;

        long below(long bound) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
            // The upper half of an unsigned product; the bound is positive.
            return Math.multiplyHigh(state, bound) + ((state >> 63) & bound);
        }

        long seconds(long from, long to) {
            return from * SECOND + below((to - from) * SECOND);
        }

        long[] many(int count, long from, long to) {
            long[] all = new long[count];
            for (int i = 0; i < count; i++) {
                all[i] = seconds(from, to);
            }
            return all;
        }
    }

    /** What a peer can do. Deadlines are distances from the moment at which it was made, in ns. */
    interface Peer {
        void add(long after);

        void pair(long after);

        void pushOut(int timer, long after);

        long pending();

        /** Arms one for each deadline, lets all expire. How many did, and the CPU time in ns. */
        long[] expire(long[] after);

        /** A timer that any thread may arm and cancel; null if there is no such thing. */
        Object arm(long after);

        void cancel(Object timer);
    }

    static long threadTime() {
        return THREADS.getCurrentThreadCpuTime();
    }

    static long processTime() {
        return ((com.sun.management.OperatingSystemMXBean)
                        ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    /** One sample: ns per operation, what is pending or has fired, the sum of all deadlines. */
    interface Sample {
        String take() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        String which = args[0];
        Sample sample = sample(which, args[1], Integer.parseInt(args[2]), Integer.parseInt(args[3]));
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (in.readLine() != null) {
            System.out.println(sample.take());
        }
        System.exit(0);
    }

    private static Peer make(String which) {
        return which.equals("agrona") ? new AgronaPeer() : new NettyPeer();
    }

    private static Sample sample(String which, String kind, int pending, int operations)
            throws Exception {
        switch (kind) {
            case "pairs":
                return pairs(which, pending, operations);
            case "push":
            case "push_equal":
                return pushes(which, pending, operations, kind.equals("push_equal"));
            case "expire":
                return expiry(which, pending);
            case "own":
                return own(which, operations);
            default:
                return crossed(which, operations);
        }
    }

    private static Sample pairs(String which, int pending, int operations) {
        Random random = new Random();
        long[] others = random.many(pending, 600, 1200);
        long[] pairs = random.many(operations, 600, 1200);
        Peer peer = make(which);
        for (long after : others) {
            peer.add(after);
        }
        Sample sample =
                () -> {
                    long sum = 0;
                    long began = threadTime();
                    for (long after : pairs) {
                        peer.pair(after);
                        sum += after;
                    }
                    long took = threadTime() - began;
                    return answer(took, pairs.length, peer.pending(), sum);
                };
        return warm(sample, operations);
    }

    /** The compiler has seen everything before the first sample. */
    private static Sample warm(Sample sample, int operations) {
        try {
            for (long done = 0; done < 200_000; done += operations) {
                sample.take();
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
        return sample;
    }

    private static Sample pushes(String which, int pending, int operations, boolean equal) {
        Random random = new Random();
        long[] deadlines = random.many(pending, 600, 1200);
        {
            // Another table warms the compiler up: the plans of this one are those of all peers.
            Peer throwaway = make(which);
            for (int i = 0; i < Math.min(pending, 10_000); i++) {
                throwaway.add(deadlines[i]);
            }
            for (int i = 0; i < 200_000; i++) {
                throwaway.pushOut(i % Math.min(pending, 10_000), 1200 * SECOND + i);
            }
        }
        Peer peer = make(which);
        for (long after : deadlines) {
            peer.add(after);
        }
        int[] timers = new int[2 * operations];
        long[] to = new long[2 * operations];
        long[] last = {1200 * SECOND};
        return () -> {
            long sum = 0;
            for (int i = 0; i < to.length; i++) {
                int timer = (int) random.below(pending);
                last[0] += 100_000;
                deadlines[timer] = equal ? last[0] : deadlines[timer] + random.seconds(0, 100);
                timers[i] = timer;
                to[i] = deadlines[timer];
                sum += to[i];
            }
            for (int i = 0; i < operations; i++) {
                peer.pushOut(timers[i], to[i]);
            }
            long began = threadTime();
            for (int i = operations; i < to.length; i++) {
                peer.pushOut(timers[i], to[i]);
            }
            long took = threadTime() - began;
            return answer(took, operations, peer.pending(), sum);
        };
    }

    private static Sample expiry(String which, int count) {
        Random random = new Random();
        long[] after = new long[count];
        for (int i = 0; i < count; i++) {
            after[i] = random.below(SECOND);
        }
        long sum = 0;
        for (long one : after) {
            sum += one;
        }
        long all = sum;
        Sample sample =
                () -> {
                    long[] outcome = make(which).expire(after);
                    return answer(outcome[1], count, outcome[0], all);
                };
        try {
            sample.take();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
        return sample;
    }

    private static Sample own(String which, int operations) {
        long[] after = new Random().many(operations, 600, 1200);
        Peer peer = make(which);
        Runnable work =
                () -> {
                    for (long one : after) {
                        peer.cancel(peer.arm(one));
                    }
                };
        Sample sample =
                () -> answer(both(work, work), 2L * operations, 0, 0);
        return warm(sample, operations);
    }

    private static Sample crossed(String which, int operations) {
        long[] after = new Random().many(operations, 600, 1200);
        Peer peer = make(which);
        Sample sample =
                () -> {
                    Ring ring = new Ring();
                    Runnable arm =
                            () -> {
                                for (long one : after) {
                                    ring.push(peer.arm(one));
                                }
                            };
                    Runnable cancel =
                            () -> {
                                for (int i = 0; i < operations; i++) {
                                    peer.cancel(ring.pop());
                                }
                            };
                    return answer(both(arm, cancel), operations, 0, 0);
                };
        return warm(sample, operations);
    }

    /** One producer, one consumer. */
    private static final class Ring {
        private final java.util.concurrent.atomic.AtomicReferenceArray<Object> places =
                new java.util.concurrent.atomic.AtomicReferenceArray<>(1024);
        private int in;
        private int out;

        void push(Object timer) {
            int place = in++ & 1023;
            for (int rounds = 1; places.getAcquire(place) != null; rounds++) {
                waitABit(rounds);
            }
            places.setRelease(place, timer);
        }

        Object pop() {
            int place = out++ & 1023;
            Object timer;
            for (int rounds = 1; (timer = places.getAcquire(place)) == null; rounds++) {
                waitABit(rounds);
            }
            places.setRelease(place, null);
            return timer;
        }

        private static void waitABit(int rounds) {
            if (rounds % 1000 == 0) {
                Thread.yield();
            } else {
                Thread.onSpinWait();
            }
        }
    }

    /** Wall time from when the first thread began to when the last ended. */
    private static long both(Runnable one, Runnable other) throws InterruptedException {
        CyclicBarrier barrier = new CyclicBarrier(2);
        long[] began = new long[2];
        long[] ended = new long[2];
        Runnable[] works = {one, other};
        Thread[] threads = new Thread[2];
        for (int i = 0; i < 2; i++) {
            int nth = i;
            threads[i] =
                    new Thread(
                            () -> {
                                try {
                                    barrier.await();
                                } catch (InterruptedException | BrokenBarrierException error) {
                                    throw new IllegalStateException(error);
                                }
                                began[nth] = System.nanoTime();
                                works[nth].run();
                                ended[nth] = System.nanoTime();
                            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return Math.max(ended[0], ended[1]) - Math.min(began[0], began[1]);
    }

    private static String answer(long took, long operations, long count, long sum) {
        return (double) took / operations + " " + count + " " + Long.toUnsignedString(sum);
    }
}
