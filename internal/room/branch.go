package room

// BranchMark stands between the name of an owner and what WithChildOwner adds to it.
const BranchMark = "~."

// Descends reports whether an owner is a branch, at any depth, of another one.
func Descends(owner, ancestor string) bool {
	n := len(ancestor)
	return n > 0 && len(owner) > n+len(BranchMark) && owner[:n] == ancestor && owner[n:n+len(BranchMark)] == BranchMark
}

// Lineage returns the owner and its ancestors, nearest first.
func Lineage(owner string) []string {
	names := []string{owner}
	for at := len(owner) - len(BranchMark); at > 0; at-- {
		if owner[at:at+len(BranchMark)] == BranchMark {
			names = append(names, owner[:at])
		}
	}
	return names
}

// Root returns the owner from which a branch descends, or the owner itself if it is no branch.
func Root(owner string) string {
	for at := 1; at < len(owner)-len(BranchMark); at++ {
		if owner[at:at+len(BranchMark)] == BranchMark {
			return owner[:at]
		}
	}
	return owner
}
