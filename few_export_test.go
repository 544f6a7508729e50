package relock

// Numbers is a few of numbers, for tests.
type Numbers struct{ few few[int] }

func (n *Numbers) Add(x *int)         { n.few.add(x) }
func (n *Numbers) Index(x *int) int   { return n.few.index(x) }
func (n *Numbers) Remove(i int)       { n.few.remove(i) }
func (n *Numbers) Len() int           { return n.few.len() }
func (n *Numbers) FirstLast() [2]*int { return [2]*int{n.few.first, n.few.last()} }
func (n *Numbers) All() (all []*int) {
	for i, x := range n.few.all() {
		if n.few.at(i) != x {
			panic("at and all differ")
		}
		all = append(all, x)
	}
	return all
}

// Handle is the list of a handle's holds, for tests.
type Handle struct{ pile pile }

func (p *Handle) Add(h *Hold)         { p.pile.add(h) }
func (p *Handle) Remove(h *Hold) bool { return p.pile.remove(h) }
func (p *Handle) NewestOldest() [2]*Hold {
	return [2]*Hold{p.pile.newest, p.pile.last()}
}

func (p *Handle) All() (all []*Hold) {
	for h := range p.pile.all() {
		all = append(all, h)
	}
	return all
}
