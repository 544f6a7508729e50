package interop;

import java.lang.invoke.MethodHandles;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.MemberSubstitution;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.loading.ClassLoadingStrategy;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;
import org.redisson.Redisson;

/** Has Redisson's fair lock read a clock that is wrong, as that of another host may be. */
public final class Skew {
    private static volatile long millis;

    private Skew() {
    }

    /** The wrong clock. */
    public static long now() {
        return System.currentTimeMillis() + millis;
    }

    /** Sets how wrong. It is to be called before the JVM has a fair lock. */
    static void by(long ms) throws Exception {
        millis = ms;
        ClassFileLocator files = ClassFileLocator.ForClassLoader.ofSystemLoader();
        new ByteBuddy()
                .redefine(TypePool.Default.of(files).describe("org.redisson.RedissonFairLock").resolve(), files)
                .visit(MemberSubstitution.relaxed().method(ElementMatchers.named("currentTimeMillis"))
                        .replaceWith(Skew.class.getMethod("now")).on(ElementMatchers.any()))
                .make()
                .load(Redisson.class.getClassLoader(),
                        ClassLoadingStrategy.UsingLookup.of(MethodHandles.privateLookupIn(Redisson.class, MethodHandles.lookup())));
    }
}
