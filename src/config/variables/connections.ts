import { number, setting, text } from '../schemas.js'

export const CONNECTION_VARIABLES = {
  PORT: setting(
    { type: 'integer', minimum: 0, maximum: 65_535, default: 3000, description: 'a port number from 0 to 65535' },
    'The port on which the web process listens',
  ),
  HOST: setting(
    { type: 'string', minLength: 1, default: '127.0.0.1', description: 'an address or a socket path' },
    'The address on which the web process listens, or a socket path. Containers and hosting platforms need `0.0.0.0`',
  ),
  TRUST_PROXY: setting(
    text('loopback, true, false, or addresses and networks', 'loopback'),
    "Which proxies' `X-Forwarded-*` headers are trusted: `loopback`, an address or network, `true`, `false`",
  ),
  // The process has 30 seconds to end in all.
  SHUTDOWN_DELAY: setting(
    number(0, 15, 0, 'seconds'),
    'Seconds for which a stopping web process still serves requests while `/health/ready` answers 503, so that the load balancer removes it first; at most 15',
  ),
  ADMIN_LISTEN: setting(
    text('host:port, a port or a socket path'),
    'Where metrics and health are served: `host:port`, a port or a socket path. Empty: not served. Under `npm start` the worker uses the next port',
    { whenNotSet: '9394 (web), 9395 (worker) on 127.0.0.1, or the next free port', example: '127.0.0.1:9394' },
  ),
  ALLOW_PRIVATE_ADDRESSES: setting(
    text('true, false or a list of host:port'),
    'Private addresses this pod may contact over plain http: `host:port,…`, or `true` for all. Only for tests and trials',
    { example: '127.0.0.1:4000' },
  ),
} as const
