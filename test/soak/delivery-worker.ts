import { connect } from 'node:net'
import { pino } from 'pino'
import { readConfig } from '../../src/config/config.js'
import { deliver } from '../../src/federation/outbound/deliver.js'
import type { DeliveryQueue } from '../../src/federation/outbound/delivery-metrics.js'
import { openRemotePodClient } from '../../src/federation/remote-pod/client.js'
import { openServices } from '../../src/services/open-services.js'
import { maintenanceHandlers } from '../../workers/handlers/maintenance.js'
import type { Handler } from '../../workers/run-job.js'
import { startWorkers } from '../../workers/start-workers.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import { type DeliveryInstructions, REFUSING_PORT } from './delivery-instructions.js'

const CLOSED_PORT = 1
const REPORT_INTERVAL_MS = 250

const { environment, othersPort, threads, limits }: DeliveryInstructions = JSON.parse(process.argv[2] ?? '{}')
const log = pino({ level: 'warn' }, { write: (line) => void process.send?.({ logLine: JSON.parse(line) }) })
let isBack = false
process.on('SIGUSR2', () => {
  isBack = true
})
const remotePods = openRemotePodClient({
  allowPrivate: 'all',
  userAgent: 'test/1.0',
  log,
  resolve: async () => ['127.0.0.1'],
  dial: ({ port }) => connect(port === REFUSING_PORT && !isBack ? CLOSED_PORT : othersPort, '127.0.0.1'),
})
const crypto = threads ? openCryptoPool(1) : fixedKeyCrypto()
const pod = { ...(await openServices(readConfig(environment), 'worker', { crypto, log })), remotePods }
const handlersOf = (queue: DeliveryQueue): { readonly deliver: Handler } => ({
  deliver: (own, { data }: { readonly data: { readonly podIds: readonly number[] } }, signal) =>
    deliver(own, data.podIds, { queue, signal, limits }),
})
startWorkers(pod, {
  handlers: {
    outbound: handlersOf('outbound'),
    'outbound-slow': handlersOf('outbound-slow'),
    maintenance: maintenanceHandlers,
  },
  queues: ['outbound', 'outbound-slow', 'maintenance'],
  timing: { lockMs: 2_000, stalledCheckMs: 500, backoff: () => 500 },
})
process.send?.({ ready: true })
setInterval(() => process.send?.({ megabytes: process.memoryUsage().rss / 2 ** 20 }), REPORT_INTERVAL_MS)
