package script_test

import (
	"crypto/sha1"
	"encoding/hex"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
	redissonlua "github.com/relock-go/relock/redisson/lua"
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
	s := script.MustLoad(fsys, "lock")
	want := "local l = 0\nlocal s = 1\nlocal q = 2\nreturn 1\n"
	if s.Source != want {
		t.Errorf("source:\n%s\nwant:\n%s", s.Source, want)
	}
	if s.Name != "lock" {
		t.Errorf("name %q, want lock", s.Name)
	}
}

func TestSHAIsOfWhatIsSent(t *testing.T) {
	s := script.MustLoad(files(map[string]string{"a.lua": "-- why\nreturn 1\n"}), "a")
	sum := sha1.Sum([]byte(s.Source))
	if want := hex.EncodeToString(sum[:]); s.SHA != want {
		t.Errorf("SHA %s, want %s", s.SHA, want)
	}
}

func TestLoadSendsNeitherCommentsNorBlankLines(t *testing.T) {
	text := "-- header\r\n\r\nif x then\r\n  -- inner\r\n\t\r\n  return '--no'\t\r\nend"
	s := script.MustLoad(files(map[string]string{"a.lua": text}), "a")
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

func TestLoadPanicsAsABugIfAFileIsMissing(t *testing.T) {
	for want, texts := range map[string]map[string]string{
		"relock: bug: script a:":        {},
		"relock: bug: script shared_b:": {"a.lua": "-- uses: b\nreturn 1"},
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.HasPrefix(got, want) {
					t.Errorf("panic %q, want %s ...", got, want)
				}
			}()
			script.MustLoad(files(texts), "a")
		}()
	}
}

// misread says what MustLoad would not read as Lua does in the scripts of fsys.
func misread(t *testing.T, fsys fs.FS) (all []string) {
	t.Helper()
	names, err := fs.Glob(fsys, "*.lua")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		code, used := false, map[string]bool{}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			parts, uses := strings.CutPrefix(line, "-- uses:")
			comment := strings.HasPrefix(line, "--")
			code = code || line != "" && !comment
			switch {
			case uses && strings.HasPrefix(name, "shared_"):
				all = append(all, name+" is a part and uses parts: the script has to name them, in order")
			case uses && strings.TrimSpace(parts) == "":
				all = append(all, name+" uses nothing")
			case !comment && (strings.Contains(line, "[[") || strings.Contains(line, "[=")),
				strings.HasPrefix(line, "--[[") || strings.HasPrefix(line, "--[="):
				all = append(all, name+" has long brackets")
			}
			for part := range strings.FieldsSeq(parts) {
				if uses && used[part] { // its locals would be defined twice, and Lua has at most 200
					all = append(all, name+" uses "+part+" twice")
				}
				used[part] = uses
			}
		}
		if !code {
			all = append(all, name+" has no code")
		}
	}
	return all
}

func TestScriptsHaveOnlyWhatLoadReads(t *testing.T) {
	for of, fsys := range map[string]fs.FS{"relock": lua.FS, "redisson": redissonlua.FS} {
		if all := misread(t, fsys); len(all) > 0 {
			t.Errorf("%s: %q", of, all)
		}
	}
	for name, row := range map[string]struct {
		file, text string
		want       string
	}{
		"no code":              {"a.lua", "-- nothing\n", "no code"},
		"nested part":          {"shared_b.lua", "-- uses: c\nlocal b", "is a part"},
		"part twice":           {"a.lua", "-- uses: b b\nreturn 1", "uses b twice"},
		"uses nothing":         {"a.lua", "-- uses:\nreturn 1", "uses nothing"},
		"part again":           {"a.lua", "-- uses: b\n-- uses: b\nreturn 1", "uses b twice"},
		"long comment":         {"a.lua", "--[[ x\n]]\nreturn 1", "long brackets"},
		"levelled comment":     {"a.lua", "--[==[ x\n]==]\nreturn 1", "long brackets"},
		"long string":          {"a.lua", "local s = [[\n-- data\n]]\nreturn s", "long brackets"},
		"long string, level 1": {"a.lua", "local s = [=[\n-- data\n]=]\nreturn s", "long brackets"},
	} {
		t.Run(name, func(t *testing.T) {
			if all := misread(t, files(map[string]string{row.file: row.text})); len(all) != 1 || !strings.Contains(all[0], row.want) {
				t.Errorf("got %q, want one with %q", all, row.want)
			}
		})
	}
}

func TestALineCommentMayHoldBrackets(t *testing.T) {
	s := script.MustLoad(files(map[string]string{"a.lua": "-- see t[[1]]\nreturn 1"}), "a")
	if s.Source != "return 1\n" {
		t.Errorf("source %q", s.Source)
	}
}
