package deploy_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// check is what a service does at its start, and its readiness probe again and again.
func (d *deployed) check() {
	d.Helper()
	c := rig.Open(d.T, d.rdb(), d.opts...)
	for range 5 {
		rig.Must(d, c.Check(d.ctx))
	}
}

// TestCheckNamesEveryMissingPermission takes each word out of the documented line once.
func TestCheckNamesEveryMissingPermission(t *testing.T) {
	t.Parallel()
	srv := redistest.Real(t)
	admin := srv.Client(t)
	full := rig.DocumentedACL(t)
	asUser := func(o *redis.Options) { o.Username, o.Password = "app", "secret" }
	rig.Permit(t, admin, full)
	served := rig.Open(t, srv.Client(t, asUser))
	rig.Must(t, served.Check(t.Context()))
	words := []string{"~relock:*", "&relock:*"}
	for _, m := range rig.ACLGrant.FindAllStringSubmatch(full, -1) {
		words = append(words, m[0])
	}
	for _, word := range words {
		t.Run(word, func(t *testing.T) {
			rig.Must(t, admin.Do(t.Context(), "ACL", "DELUSER", "app").Err())
			rig.Permit(t, admin, strings.Replace(full+" ", " "+word+" ", " ", 1))
			err := rig.Open(t, srv.Client(t, asUser)).Check(t.Context())
			if err == nil || errors.Is(err, relock.ErrUnavailable) || !strings.Contains(err.Error(), strings.Trim(word, "+~&*")) {
				t.Errorf("%v, want an error that names %s and is not ErrUnavailable", err, word)
			}
		})
	}
	if keys := admin.Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("%q are left", keys)
	}
}

// TestCheckSeesWhatChangesLater has a permission taken away, and a primary that becomes a replica, after a success.
func TestCheckSeesWhatChangesLater(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change, undo string
		says         []string
		passes       bool
	}{
		"a permission":     {"ACL SETUSER app -zadd", "ACL SETUSER app +zadd", []string{"may not run", "zadd"}, false},
		"a replica":        {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", []string{"READONLY", "connect to the primary"}, true},
		"too few replicas": {"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", []string{"NOREPLICAS"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Real(t)
			admin := srv.Client(t)
			rig.Permit(t, admin, rig.DocumentedACL(t))
			c := rig.Open(t, srv.Client(t, func(o *redis.Options) { o.Username, o.Password = "app", "secret" }))
			rig.Must(t, c.Check(t.Context()))
			rig.Permit(t, admin, row.change)
			err := c.Check(t.Context())
			for _, says := range row.says {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("%v, want %q in it", err, says)
				}
			}
			if errors.Is(err, relock.ErrUnavailable) != row.passes {
				t.Errorf("%v is ErrUnavailable: %v", err, !row.passes)
			}
			rig.Permit(t, admin, row.undo)
			rig.Must(t, c.Check(t.Context()))
		})
	}
}

func TestCheckNamesWhatReplicasNeeds(t *testing.T) {
	t.Parallel()
	srv := redistest.Real(t)
	rig.Permit(t, srv.Client(t), rig.DocumentedACL(t))
	rdb := srv.Client(t, func(o *redis.Options) { o.Username, o.Password = "app", "secret" })
	err := rig.Open(t, rdb, relock.Defaults(relock.Replicas(1, time.Second))).Check(t.Context())
	if err == nil || errors.Is(err, relock.ErrUnavailable) || !strings.Contains(err.Error(), "may not run: wait") {
		t.Errorf("%v, want what is missing: wait", err)
	}
	rig.Must(t, rig.Open(t, rdb).Check(t.Context()))
}

func TestCheckOfADeadOrHangingServerEndsInTime(t *testing.T) {
	t.Parallel()
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, and says nothing
	rig.Must(t, err)
	defer func() { _ = hangs.Close() }()
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	rig.Must(t, err)
	rig.Must(t, dead.Close())
	for name, addr := range map[string]string{"dead": dead.Addr().String(), "hanging": hangs.Addr().String()} {
		rdb := redis.NewClient(&redis.Options{Addr: addr, DialTimeout: time.Second, ReadTimeout: time.Second})
		t.Cleanup(func() { _ = rdb.Close() })
		c := rig.Open(t, rdb)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		err := c.Check(ctx)
		late := time.Duration(0)
		if by, _ := ctx.Deadline(); ctx.Err() != nil {
			late = time.Since(by)
		}
		if !errors.Is(err, relock.ErrUnavailable) || late > 50*time.Millisecond {
			t.Errorf("%s: %v, %v after the end of its context", name, err, late)
		}
	}
}

// TestCheckFailsWhileTheServerCannotPersist: it refuses writes until its disk has room. A directory in the snapshot's
// place does the same, for root too.
func TestCheckFailsWhileTheServerCannotPersist(t *testing.T) {
	t.Parallel()
	srv := redistest.Real(t, "--save", "3600 1000000")
	admin, c := srv.Client(t), rig.Open(t, srv.Client(t))
	rig.Must(t, c.Check(t.Context()))
	inTheWay := filepath.Join(admin.ConfigGet(t.Context(), "dir").Val()["dir"], "dump.rdb")
	rig.Must(t, os.Mkdir(inTheWay, 0o700))
	saves := func(status string) {
		rig.Must(t, admin.BgSave(t.Context()).Err())
		rig.Soon(t, func() string {
			info := admin.Info(t.Context(), "persistence").Val()
			if strings.Contains(info, "rdb_bgsave_in_progress:0") && strings.Contains(info, "rdb_last_bgsave_status:"+status) {
				return ""
			}
			return "want a snapshot that is " + status
		})
	}
	saves("err")
	err := c.Check(t.Context())
	if rig.WantIs(t, err, relock.ErrUnavailable); err != nil && !strings.Contains(err.Error(), "MISCONF") {
		t.Errorf("%v, want it to say MISCONF", err)
	}
	_, err = c.NewLock("a").TryLock(t.Context(), 0) // as Check says
	rig.WantIs(t, err, relock.ErrUnavailable)
	rig.Must(t, os.Remove(inTheWay))
	saves("ok")
	rig.Must(t, c.Check(t.Context()))
}
