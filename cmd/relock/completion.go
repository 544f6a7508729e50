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

const completionAbout = `Verbs, flags, files and commands are completed, and the names of locks in use, for which
Redis is asked as the line says, for a second at most; the user needs +scan for it.

  bash: in .bashrc, eval "$(relock completion bash)"
  zsh: in .zshrc, behind compinit, eval "$(relock completion zsh)"
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
