import { generateKeyPairSync } from 'node:crypto'
import { Registry } from 'prom-client'
import { afterAll, expect, it } from 'vitest'
import { registerCryptoMetrics } from '../../workers/threads/crypto-metrics.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'

const pool = openCryptoPool(1)
afterAll(() => pool.close())

it('the metrics show running and waiting tasks of the crypto threads, and how long tasks took', async () => {
  const registry = new Registry()
  registerCryptoMetrics(registry, pool)
  registry.resetMetrics() // other files of the process have measured, too
  const tasks = Promise.all([pool.generateKeyPair(), pool.generateKeyPair(), pool.generateKeyPair()])

  const busy = await registry.metrics()
  await tasks
  const idle = await registry.metrics()

  expect(busy).toContain('pod_crypto_threads 1')
  const states = ['running', 'waiting'].map(
    (state) => new RegExp(`^pod_crypto_tasks\\{state="${state}"\\} (\\d)$`, 'm'),
  )
  const [running, waiting] = states.map((pattern) => Number(pattern.exec(busy)?.[1]))
  expect((running ?? 0) + (waiting ?? 0)).toBe(3)
  expect(waiting).toBeGreaterThanOrEqual(2)
  for (const pattern of states) expect(pattern.exec(idle)?.[1]).toBe('0')
  expect(idle).toContain('pod_crypto_seconds_count{task="generateKeyPair"} 3')
  expect(idle).toContain('pod_crypto_wait_seconds_count 3')
}, 180_000)

it('the metrics keep the labels that dashboards use for tasks with another name in the code', async () => {
  const registry = new Registry()
  registerCryptoMetrics(registry, pool)
  registry.resetMetrics()
  const recipientKey = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
  await pool.decryptEnvelopes([{ encrypted: 'rubbish', recipientKey }])
  await pool.verifyEnvelopes(
    ['rubbish', 'rubbish'].map((envelope) => ({ envelope, receivedAt: new Date() })),
    new Map(),
  )

  const metrics = await registry.metrics()
  for (const task of ['openEncryptedEnvelopes', 'openEnvelopes'])
    expect(metrics).toContain(`pod_crypto_seconds_count{task="${task}"} 1`)
})
