-- What most scripts read first. Those with a usual case of their own, and awaiting, read by themselves.
local fields = redis.pcall('HMGET', KEYS[1], 'holder', 'crowd', 'token', 'kind')
local clock = redis.call('TIME')
