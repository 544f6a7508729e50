-- Reads what people are told of clients. Writes nothing.
-- KEYS[1...] hash what is told of each client
-- RETURNS the label of each, or '' for one that has none
local reply = {}
for i = 1, #KEYS do
  local label = redis.pcall('HGET', KEYS[i], 'label')
  reply[i] = type(label) == 'string' and label or ''
end
return reply
