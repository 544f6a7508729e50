package browser_test

import (
	"context"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
)

// A node is one of the tree that assistive technology sees: what the tests look at of it.
type node struct {
	Ignored bool `json:"ignored"`
	Role    said `json:"role"`
	Name    said `json:"name"`
}

type said struct {
	Value any `json:"value"`
}

func (s said) text() string {
	text, _ := s.Value.(string) // what is no text has none
	return text
}

// accessible reads that tree. The types of cdproto do not know all that a later Chromium says.
func accessible(nodes *[]node) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		var tree struct {
			Nodes []node `json:"nodes"`
		}
		err := cdp.Execute(ctx, accessibility.CommandGetFullAXTree, nil, &tree)
		*nodes = tree.Nodes
		return err
	}
}
