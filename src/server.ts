import { setTimeout as pause } from 'node:timers/promises'
import { registerCryptoMetrics, threadLoad } from '../workers/threads/crypto-metrics.js'
import { openCryptoPool } from '../workers/threads/crypto-pool.js'
import type { Config } from './config/config.js'
import { storeAddress } from './config/stored-address.js'
import { startFilterLoader } from './domain/moderation/filters/active-filters.js'
import { startClosedNetworkLoader } from './domain/moderation/sign-ups/closed-networks.js'
import { startHeartbeat } from './jobs/operations/heartbeat.js'
import { persistCounters } from './jobs/operations/persisted-counters.js'
import { openMetrics } from './operations/metrics.js'
import { ADMIN_PORTS, buildOperatorApp } from './operations/operator-server.js'
import { registerStorageMetrics } from './operations/storage-metrics.js'
import { checkPicturesAtStart } from './persistence/photos/check-pictures.js'
import { openServices } from './services/open-services.js'
import { type RunningProcess, runProcess } from './services/run-process.js'
import { buildApp } from './web/server/app.js'
import { closeApp } from './web/server/closing/close-app.js'
import { drainConnections } from './web/server/closing/drain-connections.js'
import { HTTP_LIMITS } from './web/server/limits.js'
import { listen, listenForOperator } from './web/server/listen.js'

await runProcess('web', startWeb)

/** Opens all parts in the order of their dependencies. Returns a function that closes them in reverse order. */
async function startWeb(config: Config, { log }: RunningProcess): Promise<() => Promise<void>> {
  const unavailable = await checkPicturesAtStart(config)
  if (unavailable !== undefined) log.warn({ err: unavailable }, 'S3 store not available, uploads and pictures fail')
  const crypto = openCryptoPool(config.cryptoThreads) // its threads start with the first key
  const services = await openServices(config, 'web', { crypto, log })
  const metrics = openMetrics(services)
  registerCryptoMetrics(metrics.registry, crypto)
  registerStorageMetrics(metrics.registry, services.pictures)
  const app = await buildApp(services, { metrics })
  const counters = persistCounters(services, metrics.registry)
  const heartbeat = startHeartbeat(services, {
    kind: 'web',
    podClock: () => services.remotePods.readClock?.(),
    threads: () => threadLoad(crypto),
  })
  const filters = startFilterLoader(services)
  const networks = startClosedNetworkLoader(services)
  const operator = await buildOperatorApp({ log: services.log, metrics, readiness: app.readiness })

  const address = await listen(
    app,
    config.listen,
    'Set PORT or HOST to another address, or stop the process that uses it.',
  )
  const admin = await listenForOperator(operator, config.adminListen, ADMIN_PORTS.web)
  await storeAddress(config.dataDir, config.url)
  services.log.info({ address, admin, pod: config.url }, 'web process started')
  process.send?.({ ready: true, address, admin })

  return async () => {
    app.announceClosing()
    await pause(config.shutdownDelayMs)
    services.log.info('web process stopping: finishing running requests')
    // Behind a load balancer, idle connections are drained first, so that no request is lost. Without one, they are closed at once.
    if (config.shutdownDelayMs > 0) await drainConnections(app.server, HTTP_LIMITS.drainMs, app.live.endStreams)
    await closeApp(app, HTTP_LIMITS.closeTimeoutMs)
    await closeApp(operator, 0)
    await counters.close()
    filters.close()
    networks.close()
    await heartbeat.close()
    await services.close()
    await crypto.close()
  }
}
