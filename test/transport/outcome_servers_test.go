package transport_test

import (
	"fmt"
	"testing"

	"github.com/relock-go/relock/internal/transport"
)

// serversSay has each text as the server has it that is named: the strings in the
// programs redis-server 6.2.5, 7.0.15 and 8.2.3 and valkey-server 9.0.0, which has
// its own name in some, and of Envoy's proxy. Only their first words count, so that
// other words behind them change nothing; what a command in a script of 6.2 was
// answered with is wrapped.
var serversSay = []struct {
	from, text string
	want       transport.Outcome
}{
	// It did not run, and may soon.
	{"all, while they start", "LOADING Redis is loading the dataset in memory", transport.NotExecuted},
	{"valkey 9", "LOADING Valkey is loading the dataset in memory", transport.NotExecuted},
	{"a replica without its primary", "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", transport.NotExecuted},
	{"the same, 7.0", "MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and 'allow-stale' flag is not set on the script.", transport.NotExecuted},
	{"a cluster", "CLUSTERDOWN The cluster is down", transport.NotExecuted},
	{"a cluster", "CLUSTERDOWN The cluster is down and only accepts read commands", transport.NotExecuted},
	{"a cluster", "CLUSTERDOWN Hash slot not served", transport.NotExecuted},
	{"a slot that migrates", "TRYAGAIN Multiple keys request during rehashing of slot", transport.NotExecuted},
	{"a replica", "READONLY You can't write against a read only replica.", transport.NotExecuted},
	{"the same, in a script of 7.0", "READONLY You can't write against a read only replica. script: 6b1b, on @user_script:1.", transport.NotExecuted},
	{"the same, in a script of 6.2", "ERR Error running script (call to f_6b1b): @user_script:1: -READONLY You can't write against a read only replica.", transport.NotExecuted},
	{"7.0", "READONLY Can not run script with write flag on readonly replica", transport.NotExecuted},
	{"min-replicas-to-write", "NOREPLICAS Not enough good replicas to write.", transport.NotExecuted},
	{"the same, in a script of 6.2", "ERR Error running script (call to f_6b1b): @user_script:1: @user_script: 1: -NOREPLICAS Not enough good replicas to write.", transport.NotExecuted},
	{"a full disk, 7.0", "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error. script: 6b1b, on @user_script:1.", transport.NotExecuted},
	{"a full disk, valkey 9", "MISCONF Valkey is configured to save RDB snapshots, but it's currently unable to persist to disk. Writable scripts are blocked. Use 'no-writes' flag for read only scripts.", transport.NotExecuted},
	{"a full disk, 6.2", "MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option).", transport.NotExecuted},
	{"a full disk, AOF", "MISCONF Errors writing to the AOF file: No space left on device", transport.NotExecuted},
	{"a long script, 7.0", "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", transport.NotExecuted},
	{"a long script, valkey 9", "BUSY Valkey is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.", transport.NotExecuted},
	{"a module", "BUSY Redis is busy running a module command.", transport.NotExecuted},
	{"a new server", "NOSCRIPT No matching script. Please use EVAL.", transport.NotExecuted},
	{"a new server, valkey 9", "NOSCRIPT No matching script.", transport.NotExecuted},
	{"maxclients", "ERR max number of clients reached", transport.NotExecuted},
	{"maxclients of a cluster", "ERR max number of clients + cluster connections reached", transport.NotExecuted},
	{"Envoy, without a healthy server", "no upstream host", transport.NotExecuted},

	// It ran, or may have.
	{"a primary that is demoted under WAIT", "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)", transport.Unknown},
	{"an operator", "UNBLOCKED client unblocked via CLIENT UNBLOCK", transport.Unknown},
	{"Envoy, whose server does not answer", "upstream failure", transport.Unknown},
	{"Envoy, whose server says nonsense", "upstream protocol error", transport.Unknown},

	// Asking again is in vain.
	{"maxmemory", "OOM command not allowed when used memory > 'maxmemory'.", transport.Refused},
	{"the same, in a script of 6.2", "ERR Error running script (call to f_6b1b): @user_script:1: -OOM command not allowed when used memory > 'maxmemory'.", transport.Refused},
	{"no password", "NOAUTH Authentication required.", transport.Refused},
	{"a wrong one", "WRONGPASS invalid username-password pair or user is disabled.", transport.Refused},
	{"protected mode", "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user.", transport.Refused},
	{"ACL, 7.0", "NOPERM this user has no permissions to run the 'evalsha' command", transport.Refused},
	{"ACL, 7.2", "NOPERM User app has no permissions to run the 'evalsha' command", transport.Refused},
	{"ACL in a script, 7.0", "ERR The user executing the script can't run this command or subcommand script: 6b1b, on @user_script:1.", transport.Refused},
	{"ACL in a script, 7.2", "ERR ACL failure in script: User app has no permissions to run the 'hdel' command script: 6b1b, on @user_script:1.", transport.Refused},
	{"a renamed command", "ERR unknown command 'evalsha', with args beginning with: 'abc' '1' ", transport.Refused},
	{"a renamed command in a script, 7.0", "ERR Unknown Redis command called from script script: 6b1b, on @user_script:1.", transport.Refused},
	{"a string in place of the hash", "WRONGTYPE Operation against a key holding the wrong kind of value", transport.Refused},
	{"keys of two slots", "CROSSSLOT Keys in request don't hash to the same slot", transport.Refused},
	{"a transaction", "EXECABORT Transaction discarded because of previous errors.", transport.Refused},
	{"a defect of a script", "ERR user_script:1: Script attempted to access nonexistent global variable 'x' script: 6b1b, on @user_script:1.", transport.Refused},
	{"a stream", "BUSYGROUP Consumer Group name already exists", transport.Refused},
	{"Envoy, of a command that it does not know", "ERR unknown command 'evalsha', with args beginning with: abc", transport.Refused},
}

func TestClassifyWhatServersSay(t *testing.T) {
	for _, row := range serversSay {
		if got := transport.Classify(fmt.Errorf("script x: %w", answer(row.text))); got != row.want {
			t.Errorf("%s: %q is %v, want %v", row.from, row.text, got, row.want)
		}
	}
}
