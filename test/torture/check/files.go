package check

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const packed = ".gz"

// histories are the files of a run: *.jsonl as they are written, and *.jsonl.gz as they are published.
func histories(dir string) ([]string, error) {
	plain, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	zipped, err := filepath.Glob(filepath.Join(dir, "*.jsonl"+packed))
	if err != nil {
		return nil, err
	}
	for _, name := range zipped {
		if slices.Contains(plain, strings.TrimSuffix(name, packed)) {
			return nil, errors.New("check: one history is there twice: " + name) // each event would count twice
		}
	}
	return append(plain, zipped...), nil
}

// open reads a history, packed or not.
func open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil || !strings.HasSuffix(path, packed) {
		return f, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}
