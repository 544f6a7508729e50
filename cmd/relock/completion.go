//go:build unix

package main

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// Each shell's script asks relock for completions. So it always knows the verbs and flags of the installed
// relock, and the locks that are in use.
var (
	//go:embed completion/relock.bash
	bashScript string
	//go:embed completion/relock.zsh
	zshScript string
	//go:embed completion/relock.fish
	fishScript string
)

var scripts = map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}

// shells are the supported shells, in the order of the help.
var shells = []string{"bash", "zsh", "fish"}

const completionAbout = `Completes verbs, flags, files, commands and the names of locks in use. For names, relock
asks the Redis of the typed line for at most a second; the user needs +scan.

  bash: in .bashrc, eval "$(relock completion bash)"
  zsh: in .zshrc, after compinit, eval "$(relock completion zsh)"
  fish: in config.fish, relock completion fish | source
`

func (t *tool) completion(*flags) action {
	return func(_ context.Context, words, more []string) int {
		if words = append(words, more...); len(words) != 1 || !slices.Contains(shells, words[0]) {
			return t.fail(usageError{fmt.Errorf("want one of %s, not %q", strings.Join(shells, ", "), words)})
		}
		t.say("%s", scripts[words[0]])
		return 0
	}
}
