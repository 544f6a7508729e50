package relock

import (
	"crypto/rand"
	"encoding/base64"
	"strconv"
)

// This file is what Redis knows a session by: its nonce and its owner.

// A nonce is 128 random bits.
type nonce [16]byte

// nonceLen is the length of a nonce or client ID in Redis: in base64.
const nonceLen = 22

func newNonce() (n nonce) {
	_, _ = rand.Read(n[:]) // never fails, says its documentation
	return n
}

func (n nonce) String() string {
	var text [nonceLen]byte
	base64.RawURLEncoding.Encode(text[:], n[:])
	return string(text[:])
}

// asNonce takes what String has made; of anything else it is not ok.
func asNonce(text string) (n nonce, ok bool) {
	if len(text) != nonceLen {
		return n, false
	}
	_, err := base64.RawURLEncoding.Strict().Decode(n[:], []byte(text))
	return n, err == nil
}

// madeMark begins the owners' names that are made here, and no other: nobody may enter
// an anonymous hold, which is passed on as if nobody had.
const madeMark = '~'

// owner returns the name given, or the one made for the session: in text only where
// somebody asks, as most of very many held locks are nobody's in particular.
func (s *session) owner() string {
	if s.named {
		return s.name
	}
	return string(s.appendOwner(make([]byte, 0, 64)))
}

func (s *session) appendOwner(text []byte) []byte {
	if s.named {
		return append(text, s.name...)
	}
	text = append(append(append(text, madeMark), s.room.c.name...), ':')
	return strconv.AppendInt(text, s.own, 10)
}
