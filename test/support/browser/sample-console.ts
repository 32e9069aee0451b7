import { replaceChecks } from '../../../src/persistence/operations/checks.js'
import { freePort } from '../http/free-port.js'
import { addRemotePerson } from '../people/remote-people.js'
import { type ConsolePod, startConsolePod } from '../pods/console-pod.js'
import { seedModeration } from './sample-moderation.js'

/** A text as an attacker may send it: markup, a script address, another direction of text, and no space. */
const HOSTILE =
  `<script>document.title='hacked'</script><img src=x onerror=alert(1)> javascript:alert(1) \u202eمرحبا `.padEnd(
    65_535,
    'x',
  )

/** Trace id of a rejected message. */
const TRACE = 'a'.repeat(32)

/** A listening console with sample data on each page. */
export interface SampleConsole {
  readonly pod: ConsolePod
  readonly url: string
  /** Paths by name, for an administrator. */
  readonly pages: Readonly<Record<string, string>>
  close(): Promise<void>
}

/** `text` is the content of remote people. */
export async function openSampleConsole(text = HOSTILE): Promise<SampleConsole> {
  const port = await freePort()
  const url = `http://localhost:${port}`
  const pod = await startConsolePod({ environment: { POD_URL: url, POD_NAME: 'The pod of Thornbury' } })
  await pod.app.listen({ port, host: 'localhost' })
  const deadLetterId = await seedOperations(pod, text)
  const samples = await seedModeration(pod, text)
  return {
    pod,
    url,
    pages: {
      overview: '/admin',
      reports: '/admin/reports?state=all',
      report: `/admin/reports/${samples.caseId}`,
      picture: `/admin/reports/${samples.caseId}/pictures/${samples.photoGuid}`,
      'clear picture': `/admin/reports/${samples.caseId}/pictures/${samples.photoGuid}?variant=clear`,
      content: `/admin/content/${samples.postGuid}`,
      people: '/admin/people?local=false',
      person: `/admin/people/${samples.personGuid}`,
      rules: '/admin/rules',
      rule: `/admin/rules/${samples.ruleId}`,
      imports: '/admin/rules/import',
      import: `/admin/rules/import/${samples.importId}`,
      filters: '/admin/filters',
      filter: `/admin/filters/${samples.filterId}`,
      clusters: '/admin/clusters',
      cluster: `/admin/clusters/${samples.clusterId}`,
      'sign-ups': '/admin/sign-ups',
      invitations: '/admin/invitations',
      'network rules': '/admin/network-rules',
      'audit log': '/admin/audit',
      'audit entry': '/admin/audit/5',
      roles: '/admin/roles',
      deliveries: '/admin/deliveries/post-of-the-sample-0',
      pods: '/admin/pods',
      'no reports': '/admin/reports?state=dismissed',
      'no people': '/admin/people?q=nobody-at-all',
      'no rules': '/admin/rules?q=nothing',
      'no clusters': '/admin/clusters?state=dismissed',
      'no entries': '/admin/audit?actor=nobody',
      'no pods': '/admin/pods?q=nothing',
      pod: '/admin/pods/evil.example',
      queues: '/admin/queues',
      queue: '/admin/queues/inbound',
      'paused queue': '/admin/queues/relay?flash=paused',
      'dead letters': '/admin/dead-letters?queue=inbound',
      'no dead letters': '/admin/dead-letters?queue=photos',
      'dead letter': `/admin/dead-letters/outbox-${deadLetterId}`,
      'content of a dead letter': `/admin/dead-letters/outbox-${deadLetterId}/payload`,
      'rejected messages': '/admin/quarantine',
      'no rejected messages': '/admin/quarantine?fault=NotPublic',
      'rejected message': '/admin/quarantine/1',
      trace: `/admin/traces/${TRACE}`,
      processes: '/admin/workers',
      database: '/admin/database',
      storage: '/admin/storage',
      checks: '/admin/checks',
      settings: '/admin/settings',
    },
    close: () => pod.close(),
  }
}

/** Adds figures, deliveries, pods in each state, processes and a paused queue. Returns the id of a dead letter. */
async function seedOperations({ pod }: ConsolePod, text: string): Promise<number> {
  const { db } = pod
  await db('quarantine').insert({
    receivedAt: new Date(),
    author: 'eve@evil.example',
    host: 'evil.example',
    fault: 'InvalidSignature',
    detail: text,
    payload: text,
    bytes: text.length,
    isWhole: true,
    digest: Buffer.from('digest'),
    traceId: TRACE,
  })
  const eve = await addRemotePerson(pod, 'eve@evil.example')
  for (const name of ['far.example', 'slow.example:8443', 'gone.example']) await addRemotePerson(pod, `quin@${name}`)
  await db('pods')
    .where({ id: eve.podId })
    .update({
      lastError: text,
      status: 'net_failed',
      failures: 7,
      software: text.slice(0, 200),
      softwareVersion: '1',
      checkedAt: new Date(),
      nextTryAt: new Date(Date.now() + 3_600_000),
      offlineSince: new Date(),
      probe: JSON.stringify({
        at: new Date().toISOString(),
        steps: [
          { step: 'dns', ok: true, ms: 12, detail: '192.0.2.7' },
          { step: 'tcp', ok: false, ms: 5_000, detail: text.slice(0, 200) },
        ],
      }),
    })
  await db('pod_days').insert({ podId: eve.podId, day: db.raw('current_date'), delivered: 3, received: 12_000 })
  await replaceChecks(db, [
    { name: 'certificate', state: 'warn', message: 'It ends in 3 days.', certificateEndsAt: new Date() },
    { name: 'events', state: 'fail', message: text, certificateEndsAt: null },
    { name: 'clock', state: 'ok', message: 'It is right.', certificateEndsAt: null },
  ])
  await db('pods')
    .where({ host: 'far.example' })
    .update({ lastSuccessAt: new Date(), status: 'no_errors', software: 'diaspora' })
  await db('pods')
    .where({ host: 'gone.example' })
    .update({ offlineSince: new Date(0), status: 'dns_failed' })
  const sender = await db('people').where({ podId: null }).first('id')
  for (let index = 0; index < 6; index += 1) {
    const [message] = await db('outbound_messages')
      .insert({
        record: 'post',
        guid: `post-of-the-sample-${index}`,
        verb: 'create',
        senderId: sender.id,
        public: true,
        entity: '<x/>',
      })
      .returning('id')
    await db('deliveries').insert({
      messageId: message.id,
      podId: eve.podId,
      attempts: index,
      lastFault: 'net',
      ...(index > 3 && { state: 'dead', diedAt: new Date() }),
    })
  }
  const [deadLetter] = await db('outbox')
    .insert({
      queue: 'inbound',
      name: 'receive-public',
      payload: text,
      data: JSON.stringify({ fault: 'TargetNotFound' }),
      acceptedAt: new Date(),
      failedAt: new Date(),
    })
    .returning('id')
  await db.raw(
    `insert into figures (minute, name, labels, count)
     select date_trunc('minute', now()) - make_interval(mins => minute), name, labels::jsonb,
       greatest(1, round(size * (1.3 + sin(minute / 180.0)) + minute % 17))
     from generate_series(2, 1430, 3) as minute, (values
       ('pod_received_messages_total', '{"channel":"public","outcome":"accepted"}', 60),
       ('pod_inbound_messages_total', '{"queue":"inbound","end":"stored","fault":"none"}', 50),
       ('pod_delivery_tries_total', '{"lane":"outbound","outcome":"arrived"}', 30),
       ('pod_delivery_tries_total', '{"lane":"outbound-slow","outcome":"away"}', 3),
       ('pod_jobs_run_total', '{"queue":"inbound","end":"done"}', 12),
       ('pod_job_wait_seconds', '{"queue":"inbound","le":"0.025"}', 10),
       ('pod_job_wait_seconds', '{"queue":"inbound","le":"0.5"}', 2),
       ('pod_job_seconds', '{"queue":"inbound","end":"done","le":"0.1"}', 12)
     ) as counters(name, labels, size)`,
  )
  await db.raw(
    `insert into queue_samples (minute, queue, waiting)
     select date_trunc('minute', now()) - make_interval(mins => minute), 'inbound', greatest(1, round(200 * sin(minute / 90.0)))
     from generate_series(1, 1400, 5) as minute where sin(minute / 90.0) > 0`,
  )
  await db('queue_controls').insert({ queue: 'relay', state: 'paused', actor: 'adm', reason: text.slice(0, 1_900) })
  const process_ = {
    host: 'pod-1',
    pid: 4711,
    version: '1.0.0',
    startedAt: new Date(),
    seenAt: new Date(Date.now() + 3_600_000),
  }
  const slow = {
    text: 'select * from posts where text ilike $1',
    count: 3,
    maxMs: 812,
    lastAt: new Date().toISOString(),
  }
  const facts = { rssBytes: 140e6, heapBytes: 60e6, busyPercent: 12, queues: ['inbound', 'inbound-private', 'fetch'] }
  const job = { queue: 'inbound', name: 'receive-public', attempt: 1, since: new Date().toISOString() }
  await db('processes').insert([
    { ...process_, id: crypto.randomUUID(), kind: 'web', facts: JSON.stringify({ ...facts, queues: [], jobs: [] }) },
    {
      ...process_,
      id: crypto.randomUUID(),
      pid: 4712,
      kind: 'worker',
      facts: JSON.stringify({ ...facts, jobs: [job], slowStatements: [slow] }),
    },
  ])
  return deadLetter.id
}
