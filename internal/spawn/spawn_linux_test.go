package spawn_test

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/spawn"
)

const parentEnv = "RELOCK_TEST_SPAWN_PARENT"

// TestMain becomes, if parentEnv is set, the parent: a program that starts a child with the same standard output.
func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) == "" {
		os.Exit(m.Run())
	}
	child := exec.Command("sleep", "60")
	child.Stdout = os.Stdout
	exited, err := spawn.Start(child)
	if err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("!")
	<-exited
}

func TestChildDiesWithAParentThatIsKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), parentEnv+"=1")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	parent.Stdout = in
	exited, err := spawn.Start(parent)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	_ = out.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatalf("the parent has no child: %v", err)
	}
	_ = parent.Process.Kill()
	<-exited
	if _, err := io.ReadAll(out); err != nil { // EOF comes when no process has the other end open
		t.Errorf("the child lives on: %v", err)
	}
}
