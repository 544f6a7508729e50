package layout_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

// A vector is one call of a script. The server's clock is frozen: frozen.lua goes before the script.
type vector struct {
	Case     string           `json:"case"`
	Script   string           `json:"script"`
	SHA1     string           `json:"sha1"`  // of the script without comments and blank lines
	Now      int64            `json:"now"`   // the server's clock in µs
	Hears    []string         `json:"hears"` // channels to which somebody is subscribed
	Before   map[string]state `json:"before"`
	Keys     []string         `json:"keys"`
	Args     []string         `json:"args"`
	Reply    any              `json:"reply"` // an error is {"error": text}
	After    map[string]state `json:"after"`
	Messages [][2]string      `json:"messages"` // channel and payload, in order
}

// A state is what a key has.
type state struct {
	Hash map[string]string `json:"hash,omitempty"`
	ZSet map[string]string `json:"zset,omitempty"`
	Life int64             `json:"life"` // in ms, rounded up to lifeStep
}

// lifeStep is so long that no script takes it.
const lifeStep = 10_000

// A bench runs vectors on a server of its own.
type bench struct {
	t      *testing.T
	rdb    *redis.Client
	frozen string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	frozen, err := os.ReadFile("frozen.lua")
	rig.Must(t, err)
	return &bench{t, redistest.Real(t).Client(t), string(frozen)}
}

// play stores what is before the vector, runs its script at its time, and sets what comes of it.
func (b *bench) play(v *vector) {
	b.t.Helper()
	ctx := b.t.Context()
	b.store(v.Before)
	const end = "the end of the vector"
	sub := b.rdb.Subscribe(ctx, append(v.Hears, end)...)
	defer func() { _ = sub.Close() }()
	for range len(v.Hears) + 1 {
		_, err := sub.Receive(ctx)
		rig.Must(b.t, err)
	}
	s := script.MustLoad(lua.FS, v.Script)
	v.SHA1 = s.SHA
	clock := strings.NewReplacer("SECONDS", strconv.FormatInt(v.Now/1_000_000, 10), "MICROS", strconv.FormatInt(v.Now%1_000_000, 10))
	args := make([]any, len(v.Args))
	for i, arg := range v.Args {
		args[i] = arg
	}
	reply, err := b.rdb.Eval(ctx, clock.Replace(b.frozen)+s.Source, v.Keys, args...).Result()
	var refused redis.Error
	switch {
	case errors.As(err, &refused) && !errors.Is(err, redis.Nil):
		reply = map[string]any{"error": refused.Error()}
	case !errors.Is(err, redis.Nil):
		rig.Must(b.t, err)
	}
	v.Reply, v.After = reply, b.stored()
	rig.Must(b.t, b.rdb.Publish(ctx, end, "").Err())
	v.Messages = [][2]string{}
	for {
		m, err := sub.ReceiveMessage(ctx)
		rig.Must(b.t, err)
		if m.Channel == end {
			return
		}
		v.Messages = append(v.Messages, [2]string{m.Channel, m.Payload})
	}
}

// store has the server keep this and nothing else.
func (b *bench) store(all map[string]state) {
	b.t.Helper()
	ctx := b.t.Context()
	rig.Must(b.t, b.rdb.FlushAll(ctx).Err())
	for key, s := range all {
		for field, value := range s.Hash {
			rig.Must(b.t, b.rdb.HSet(ctx, key, field, value).Err())
		}
		for member, score := range s.ZSet {
			rig.Must(b.t, b.rdb.Do(ctx, "ZADD", key, score, member).Err())
		}
		rig.Must(b.t, b.rdb.PExpire(ctx, key, time.Duration(s.Life)*time.Millisecond).Err())
	}
}

// stored is what the server has.
func (b *bench) stored() map[string]state {
	b.t.Helper()
	ctx, all := b.t.Context(), map[string]state{}
	for _, key := range b.rdb.Keys(ctx, "*").Val() {
		life := b.rdb.PTTL(ctx, key).Val().Milliseconds()
		s := state{Life: (life + lifeStep - 1) / lifeStep * lifeStep}
		switch kind := b.rdb.Type(ctx, key).Val(); kind {
		case "hash":
			s.Hash = b.rdb.HGetAll(ctx, key).Val()
		case "zset":
			s.ZSet = map[string]string{}
			for _, z := range b.rdb.ZRangeWithScores(ctx, key, 0, -1).Val() {
				s.ZSet[z.Member.(string)] = strconv.FormatFloat(z.Score, 'f', -1, 64)
			}
		default:
			b.t.Fatalf("key %s is a %s", key, kind)
		}
		all[key] = s
	}
	return all
}

// plain is v as it comes out of its JSON.
func plain(t *testing.T, v any) (out any) {
	t.Helper()
	text, err := json.Marshal(v)
	rig.Must(t, err)
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	rig.Must(t, d.Decode(&out))
	return out
}

// readVectors reads those of every script.
func readVectors(t *testing.T) (all []vector) {
	t.Helper()
	files, err := filepath.Glob("vectors/*.json")
	rig.Must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		rig.Must(t, err)
		var some []vector
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		rig.Must(t, d.Decode(&some))
		all = append(all, some...)
	}
	return all
}

// Fails when a vector in the files is not what a server makes of it.
func TestVectorsAreWhatAServerDoes(t *testing.T) {
	b, scripts := newBench(t), map[string]bool{}
	for _, want := range readVectors(t) {
		t.Run(want.Script+"/"+want.Case, func(t *testing.T) {
			scripts[want.Script] = true
			got := want
			b.play(&got)
			if a, b := plain(t, got), plain(t, want); !reflect.DeepEqual(a, b) {
				t.Errorf("the server makes of it\n%v\nand the file says\n%v\n%s", a, b, instruction)
			}
		})
	}
	for _, name := range operations(t) {
		if !scripts[name] {
			t.Errorf("script %s has no vector", name)
		}
	}
}

// operations are the scripts that clients send.
func operations(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(rig.Root(t), "lua", "*.lua"))
	rig.Must(t, err)
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".lua"); !strings.HasPrefix(name, "shared_") {
			names = append(names, name)
		}
	}
	return names
}

// encode returns the files of vectors by name, one vector a line in each.
func encode(t *testing.T, all []vector) map[string]string {
	t.Helper()
	lines := map[string][]string{}
	for _, v := range all {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		rig.Must(t, e.Encode(v))
		lines[v.Script] = append(lines[v.Script], strings.TrimSuffix(text.String(), "\n"))
	}
	files := map[string]string{}
	for name, some := range lines {
		files["vectors/"+name+".json"] = fmt.Sprintf("[\n%s\n]\n", strings.Join(some, ",\n"))
	}
	return files
}
