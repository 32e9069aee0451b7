import { readFileSync } from 'node:fs'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { registerReceiveMetrics } from '../../src/federation/inbound/receive-metrics.js'
import { registerDeliveryMetrics } from '../../src/federation/outbound/delivery-metrics.js'
import { openMetrics } from '../../src/operations/metrics.js'
import { openSharedMetrics } from '../../src/operations/shared-metrics.js'
import { registerJobMetrics } from '../../workers/job-metrics.js'
import { statementsDuring } from '../support/assertions/statement-count.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

let pod: TestPod
let scraped: ReadonlySet<string>
beforeAll(async () => {
  let metrics: ReturnType<typeof openMetrics> | undefined
  pod = await buildPod({
    metrics: {
      watch(app) {
        metrics = openMetrics(app.pod)
        metrics.watch(app)
      },
    },
  })
  if (metrics === undefined) throw new Error('The web process did not open its metrics.')
  registerReceiveMetrics(metrics.registry)
  registerDeliveryMetrics(metrics.registry)
  registerJobMetrics(metrics.registry)
  scraped = new Set(Array.from((await metrics.text()).matchAll(/^# TYPE (\S+)/gm), ([, name = '']) => name))
}, 60_000)
afterAll(() => pod.close())

function read(path: string): string {
  return readFileSync(new URL(`../../deploy/${path}`, import.meta.url), 'utf8')
}

function unknownMetricsIn(text: string): readonly string[] {
  const names = Array.from(text.matchAll(/\bpod_[a-z_]+/g), ([name]) => name.replace(/_bucket$/, ''))
  expect(names.length).toBeGreaterThan(5)
  return [...new Set(names)].filter((name) => !scraped.has(name))
}

it('every metric of the alert rules is exported', () => {
  const rules = read('prometheus/rules.yml')
  const count = (pattern: RegExp) => rules.match(pattern)?.length

  expect(unknownMetricsIn(rules)).toEqual([])
  expect(count(/^ {8}expr: /gm)).toBe(count(/^ {6}- alert: /gm))
  expect(count(/summary: /g)).toBe(count(/^ {6}- alert: /gm))
})

it('every metric of the dashboard is exported', () => {
  const dashboard: { readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[] } =
    JSON.parse(read('grafana/pod.json'))
  const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))

  expect(unknownMetricsIn(expressions.join('\n'))).toEqual([])
})

it('series of other pods are those of fifty pods and the sum of all others, for 5 000 pods (case 74)', async () => {
  const { db, log, config } = pod.pod
  await db.raw(
    `insert into pods (host, failures) select 'p' || number || '.example', number from generate_series(1, 5000) as number`,
  )
  const registry = new Registry()
  const write = openSharedMetrics(registry, { db, log, config })
  const values = async () => {
    await write()
    const text = await registry.metrics()
    return Array.from(text.matchAll(/^pod_peer_failures\{peer="([^"]+)"\} (\d+)/gm), ([, peer, value]) => [
      peer,
      Number(value),
    ])
  }

  const found = Object.fromEntries(await values())
  expect(Object.keys(found)).toHaveLength(51)
  expect(found).toMatchObject({ 'p5000.example': 5_000, 'p4951.example': 4_951, other: (4_950 * 4_951) / 2 })
  expect(await statementsDuring(values)).toBe(0)
})

it('dead letters, cases and paused queues are counted', async () => {
  const { db, log, config } = pod.pod
  await db('outbox').insert({ queue: 'fetch', name: 'fetch-entity', failedAt: new Date(), data: '{"fault":"gone"}' })
  await db('queue_controls')
    .insert({ queue: 'relay', state: 'paused', actor: 'adm', reason: 'A test' })
    .onConflict('queue')
    .merge()
  const registry = new Registry()
  await openSharedMetrics(registry, { db, log, config })()

  const text = await registry.metrics()
  for (const line of [
    'pod_dead_letters{queue="fetch",fault="gone"} 1',
    'pod_queue_paused{queue="relay"} 1',
    'pod_oldest_case_seconds 0',
  ])
    expect(text).toContain(line)
  expect(text).toMatch(/^pod_clock_offset_seconds -?0\.\d+/m)
  expect(text).toMatch(/^pod_table_bytes\{table="[a-z_]+"\} \d+/m)
})
