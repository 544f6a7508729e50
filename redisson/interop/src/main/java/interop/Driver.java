package interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Does with Redisson what it is told on its input: a line is "ID CLIENT THREAD OP ARGS", and is
 * answered by "ID ok VALUE" or "ID error WHAT". Commands of one thread of one client run one
 * after the other, on one Java thread: that is who owns a lock.
 */
public final class Driver {
    private final Map<String, Client> clients = new ConcurrentHashMap<>();
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
    private final PrintStream out;

    private Driver(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] args) throws IOException {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // nobody else writes where answers are read
        new Driver(out).run(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
        System.exit(0);
    }

    private void run(BufferedReader in) throws IOException {
        out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            String thread = words[1] + " " + words[2];
            threads.computeIfAbsent(thread, t -> Executors.newSingleThreadExecutor(Driver::daemon))
                    .execute(() -> answer(words));
        }
    }

    private static Thread daemon(Runnable r) {
        Thread t = new Thread(r);
        t.setDaemon(true);
        return t;
    }

    private void answer(String[] words) {
        String said;
        try {
            String[] args = Arrays.copyOfRange(words, 4, words.length);
            said = "ok " + perform(words[1], words[3], args);
        } catch (Throwable e) { // whatever it is, the test is to know
            said = "error " + e.toString().replace('\n', ' ');
        }
        synchronized (out) {
            out.println(words[0] + " " + said);
        }
    }

    private Object perform(String name, String op, String[] args) throws Exception {
        if (op.equals("open")) {
            clients.put(name, new Client(args));
            return "";
        }
        if (op.equals("skew")) {
            Skew.by(Long.parseLong(args[0]));
            return "";
        }
        if (op.equals("contest")) { // of several clients
            return new Contest(Arrays.stream(name.split(",")).map(clients::get).toList(), args).run();
        }
        Client c = clients.get(name);
        return op.equals("hammer") ? new Hammer(c, args).run() : c.perform(op, args);
    }
}
