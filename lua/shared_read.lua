-- What a script reads first, unless it has a usual case of its own.
local fields = redis.pcall('HMGET', KEYS[1], 'holder', 'crowd', 'token', 'kind')
local clock = redis.call('TIME')
