import { readFileSync } from 'node:fs'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openRemoteClock } from '../../src/federation/remote-pod/remote-clock.js'
import { runChecks, runDueChecks } from '../../src/operations/checks/run-checks.js'
import { openSharedMetrics } from '../../src/operations/shared-metrics.js'
import { listChecks } from '../../src/persistence/operations/checks.js'
import { recordHeartbeat } from '../../src/persistence/operations/processes.js'
import { openRecordedLog } from '../support/assertions/recorded-log.js'
import { serveHttps } from '../support/http/scripted-server.js'
import { startSmtpServer, type TestSmtpServer } from '../support/mail/smtp-server.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

const read = (name: string) => readFileSync(new URL(`../fixtures/certificates/${name}`, import.meta.url), 'utf8')
const [ca, key] = [read('authority.pem'), read('pod.example.key')]

/** The pod trusts a proxy that connects from this address. */
const TRUSTED = '127.0.0.2'

let pod: TestPod
let smtp: TestSmtpServer
let port: number
beforeAll(async () => {
  smtp = await startSmtpServer()
  pod = await buildPod({
    environment: { TRUST_PROXY: TRUSTED, SMTP_URL: `${smtp.url}?ignoreTLS=true`, MAIL_FROM: 'pod@pod.example' },
  })
  await pod.people('alice')
  port = Number(new URL(await pod.app.listen({ host: '127.0.0.1', port: 0 })).port)
})
afterAll(async () => {
  await pod.close()
  await smtp.close()
})

interface Proxy {
  readonly cert?: string
  readonly from?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Answers by itself; true: the request is not passed on. */
  readonly script?: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Keeps the answer until it is complete. */
  readonly buffers?: boolean
}

/** The results of the checks through a proxy, by check. */
async function checkThrough(proxy: Proxy) {
  const { from = TRUSTED, cert = 'pod.example.pem', headers = { 'x-forwarded-proto': 'https' } } = proxy
  const server = await serveHttps({ key, cert: read(cert) }, (incoming, response) => {
    if (proxy.script?.(incoming, response)) return
    const { method, url: path } = incoming
    const given = { host: 'pod.example', 'x-forwarded-for': '192.0.2.7', ...headers }
    const target = { host: '127.0.0.1', port, localAddress: from, method, path, headers: given }
    const passed = request(target, async (remoteResponse) => {
      const body = proxy.buffers ? await buffer(remoteResponse).catch(() => undefined) : undefined
      response.writeHead(remoteResponse.statusCode ?? 500, remoteResponse.headers)
      if (body === undefined) remoteResponse.pipe(response)
      else response.end(body)
    })
    response.on('close', () => passed.destroy())
    passed.on('error', () => {})
    passed.end()
  })
  onTestFinished(() => server.close())
  const via = { host: '127.0.0.1', port: server.port }
  const findings = await runChecks(pod.pod, { via, ca, withinMs: proxy.buffers ? 300 : 5_000 })
  return Object.fromEntries(findings.map(({ check, state, message }) => [check, `${state}: ${message}`]))
}

describe('the checks of the pod at its own address', () => {
  it('are not made by an isolated copy, whose address is that of its original', async () => {
    let requests = 0
    const server = await serveHttps({ key, cert: read('pod.example.pem') }, (_request, response) => {
      requests += 1
      response.end()
    })
    const isolated = { ...pod.pod, config: { ...pod.pod.config, isolated: true } }
    const findings = await runChecks(isolated, { via: { host: '127.0.0.1', port: server.port }, ca })
    await server.close()

    expect(findings).toEqual([
      { check: 'address', state: 'warn', message: expect.stringContaining('This copy of the pod is isolated') },
    ])
    expect(requests).toBe(0)
  })

  it('find no fault with a correct proxy, and are stored for API and metrics', async () => {
    const found = await checkThrough({})
    expect(found).toEqual({
      certificate: expect.stringMatching(/^ok: The certificate is valid for \d+ days\.$/),
      webfinger: 'ok: It is answered with status 200, without a redirect.',
      events: 'ok: The proxy passes on server-sent events.',
      proxy: 'ok: TRUST_PROXY names the proxy.',
      clock: expect.stringMatching(/^ok: /),
      mail: expect.stringMatching(/^ok: /),
      smtp: 'ok: The mail server accepts a connection and a sign-in.',
    })
    expect(smtp.mails).toEqual([])

    const stored = await listChecks(pod.pod.db)
    expect(Object.fromEntries(stored.map(({ name, state, message }) => [name, `${state}: ${message}`]))).toEqual(found)
    const registry = new Registry()
    await openSharedMetrics(registry, pod.pod)()
    const [, seconds] = /^pod_certificate_expiry_seconds (\d+)/m.exec(await registry.metrics()) ?? []
    expect(Number(seconds)).toBeGreaterThan(14 * 86_400)
  })

  it('report an expired or untrusted certificate', async () => {
    const { certificate } = await checkThrough({ cert: 'pod.example-expired.pem' })
    expect(certificate).toMatch(/^fail: The certificate expired \d+ days ago: renew it\.$/)
  })

  it.each<readonly [string, Proxy, Readonly<Record<string, string>>]>([
    [
      'a redirect',
      {
        script: (_request, response) =>
          Boolean(response.writeHead(301, { location: 'https://www.pod.example/' }).end()),
      },
      {
        webfinger: 'fail: The proxy redirects to https://www.pod.example/: set POD_URL to the address that answers.',
        events: 'fail: /health/proxy is answered with status 301: the proxy must pass it on.',
      },
    ],
    [
      'a path that is not passed on',
      {
        script: ({ url }, response) =>
          url?.startsWith('/.well-known') === true && Boolean(response.writeHead(404).end()),
      },
      { webfinger: 'fail: It is answered with status 404: the proxy must pass on /.well-known/webfinger.' },
    ],
    [
      'buffered events',
      { buffers: true },
      {
        events: expect.stringMatching(
          /^fail: No event arrives at once .*: the proxy must not buffer text\/event-stream\.$/,
        ),
      },
    ],
    [
      'an untrusted proxy',
      { from: '127.0.0.1' },
      { proxy: 'warn: TRUST_PROXY does not name the proxy: all clients share one address and its limits.' },
    ],
    [
      'a missing protocol',
      { headers: {} },
      { proxy: 'warn: Requests over https arrive as http: the proxy must send X-Forwarded-Proto.' },
    ],
  ])('find %s', async (_name, proxy, expected) => {
    expect(await checkThrough(proxy)).toMatchObject(expected)
  })

  it('find an address without an answer, a mail server that is away, and clocks that differ', async () => {
    const facts = { rssBytes: 1, heapBytes: 1, busyPercent: 0, queues: [], jobs: [] }
    const started = { startedAt: new Date(0), version: '1.0.0', host: 'machine', pid: 7, kind: 'worker' }
    const id = '00000000-0000-4000-8000-000000000009'
    await recordHeartbeat(pod.pod.db, { id, ...started, facts: { ...facts, podClock: { offset: -61, answers: 50 } } })
    const mail = { ...pod.pod.config.mail, url: 'smtp://127.0.0.1:1?ignoreTLS=true' }
    const config = { ...pod.pod.config, mail } as typeof pod.pod.config

    const findings = await runChecks({ ...pod.pod, config }, { via: { host: '127.0.0.1', port: 1 } })
    expect(findings.filter(({ state }) => state !== 'ok')).toEqual([
      { check: 'address', state: 'fail', message: expect.stringContaining('https://pod.example does not answer') },
      {
        ...{ check: 'clock of pods', state: 'warn' },
        message: 'The clocks of other pods differ by -61 seconds: check NTP on this machine.',
      },
      { check: 'smtp', state: 'fail', message: expect.stringContaining('127.0.0.1:1') },
    ])
  })

  it('are made every six hours by one process, the first minutes after the start', async () => {
    const { db } = pod.pod
    await db('checks').delete()
    const { log, entries } = openRecordedLog()
    const config = { ...pod.pod.config, url: 'http://127.0.0.1:1', mail: undefined }
    const due = () => runDueChecks({ ...pod.pod, config, log })
    const pass = (time: string) =>
      db('periodic')
        .where({ name: 'checks' })
        .update({ lastRunAt: db.raw(`last_run_at - cast(? as interval)`, [time]) })

    await due()
    expect(await listChecks(db)).toEqual([])
    await pass('5 minutes')
    await Promise.all([due(), due()])
    expect(entries().filter(({ msg }) => msg === 'check of the pod failed')).toHaveLength(1)
    await pass('5 hours')
    await db('checks').delete()
    await due()
    expect(await listChecks(db)).toEqual([])
  })
})

it('the clock of other pods is the median of the last fifty answers', () => {
  const clock = openRemoteClock(() => Date.parse('2026-01-01T00:00:00Z'))
  expect(clock.read()).toBeUndefined()
  clock.note('not a time')
  clock.note(undefined)
  for (let response = 0; response < 60; response += 1) {
    clock.note(response < 34 ? 'Fri, 01 Jan 2016 00:00:00 GMT' : 'Thu, 01 Jan 2026 00:00:06 GMT')
  }
  expect(clock.read()).toEqual({ offset: 6.5, answers: 50 })
})
