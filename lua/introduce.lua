-- Stores the label of a client, which tells people which client it is. No decision depends on it.
-- KEYS[1] hash the label of the client
-- ARGV[1] label text for people
-- ARGV[2] life ms that it is kept: as long as the client may hold or wait by its requests so far
-- RETURNS 1
-- For a key of another type, or a missing permission, the next two lines fail before HSET writes what would not expire.
redis.call('HDEL', KEYS[1], 'label')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[1], 'label', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
