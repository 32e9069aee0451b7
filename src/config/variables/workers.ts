import { optionalNumber, setting, text } from '../schemas.js'

export const WORKER_VARIABLES = {
  WORKER_QUEUES: setting(
    text('names of queues, separated by commas', ''),
    'The queues that this worker process serves',
    { whenNotSet: 'all', example: 'inbound,inbound-private' },
  ),
  WORKER_CONCURRENCY: setting(
    text('a list like inbound=8,fetch=16', ''),
    'Maximum concurrent jobs per queue, like `fetch=32,outbound=128`',
    { whenNotSet: 'by queue', example: 'fetch=32,outbound=128' },
  ),
  CRYPTO_THREADS: setting(optionalNumber(1, 256, 'threads'), 'Threads for private-key work per process', {
    whenNotSet: 'number of cores',
    example: '2',
  }),
} as const
