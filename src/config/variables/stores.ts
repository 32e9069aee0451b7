import { optionalNumber, setting, text } from '../schemas.js'

export const STORE_VARIABLES = {
  DATABASE_URL: setting(
    text('a postgres:// address'),
    'PostgreSQL 14 or newer, with the extension `pg_trgm` available',
    { whenNotSet: 'the embedded PostgreSQL', example: 'postgres://pod:secret@db.example/pod' },
  ),
  DATABASE_READ_URL: setting(
    text('a postgres:// address'),
    'A streaming replica from which lists are read. Users always see their own writes',
    { whenNotSet: 'the primary', example: 'postgres://pod:secret@replica.example/pod' },
  ),
  DATABASE_POOL: setting(optionalNumber(2, 1000, 'connections'), 'Database connections per process', {
    whenNotSet: '10 (web), 20 (worker)',
    example: '20',
  }),
  REDIS_URL: setting(
    text('a redis:// address'),
    '`redis://`, `rediss://` or `unix://`; `redis+cluster://host:port,…`; `redis+sentinel://host:port,…/master`',
    { whenNotSet: 'none: the queue is in PostgreSQL', example: 'redis://127.0.0.1:6379' },
  ),
  REDIS_REPLICAS: setting(
    optionalNumber(0, 8, 'replicas'),
    'Number of Redis replicas that must store a message before it is accepted',
    { whenNotSet: '1 with Sentinels, else 0', example: '1' },
  ),
} as const
