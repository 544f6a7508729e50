package quorum

import "testing"

// granted are members that are had, with these tokens; 0 is one that is not had.
func granted(tokens ...int64) (members []member) {
	for _, token := range tokens {
		m := member{token: token}
		if token != 0 {
			m.hold = struct{ Hold }{}
		}
		members = append(members, m)
	}
	return members
}

func TestATokenThatAMajorityHasStays(t *testing.T) {
	for _, row := range []struct {
		tokens []int64
		want   int64
	}{
		{[]int64{5, 7, 6}, 7},
		{[]int64{5, 5, 7}, 5},
		{[]int64{7, 5, 5}, 5},
		{[]int64{5, 7, 0}, 7},
		{[]int64{0, 5, 5}, 5},
		{[]int64{5, 5, 7, 7, 6}, 7}, // no majority has either
		{[]int64{9, 5, 5, 7, 5}, 5},
	} {
		if token, _ := choose(granted(row.tokens...), len(row.tokens)/2+1); token != row.want {
			t.Errorf("the token of %v is %d, want %d", row.tokens, token, row.want)
		}
	}
}
