import { connect } from 'node:net'
import { pino } from 'pino'
import { readConfig } from '../../src/config/config.js'
import { openRemotePodClient } from '../../src/federation/remote-pod/client.js'
import { openServices } from '../../src/services/open-services.js'
import { openFetchHandlers } from '../../workers/handlers/fetch.js'
import { maintenanceHandlers } from '../../workers/handlers/maintenance.js'
import { openUnverifiedFetchHandlers } from '../../workers/handlers/unverified-fetch.js'
import { startWorkers } from '../../workers/start-workers.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import type { WorkerInstructions } from './killed-workers.js'

const CLOSED_PORT = 1

const { environment, othersPort, threads }: WorkerInstructions = JSON.parse(process.argv[2] ?? '{}')
const log = pino({ level: 'warn' }, { write: (line) => void process.send?.({ logLine: JSON.parse(line) }) })
const crypto = threads ? openCryptoPool(1) : fixedKeyCrypto()
const remotePods = openRemotePodClient({
  allowPrivate: 'all',
  userAgent: 'test/1.0',
  log,
  resolve: async () => ['127.0.0.1'],
  dial: ({ port }) => connect(port === 443 ? CLOSED_PORT : othersPort, '127.0.0.1'),
})
const pod = { ...(await openServices(readConfig(environment), 'worker', { crypto, log })), remotePods }
startWorkers(pod, {
  handlers: {
    fetch: openFetchHandlers(),
    'fetch-unproven': openUnverifiedFetchHandlers(),
    maintenance: maintenanceHandlers,
  },
  queues: ['inbound', 'inbound-private', 'fetch', 'fetch-unproven', 'maintenance'],
  timing: { lockMs: 2_000, stalledCheckMs: 500, backoff: () => 500 },
})
process.send?.({ ready: true })
