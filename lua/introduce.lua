-- Stores what people are told of a client, for as long as it may hold or wait by what it
-- has said until now. Nothing is decided by it.
-- KEYS[1] hash what is told of the client
-- ARGV[1] label who it is, for people
-- ARGV[2] life ms that it is kept
-- RETURNS 1
-- A key of another type, or a command that the user may not run, ends it here, before
-- anything is written without an end.
redis.call('HDEL', KEYS[1], 'label')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[1], 'label', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
