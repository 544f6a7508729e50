package interop;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.redisson.api.RLock;
import org.redisson.api.RScript;
import org.redisson.client.codec.StringCodec;

/** Takes and gives back a lock again and again, and has Redis judge who holds beside it. */
final class Hammer {
    private final Client client;
    private final String kind;
    private final String name;
    private final int holds;
    private final String check;

    /** Args: kind, name, how many holds, and the file of the script that judges. */
    Hammer(Client client, String[] args) throws Exception {
        this.client = client;
        this.kind = args[0];
        this.name = args[1];
        this.holds = Integer.parseInt(args[2]);
        this.check = Files.readString(Path.of(args[3]));
    }

    String run() {
        for (int i = 0; i < holds; i++) {
            String mode = !kind.equals("rw") || i % 4 == 0 ? "w" : "r";
            String of = kind.equals("rw") ? mode.equals("w") ? "write" : "read" : kind;
            RLock lock = client.lock(of, name);
            lock.lock();
            try {
                say("enter", mode, Client.token(lock));
                say("leave", mode, 0);
            } finally {
                lock.unlock();
            }
        }
        return "";
    }

    private void say(String what, String mode, long token) {
        client.redisson.getScript(StringCodec.INSTANCE).eval(RScript.Mode.READ_WRITE, check,
                RScript.ReturnType.BOOLEAN, List.of("check:{" + name + "}"), what, mode, "java", String.valueOf(token));
    }
}
