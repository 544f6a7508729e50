-- What most scripts read first. Scripts with a short way for the usual case do without this part.
local fields = redis.pcall('HMGET', KEYS[1], 'holder', 'crowd', 'token', 'kind')
local clock = redis.call('TIME')
