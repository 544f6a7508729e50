package script_test

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/relock-go/relock/internal/script"
)

func files(texts map[string]string) fs.FS {
	fsys := fstest.MapFS{}
	for name, text := range texts {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func TestLoadPutsSharedPartsWhereTheyAreNamed(t *testing.T) {
	fsys := files(map[string]string{
		"lock.lua":         "-- takes a lock\nlocal l = 0\n-- uses: state queue\nreturn 1\n",
		"shared_queue.lua": "local q = 2",
		"shared_state.lua": "local s = 1\n",
	})
	s, err := script.Load(fsys, "lock")
	if err != nil {
		t.Fatal(err)
	}
	want := "local l = 0\nlocal s = 1\nlocal q = 2\nreturn 1\n"
	if s.Source != want {
		t.Errorf("source:\n%s\nwant:\n%s", s.Source, want)
	}
	if s.Name != "lock" {
		t.Errorf("name %q, want lock", s.Name)
	}
}

func TestSHAIsOfWhatIsSent(t *testing.T) {
	s, err := script.Load(files(map[string]string{"a.lua": "-- why\nreturn 1\n"}), "a")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha1.Sum([]byte(s.Source))
	if want := hex.EncodeToString(sum[:]); s.SHA != want {
		t.Errorf("SHA %s, want %s", s.SHA, want)
	}
}

func TestLoadSendsNeitherCommentsNorBlankLines(t *testing.T) {
	text := "-- header\r\n\r\nif x then\r\n  -- inner\r\n\t\r\n  return '--no'\t\r\nend"
	s, err := script.Load(files(map[string]string{"a.lua": text}), "a")
	if err != nil {
		t.Fatal(err)
	}
	if want := "if x then\n  return '--no'\nend\n"; s.Source != want {
		t.Errorf("source %q, want %q", s.Source, want)
	}
}

func TestCommentsAndLineEndsDoNotChangeTheSHA(t *testing.T) {
	fsys := files(map[string]string{"a.lua": "-- one\nreturn 1\n", "b.lua": "return 1\r\n-- two"})
	a, b := script.MustLoad(fsys, "a"), script.MustLoad(fsys, "b")
	if a.SHA != b.SHA {
		t.Errorf("SHA %s and %s, want the same", a.SHA, b.SHA)
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, row := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no file":              {map[string]string{}, "script a:"},
		"no code":              {map[string]string{"a.lua": "-- nothing\n"}, "no code"},
		"missing part":         {map[string]string{"a.lua": "-- uses: b\nreturn 1"}, "script shared_b:"},
		"nested part":          {map[string]string{"a.lua": "-- uses: b\nreturn 1", "shared_b.lua": "-- uses: c\nlocal b", "shared_c.lua": "local c"}, "shared part b uses other parts"},
		"part twice":           {map[string]string{"a.lua": "-- uses: b b\nreturn 1", "shared_b.lua": "local b"}, "names b twice"},
		"uses nothing":         {map[string]string{"a.lua": "-- uses:\nreturn 1"}, "names nothing"},
		"part again":           {map[string]string{"a.lua": "-- uses: b\n-- uses: b\nreturn 1", "shared_b.lua": "local b"}, "line 2"},
		"long comment":         {map[string]string{"a.lua": "--[[ x\n]]\nreturn 1"}, "line 1: long brackets"},
		"levelled comment":     {map[string]string{"a.lua": "--[==[ x\n]==]\nreturn 1"}, "line 1: long brackets"},
		"long string":          {map[string]string{"a.lua": "local s = [[\n-- data\n]]\nreturn s"}, "line 1: long brackets"},
		"long string, level 1": {map[string]string{"a.lua": "local s = [=[\n-- data\n]=]\nreturn s"}, "line 1: long brackets"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := script.Load(files(row.files), "a")
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want one with %q", err, row.want)
			}
		})
	}
}

func TestLoadOfAMissingFileIsNotExist(t *testing.T) {
	if _, err := script.Load(files(nil), "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
}

func TestALineCommentMayHoldBrackets(t *testing.T) {
	s, err := script.Load(files(map[string]string{"a.lua": "-- see t[[1]]\nreturn 1"}), "a")
	if err != nil || s.Source != "return 1\n" {
		t.Errorf("source %v, error %v", s, err)
	}
}

func TestMustLoadPanicsAsABug(t *testing.T) {
	defer func() {
		got, _ := recover().(string)
		if !strings.HasPrefix(got, "relock: bug: script a:") {
			t.Errorf("panic %q, want relock: bug: script a: ...", got)
		}
	}()
	script.MustLoad(files(nil), "a")
}
