package ending

import "strings"

type joined []error

// Join is errors.Join, but its text is one line and leaves out errors whose text is contained in another's. A function
// that fails because the lock was lost often returns that loss as its own error.
func Join(errs ...error) error {
	var all joined
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	if len(all) > 1 {
		return all
	}
	return append(all, nil)[0]
}

func (j joined) Unwrap() []error { return j }

func (j joined) Error() (text string) {
	for _, err := range j {
		switch says := err.Error(); {
		case strings.Contains(says, text):
			text = says
		case !strings.Contains(text, says):
			text += "; " + says
		}
	}
	return text
}
