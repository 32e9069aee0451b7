import { choice, httpAddress, number, setting } from '../schemas.js'
import { TRACING_VARIABLES } from './tracing.js'

export const LOG_VARIABLES = {
  ...TRACING_VARIABLES,
  METRICS_PEERS: setting(
    number(0, 1_000, 50),
    'Number of remote pods that get their own metric series (`pod_peer_…`): those with the most waiting deliveries, failures and received messages. All others share the series `other`',
  ),
  UPDATE_CHECK_URL: setting(
    httpAddress,
    'URL of a JSON document with the newest version (`{"version": "1.2.3"}`). A worker reads it once a day; the request contains no data about the pod. The console, `pod doctor` and the metric `pod_update_available` report a newer version',
    { example: 'https://releases.example/pod.json' },
  ),
  LOG_LEVEL: setting(
    {
      type: 'string',
      enum: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      default: 'info',
      description: 'one of trace, debug, info, warn, error, fatal, silent',
    },
    'The lowest level of log lines: `trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`',
  ),
  LOG_FORMAT: setting(
    choice(['json', 'pretty', 'auto'], 'auto'),
    '`json`, `pretty`, or `auto`: `pretty` on a terminal, else `json`',
  ),
} as const
