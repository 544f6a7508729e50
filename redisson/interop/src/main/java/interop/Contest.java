package interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.api.RLock;

/**
 * One window of threads that take a lock and give it back, and what it came to. The time of
 * a turn is that of lock() alone, or with its unlock() if nobody else wants the lock.
 */
final class Contest {
    private final List<Player> players = new ArrayList<>();
    private final AtomicInteger inside = new AtomicInteger();
    private final AtomicInteger overlaps = new AtomicInteger();
    private final CountDownLatch start = new CountDownLatch(1);
    private final long millis;
    private volatile boolean over;

    /** Args: kind, name, how many threads each client has, and the window's ms. */
    Contest(List<Client> clients, String[] args) {
        int each = Integer.parseInt(args[2]);
        millis = Long.parseLong(args[3]);
        for (Client c : clients) {
            for (int i = 0; i < each; i++) {
                players.add(new Player(c.lock(args[0], args[1])));
            }
        }
    }

    /** Returns what it was: "NAME=NUMBER ...", times in µs. */
    String run() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        players.forEach(p -> threads.add(new Thread(p)));
        threads.forEach(Thread::start);
        long began = System.nanoTime();
        start.countDown();
        Thread.sleep(millis);
        over = true;
        double seconds = (System.nanoTime() - began) / 1e9;
        for (Thread t : threads) {
            t.join(); // who waits has the lock once more, which is not counted
        }
        return report(seconds);
    }

    private String report(double seconds) {
        long sum = 0;
        double squares = 0;
        long longest = 0;
        for (Player p : players) {
            sum += p.turns;
            squares += (double) p.turns * p.turns;
            longest = Math.max(longest, p.longest);
        }
        long[] waits = players.stream().flatMapToLong(p -> Arrays.stream(p.waits, 0, p.turns)).sorted().toArray();
        long[] pairs = players.stream().flatMapToLong(p -> Arrays.stream(p.pairs, 0, p.turns)).sorted().toArray();
        double jain = squares == 0 ? 0 : (double) sum * sum / (players.size() * squares);
        long errors = overlaps.get() + players.stream().filter(p -> p.failed != null).count();
        return String.format(Locale.ROOT, "turns=%d seconds=%f pair50=%f pair99=%f wait50=%f longest=%f jain=%f errors=%d",
                sum, seconds, micros(pairs, 50), micros(pairs, 99), micros(waits, 50), longest / 1e3, jain, errors);
    }

    private static double micros(long[] sorted, int percent) {
        return sorted.length == 0 ? 0 : sorted[Math.min(sorted.length - 1, sorted.length * percent / 100)] / 1e3;
    }

    private final class Player implements Runnable {
        private final RLock lock;
        private long[] waits = new long[1024];
        private long[] pairs = new long[1024];
        private int turns;
        private long longest;
        private Throwable failed;

        Player(RLock lock) {
            this.lock = lock;
        }

        @Override
        public void run() {
            try {
                start.await();
                while (!over) {
                    turn();
                }
            } catch (Throwable e) { // it is counted as an error
                failed = e;
            }
        }

        private void turn() {
            long asked = System.nanoTime();
            lock.lock();
            long had = System.nanoTime();
            if (inside.incrementAndGet() != 1) {
                overlaps.incrementAndGet();
            }
            inside.decrementAndGet();
            lock.unlock();
            longest = Math.max(longest, had - asked);
            if (over) {
                return;
            }
            if (turns == waits.length) {
                waits = Arrays.copyOf(waits, 2 * turns);
                pairs = Arrays.copyOf(pairs, 2 * turns);
            }
            waits[turns] = had - asked;
            pairs[turns] = System.nanoTime() - asked;
            turns++;
        }
    }
}
