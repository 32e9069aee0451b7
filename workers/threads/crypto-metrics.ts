import { Gauge, Histogram, type Registry } from 'prom-client'

export interface CryptoLoad {
  /** Maximum number of threads. */
  readonly threads: number
  readonly running: number
  /** Tasks that wait for a free thread. */
  readonly waiting: number
}

const taskSeconds = new Histogram({
  name: 'pod_crypto_seconds',
  help: 'How long tasks of the crypto threads took, waiting for a free thread included.',
  labelNames: ['task'],
  buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  registers: [],
})

const waitSeconds = new Histogram({
  name: 'pod_crypto_wait_seconds',
  help: 'How long tasks of the crypto threads waited for a free thread.',
  buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  registers: [],
})

/** The values of the label `task` are fixed: dashboards and alerts of operators use them. */
const TASK_LABELS: Readonly<Record<string, string>> = {
  verifyEnvelopes: 'openEnvelopes',
  decryptEnvelopes: 'openEncryptedEnvelopes',
}

export function recordCryptoTask(task: string, ms: number): void {
  taskSeconds.observe({ task: TASK_LABELS[task] ?? task }, ms / 1_000)
}

/** Records how long a task waited for a thread, since the time at which it was added. */
export function recordCryptoWait(addedAt: number): void {
  waitSeconds.observe((performance.now() - addedAt) / 1_000)
}

/** The load of the threads, as heartbeats report it. */
export function threadLoad(pool: { load(): CryptoLoad }): {
  readonly busy: number
  readonly max: number
  readonly waiting: number
} {
  const { running, threads, waiting } = pool.load()
  return { busy: running, max: threads, waiting }
}

export function registerCryptoMetrics(registry: Registry, pool: { load(): CryptoLoad }): void {
  registry.registerMetric(taskSeconds)
  registry.registerMetric(waitSeconds)
  new Gauge({
    name: 'pod_crypto_tasks',
    help: 'Tasks of the crypto threads of this process: running, and waiting for a free thread.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { running, waiting } = pool.load()
      this.set({ state: 'running' }, running)
      this.set({ state: 'waiting' }, waiting)
    },
  })
  new Gauge({
    name: 'pod_crypto_threads',
    help: 'Crypto threads that this process may have. Running tasks divided by threads is the utilisation.',
    registers: [registry],
    collect() {
      this.set(pool.load().threads)
    },
  })
}
