package interop;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** A client of Redisson's, and what it can be told to do with a lock. */
final class Client {
    final RedissonClient redisson;

    /** Args: single, cluster or sentinel, addresses with commas between, the watchdog's timeout in ms, the fair lock's. */
    Client(String[] args) {
        Config config = new Config();
        String[] addresses = Arrays.stream(args[1].split(",")).map(a -> "redis://" + a).toArray(String[]::new);
        if (args[0].equals("cluster")) {
            config.useClusterServers().addNodeAddress(addresses);
        } else if (args[0].equals("sentinel")) {
            config.useSentinelServers().addSentinelAddress(addresses).setMasterName("main");
        } else {
            config.useSingleServer().setAddress(addresses[0]);
        }
        config.setLockWatchdogTimeout(Long.parseLong(args[2]));
        config.setFairLockWaitTimeout(Long.parseLong(args[3]));
        redisson = Redisson.create(config);
    }

    RLock lock(String kind, String name) {
        switch (kind) {
            case "fair":
                return redisson.getFairLock(name);
            case "fenced":
                return redisson.getFencedLock(name);
            case "read":
                return redisson.getReadWriteLock(name).readLock();
            case "write":
                return redisson.getReadWriteLock(name).writeLock();
            default:
                return redisson.getLock(name);
        }
    }

    Object perform(String op, String[] args) throws Exception {
        RLock lock = lock(args[0], args[1]);
        switch (op) {
            case "lock":
                lock.lock();
                return token(lock);
            case "lockfor":
                lock.lock(Long.parseLong(args[2]), TimeUnit.MILLISECONDS);
                return token(lock);
            case "try":
                return lock.tryLock(Long.parseLong(args[2]), Long.parseLong(args[3]), TimeUnit.MILLISECONDS);
            case "unlock":
                lock.unlock();
                return "";
            default:
                return look(op, lock);
        }
    }

    private static Object look(String op, RLock lock) {
        switch (op) {
            case "force":
                return lock.forceUnlock();
            case "locked":
                return lock.isLocked();
            case "held":
                return lock.isHeldByCurrentThread();
            case "count":
                return lock.getHoldCount();
            case "ttl":
                return lock.remainTimeToLive();
            default:
                throw new IllegalArgumentException(op);
        }
    }

    /** The token under which the current thread holds a fenced lock; of another lock 0. */
    static long token(RLock lock) {
        return lock instanceof RFencedLock ? ((RFencedLock) lock).getToken() : 0;
    }
}
