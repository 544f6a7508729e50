package redistest

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
)

// prelude returns the text that is put before every script, in its first line. It shadows the table redis,
// which a script cannot change.
func (h Hosting) prelude() string {
	var refused strings.Builder
	for _, name := range h.Refuses {
		fmt.Fprintf(&refused, "[%q] = %q, ", name, h.refusal(name))
	}
	return strings.Join(strings.Fields(fmt.Sprintf(shadow, refused.String(), h.SlotPublish, h.Uncounted)), " ") + " "
}

// shadow is joined to one line, so that errors keep the line numbers of the script. So it has no comments:
// deny returns the error of a refused command, and slot is the hash slot of a key (the CRC16 of its tag).
const shadow = `
local redis = (function(real)
  local refused, slotted, uncounted = { %s }, %t, %t
  local function slot(key)
    local tag = string.match(key, '{([^}]+)}') or key
    local crc = 0
    for i = 1, #tag do
      crc = bit.bxor(crc, bit.lshift(string.byte(tag, i), 8))
      for _ = 1, 8 do
        crc = bit.lshift(crc, 1)
        if crc >= 65536 then crc = bit.bxor(crc - 65536, 4129) end
      end
    end
    return crc %% 16384
  end
  local function deny(name, sub)
    name = string.lower(name)
    local message = refused[name] or sub and refused[name .. '|' .. string.lower(sub)]
    if not message and slotted and (name == 'publish' or name == 'spublish') then
      if not KEYS[1] or slot(KEYS[1]) ~= slot(sub) then
        message = 'ERR Script attempted to access keys that do not hash to the same slot'
      end
    end
    return message and real.error_reply(message)
  end
  local function replaced(name, sub, channel)
    if uncounted and string.lower(name) == 'pubsub' and string.find(string.lower(sub), 'numsub$') then
      return { channel, 0 }
    end
    return deny(name, sub)
  end
  local mine = {}
  function mine.pcall(...) return replaced(...) or real.pcall(...) end
  function mine.call(...)
    local reply = replaced(...)
    if reply and reply.err then error(reply) end
    return reply or real.call(...)
  end
  return setmetatable(mine, { __index = real })
end)(redis)
`

func sha1Of(source string) string {
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}
