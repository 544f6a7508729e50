package room

// A share counts the holds of a session that have the same terms, so that a statement need not look at each of them: a
// named owner may have thousands. A session whose count cannot change has one hold at most, and no shares.
type share struct {
	terms   *Terms
	holds   int
	ordered lone[Hold] // the holds, oldest first, if they end by themselves
}
