import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { registerReceiveMetrics } from '../../src/federation/inbound/receive-metrics.js'
import { registerDeliveryMetrics } from '../../src/federation/outbound/delivery-metrics.js'
import { openMetrics } from '../../src/operations/metrics.js'
import { registerJobMetrics } from '../../workers/job-metrics.js'
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
