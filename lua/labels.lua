-- Reads the labels of clients. Writes nothing.
-- KEYS[1...] hash the label of each client
-- RETURNS the label of each client, or '' if it has none
local reply = {}
for i = 1, #KEYS do
  local label = redis.pcall('HGET', KEYS[i], 'label')
  reply[i] = type(label) == 'string' and label or ''
end
return reply
