package load

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/relock-go/relock/bench/internal/rival"
	"github.com/relock-go/relock/internal/jvm"
)

// besideRedisson is one lock that clients of Redisson want, or clients here.
type besideRedisson struct {
	workload string
	hot      Hot
	kind     string // of Java's lock
	rivals   []rival.Rival
}

// RedissonPairs measures lock and unlock of a name that nobody else wants, by one thread.
func (b *Bench) RedissonPairs(ctx context.Context) error {
	return b.besideRedisson(ctx, besideRedisson{
		"redisson pair",
		Hot{Clients: 1, Each: 1},
		"lock",
		[]rival.Rival{rival.Relock(), rival.RelockAsRedisson(), rival.Redisson()},
	})
}

// RedissonHot measures one lock under contention.
func (b *Bench) RedissonHot(ctx context.Context, h Hot) error {
	return b.besideRedisson(ctx, besideRedisson{
		"redisson hot", h, "lock",
		[]rival.Rival{rival.Relock(), rival.RelockAsRedisson(), rival.Redisson()},
	})
}

// RedissonFair is the same with fair locks.
func (b *Bench) RedissonFair(ctx context.Context, h Hot) error {
	return b.besideRedisson(ctx, besideRedisson{
		"redisson fair", h, "fair",
		[]rival.Rival{rival.RelockFair(), rival.RelockAsRedissonFair(), rival.RedissonFair()},
	})
}

// besideRedisson measures the locks of here, and those of Java where a JVM is.
func (b *Bench) besideRedisson(ctx context.Context, r besideRedisson) error {
	here, there := r.rivals[:2], r.rivals[2]
	fleets, err := b.open(here, r.hot.Clients, b.Server.Addr())
	if err != nil {
		return err
	}
	defer closeAll(fleets)
	var java *javaFleet
	if b.Redisson == "" {
		b.Note("left out: %s: there is no JVM, or nothing was built for it", there.Name)
	} else {
		if java, err = b.openJava(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", there.Name, err)
		}
		defer java.Kill()
		fleets = append(fleets, &fleet{rival: there})
	}
	s := Sample{Workload: r.workload, Case: r.hot.Case()}
	return b.interleave(ctx, fleets, s, func(ctx context.Context, f *fleet, s *Sample) error {
		switch {
		case f.rival.Open == nil:
			return b.javaHot(ctx, java, s)
		case r.hot.Clients*r.hot.Each == 1:
			return b.pairs(ctx, f, 1, s)
		}
		return b.hot(ctx, f, r.hot, s)
	})
}

// A javaFleet is the clients of Redisson's in one JVM.
type javaFleet struct {
	*jvm.JVM
	names string
	r     besideRedisson
}

// warmUp is for how many windows a JVM works before it is measured: it compiles meanwhile.
const warmUp = 5

func (b *Bench) openJava(ctx context.Context, r besideRedisson) (*javaFleet, error) {
	j, err := jvm.Start(b.Redisson)
	if err != nil {
		return nil, err
	}
	f := &javaFleet{JVM: j, r: r}
	var names []string
	for i := range r.hot.Clients {
		name := fmt.Sprint("c", i)
		names = append(names, name)
		if _, err = f.tell(ctx, name, "open", "single", b.Server.Addr(), ttl.Milliseconds(), (5 * time.Minute).Milliseconds()); err != nil {
			j.Kill()
			return nil, err
		}
	}
	f.names = strings.Join(names, ",")
	if _, err = f.contest(ctx, b.name("warm"), warmUp*b.Window); err != nil {
		j.Kill()
		return nil, err
	}
	return f, nil
}

// tell has one thread do something, and waits for it.
func (f *javaFleet) tell(ctx context.Context, clients, op string, args ...any) (string, error) {
	said, err := f.Tell(clients, 1, op, args...)
	if err != nil {
		return "", err
	}
	select {
	case answer := <-said:
		return jvm.Value(answer)
	case <-f.Exited():
		return "", fmt.Errorf("java has ended during %s", op)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// contest runs one window, and returns what Java says it was.
func (f *javaFleet) contest(ctx context.Context, name string, window time.Duration) (map[string]float64, error) {
	said, err := f.tell(ctx, f.names, "contest", f.r.kind, name, f.r.hot.Each, window.Milliseconds())
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for word := range strings.FieldsSeq(said) {
		what, number, _ := strings.Cut(word, "=")
		var v float64
		if _, err := fmt.Sscan(number, &v); err != nil {
			return nil, fmt.Errorf("java said %q: %w", word, err)
		}
		values[what] = v
	}
	return values, nil
}

// javaHot is one round of Java's.
func (b *Bench) javaHot(ctx context.Context, f *javaFleet, s *Sample) error {
	if _, err := f.contest(ctx, b.name("warm"), b.Window/4); err != nil {
		return err
	}
	window := b.Window
	players := f.r.hot.Clients * f.r.hot.Each
	if players > 1 {
		window *= 2
	}
	got, err := f.contest(ctx, b.name("hot"), window)
	if err != nil {
		return err
	}
	if s.Errors = int64(got["errors"]); s.Errors > 0 {
		s.Err = "Java: grants while another held, or exceptions"
	}
	s.Few = got["turns"] < float64(2*players)
	rate := got["turns"] / got["seconds"]
	if players == 1 {
		s.Values["pairs/s"], s.Values["p50 us"], s.Values["p99 us"] = rate, got["pair50"], got["pair99"]
		return nil
	}
	s.Values["grants/s"], s.Values["Jain"] = rate, got["jain"]
	s.Values["wait p50 ms"], s.Values["longest wait ms"] = got["wait50"]/1e3, got["longest"]/1e3
	return nil
}
