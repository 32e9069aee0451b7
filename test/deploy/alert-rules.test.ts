import { readFileSync } from 'node:fs'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { registerReceiveMetrics } from '../../src/federation/inbound/receive-metrics.js'
import { registerDeliveryMetrics } from '../../src/federation/outbound/delivery-metrics.js'
import { countReceived, savePodActivity } from '../../src/jobs/operations/pod-activity.js'
import { registerBackupMetrics } from '../../src/operations/backup-metrics.js'
import { registerMailMetric } from '../../src/operations/mail-metrics.js'
import { openMetrics } from '../../src/operations/metrics.js'
import { openSharedMetrics } from '../../src/operations/shared-metrics.js'
import { readSharedMetrics } from '../../src/persistence/operations/shared-metrics.js'
import { registerJobMetrics } from '../../workers/job-metrics.js'
import { registerCryptoMetrics } from '../../workers/threads/crypto-metrics.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { statementsDuring } from '../support/assertions/statement-count.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

let pod: TestPod
/** The labels of each exported metric. */
let labelsOf: ReadonlyMap<string, readonly string[]>
let text: string
beforeAll(async () => {
  let metrics: ReturnType<typeof openMetrics> | undefined
  pod = await buildPod({
    environment: { BACKUP_TO: '/nowhere', SMTP_URL: 'smtp://mail.example', MAIL_FROM: 'pod@pod.example' },
    metrics: {
      watch(app) {
        metrics = openMetrics(app.services)
        metrics.watch(app)
      },
    },
  })
  if (metrics === undefined) throw new Error('The web process did not open its metrics.')
  registerReceiveMetrics(metrics.registry)
  registerDeliveryMetrics(metrics.registry)
  registerJobMetrics(metrics.registry)
  registerCryptoMetrics(metrics.registry, crypto)
  registerBackupMetrics(metrics.registry, pod.pod)
  registerMailMetric(metrics.registry, pod.pod)
  text = await metrics.text()
  const exported = (await metrics.registry.getMetricsAsJSON()).map(({ name }) => name)
  labelsOf = new Map(exported.map((name) => [name, labelNamesOf(metrics?.registry.getSingleMetric(name))]))
}, 180_000)
afterAll(async () => {
  await pod.close()
  await crypto.close()
})

const crypto = openCryptoPool(1)

/** The library keeps them in a field that its types do not name. */
function labelNamesOf(metric: object | undefined): readonly string[] {
  return (metric as { labelNames?: readonly string[] } | undefined)?.labelNames ?? []
}

function read(path: string): string {
  return readFileSync(new URL(`../../deploy/${path}`, import.meta.url), 'utf8')
}

function unknownMetricsIn(text: string): readonly string[] {
  const names = Array.from(text.matchAll(/\bpod_[a-z_0-9]+/g), ([name]) => name.replace(/_bucket$/, ''))
  expect(names.length).toBeGreaterThan(5)
  return [...new Set(names)].filter((name) => !labelsOf.has(name))
}

/** Labels in braces that their metric does not have. */
function unknownLabelsIn(text: string): readonly string[] {
  return Array.from(text.matchAll(/\b(pod_[a-z_0-9]+)\{([a-z_]+)/g), ([, name = '', label = '']) => {
    return labelsOf.get(name.replace(/_bucket$/, ''))?.includes(label) ? [] : [`${name}{${label}}`]
  }).flat()
}

/** The rules of the contract, in its order. */
const ALERTS = {
  page: [
    ...['PodDown', 'DatabaseAway', 'QueueAway', 'InboundLate', 'InboundRefused', 'SweeperStopped', 'NoWorkers'],
    ...['DiskLow', 'BackupOld'],
  ],
  ticket: [
    ...['DeadLettersGrow', 'RefusedMany', 'DeliveriesOld', 'QueuePausedLong', 'ConnectionsLow', 'CryptoBusy'],
    ...['CertificateEnds', 'ClockOff', 'ReplicaLag', 'SignInAttack', 'CasesWait', 'SignUpsWait'],
  ],
}

it('has a rule for each condition that needs an operator', () => {
  const { groups } = parse(read('prometheus/rules.yml'))
  const rules: readonly { alert: string; labels: { severity: string } }[] = groups.flatMap(
    ({ rules }: { rules: readonly object[] }) => rules,
  )
  for (const [severity, names] of Object.entries(ALERTS)) {
    const found = rules.filter(({ labels }) => labels.severity === severity).map(({ alert }) => alert)
    expect(found).toEqual(expect.arrayContaining(names))
  }
})

it('has the durations of the contract', () => {
  const { groups } = parse(read('prometheus/rules.yml'))
  const rules: readonly { alert: string; for?: string }[] = groups.flatMap(
    ({ rules }: { rules: readonly object[] }) => rules,
  )
  const durations = Object.fromEntries(rules.map(({ alert, for: duration }) => [alert, duration]))

  expect(durations).toEqual({
    ...{ PodDown: '1m', DatabaseAway: '1m', QueueAway: '1m', InboundLate: '5m', InboundRefused: '10m' },
    ...{ SweeperStopped: '2m', NoWorkers: '2m', DiskLow: '15m', BackupOld: undefined },
    ...{ DeadLettersGrow: undefined, RefusedMany: '30m', DeliveriesOld: '10m', QueuePausedLong: '1h' },
    ...{ ConnectionsLow: '10m', CryptoBusy: '10m', CertificateEnds: '1h', ClockOff: '10m', ReplicaLag: '5m' },
    ...{ SignInAttack: '5m', CasesWait: undefined, SignUpsWait: undefined, OutboxOld: '10m' },
  })
})

it('compares with an hour ago also if there was no series then', () => {
  const compared = Array.from(read('prometheus/rules.yml').matchAll(/expr: (.* offset 1h.*)/g), ([, text = '']) => text)
  expect(compared).toHaveLength(1)
  for (const text of compared) expect(text).toContain('offset 1h)) or 0 * max(pod_dead_letters_incomplete offset 1h))')
})

it('counts the age of a case that was opened again from then on', async () => {
  const { db } = pod.pod
  const old = new Date(Date.now() - 30 * 86_400_000)
  const [{ id } = { id: 0 }] = await db('moderation_cases')
    .insert({ targetType: 'post', targetGuid: 'a guid of a post', public: true, firstReportedAt: old })
    .returning('id')
  const age = async () => (await readSharedMetrics(db)).oldestCase ?? 0
  expect(await age()).toBeGreaterThan(86_400)

  await db('moderation_case_events').insert({ caseId: id, event: 'reopened' })
  expect(await age()).toBeLessThan(86_400)
  await db('moderation_cases').delete()
})

it('pages for backups of which none has ever succeeded', () => {
  const [, condition = ''] = /- alert: BackupOld\n(?: *#.*\n)* *expr: (.*)/.exec(read('prometheus/rules.yml')) ?? []
  expect(condition).toContain('or (max(pod_backup_failures_total) > 0 unless max(pod_backup_age_seconds))')
})

it('exports the build with its commit, and totals as counters', () => {
  expect(text).toMatch(/^pod_build_info\{software="diaspora-pod",version="[^"]+",commit="[0-9a-f]{40}",node="/m)
  for (const name of ['pod_moderation_actions_total', 'pod_filter_hits_total', 'pod_rate_limited_total'])
    expect(text).toContain(`# TYPE ${name} counter`)
})

it('every metric of the alert rules is exported', () => {
  const rules = read('prometheus/rules.yml')
  const count = (pattern: RegExp) => rules.match(pattern)?.length

  expect(unknownMetricsIn(rules)).toEqual([])
  expect(unknownLabelsIn(rules)).toEqual([])
  expect(count(/^ {8}expr: /gm)).toBe(count(/^ {6}- alert: /gm))
  expect(count(/summary: /g)).toBe(count(/^ {6}- alert: /gm))
})

it('every metric of the dashboard is exported', () => {
  const dashboard: { readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[] } =
    JSON.parse(read('grafana/pod.json'))
  const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))

  expect(unknownMetricsIn(expressions.join('\n'))).toEqual([])
  expect(unknownLabelsIn(expressions.join('\n'))).toEqual([])
})

it('series of other pods are those of fifty pods and the sum of all others, for 5 000 pods', async () => {
  const { db, jobs, log, config } = pod.pod
  await db.raw(
    `insert into pods (host, failures) select 'p' || number || '.example', number from generate_series(1, 5000) as number`,
  )
  await db.raw(`insert into pods (host) values ('busy.example')`)
  for (let count = 0; count < 6_000; count += 1) countReceived(db, 'busy.example', 'received')
  await savePodActivity({ db })
  const registry = new Registry()
  const write = openSharedMetrics(registry, { db, jobs, log, config })
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
  expect(found).toMatchObject({ 'p5000.example': 5_000, 'p4952.example': 4_952, other: (4_951 * 4_952) / 2 })
  expect(await registry.metrics()).toContain('pod_peer_received_hour{peer="busy.example"} 6000\n')
  expect(await statementsDuring(values)).toBe(0)
})

it('the oldest delivery is one without an attempt, for a pod without failures or refusals that is neither paused nor blocked', async () => {
  const { db, jobs, log, config } = pod.pod
  await db.raw(`
    with written as (
      insert into outbound_messages (record, guid, verb, public, entity)
      select 'participation', '0123456789abcde' || number, 'create', true, '' from generate_series(1, 3) as number
      returning id, guid
    ), others as (
      insert into pods (host, failures, paused_until, blocked_at, offline_since) values
        ('failing.example', 1, null, null, null), ('paused.example', 0, now() + interval '1 day', null, null),
        ('blocked.example', 0, null, now(), null), ('refusing.example', 0, null, null, now()),
        ('well.example', 0, null, null, null)
      returning id, host
    )
    insert into deliveries (message_id, pod_id, created_at, attempts, due_at)
    select written.id, others.id, now() - age, attempts, due_at
    from written join (values
      ('1', interval '1 hour', 0, now()),
      ('2', interval '2 hours', 1, now()), -- was refused
      ('3', interval '3 hours', 0, now() + interval '1 hour') -- is held
    ) as delivery (number, age, attempts, due_at) on written.guid like '%' || number, others
    where host = 'well.example'
    union all
    select written.id, others.id, now() - interval '4 hours', 0, now()
    from written, others where host <> 'well.example'`)
  const registry = new Registry()
  await openSharedMetrics(registry, { db, jobs, log, config })()

  const [, seconds] = /^pod_oldest_available_delivery_seconds (\d+)/m.exec(await registry.metrics()) ?? []
  expect(Math.round(Number(seconds) / 3_600)).toBe(1)
})

it('dead letters, cases and paused queues are counted', async () => {
  const { db, jobs, log, config } = pod.pod
  await db('outbox').insert({ queue: 'fetch', name: 'fetch-entity', failedAt: new Date(), data: '{"fault":"gone"}' })
  await db('queue_controls')
    .insert({ queue: 'relay', state: 'paused', actor: 'adm', reason: 'A test' })
    .onConflict('queue')
    .merge()
  const registry = new Registry()
  await openSharedMetrics(registry, { db, jobs, log, config })()

  const text = await registry.metrics()
  for (const line of [
    'pod_dead_letters{queue="fetch",fault="gone"} 1',
    'pod_queue_paused{queue="relay"} 1',
    'pod_queue_paused{queue="inbound"} 0',
    'pod_oldest_case_seconds 0',
  ])
    expect(text).toContain(line)
  expect(text).toMatch(/^pod_clock_offset_seconds -?0\.\d+/m)
  expect(text).toMatch(/^pod_table_bytes\{table="[a-z_]+"\} \d+/m)
})
