-- Stores the label of a client, which tells people which client it is. No decision depends on it.
-- KEYS[1] hash the label of the client
-- ARGV[1] label text for people
-- ARGV[2] life ms that it is kept: as long as the client may hold or wait by its requests so far
-- RETURNS 1
-- If the key has another type, or the user may not run a command, the script fails in one of the next two lines, before
-- HSET writes a hash that has no expiry.
redis.call('HDEL', KEYS[1], 'label')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[1], 'label', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
