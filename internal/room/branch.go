package room

import "strings"

// BranchMark stands between the name of an owner and what WithChildOwner adds to it.
const BranchMark = "~."

// Descends reports whether an owner is a branch, at any depth, of another one.
func Descends(owner, ancestor string) bool {
	return ancestor != "" && strings.HasPrefix(owner, ancestor+BranchMark)
}

// Lineage returns the owner and its ancestors, nearest first.
func Lineage(owner string) []string {
	names := []string{owner}
	for at := strings.LastIndex(owner, BranchMark); at > 0; at = strings.LastIndex(owner[:at], BranchMark) {
		names = append(names, owner[:at])
	}
	return names
}

// Root returns the owner from which a branch descends, or the owner itself if it is no branch.
func Root(owner string) string {
	root, _, _ := strings.Cut(owner, BranchMark)
	return root
}
