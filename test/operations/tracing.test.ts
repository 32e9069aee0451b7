import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { readTracingSettings, type TracingVariables } from '../../src/config/tracing-settings.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { openTracer } from '../../src/operations/tracing/open-tracer.js'
import type { OtlpAttribute, OtlpSpan } from '../../src/operations/tracing/otlp-exporter.js'
import { Person } from '../../src/persistence/models/person.js'
import { outboundHandlers, outboundSlowHandlers, relayHandlers } from '../../workers/handlers/outbound.js'
import { openRecordedLog } from '../support/assertions/recorded-log.js'
import { addPost } from '../support/databases/rows.js'
import { postBy } from '../support/federation/entities.js'
import { envelopeOf, signedBy } from '../support/federation/envelopes.js'
import { type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { addRecordingPod, type RecordingPod } from '../support/federation/recording-pod.js'
import { type ScriptedServer, serveHttp } from '../support/http/scripted-server.js'
import { type InboundPod, startInboundPod } from '../support/pods/inbound-pod.js'

interface Received {
  readonly headers: Readonly<Record<string, unknown>>
  readonly resource: readonly OtlpAttribute[]
  readonly spans: readonly OtlpSpan[]
}

const received: Received[] = []
const spans = () => received.flatMap((each) => each.spans)
const spansOf = (trace: string) => spans().filter(({ traceId }) => traceId === trace)
const valuesOf = (attributes: readonly OtlpAttribute[] = []) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

let collector: ScriptedServer
let fakePods: FakePods
let pod: InboundPod
type RemotePerson = Awaited<ReturnType<RecordingPod['person']>>
let remy: RemotePerson
let quin: RemotePerson
const recorded = openRecordedLog()
beforeAll(async () => {
  collector = await serveHttp(async (request, response) => {
    const body = await buffer(request)
    const { resourceSpans } = JSON.parse(String(gunzipSync(body)))
    const [{ resource, scopeSpans }] = resourceSpans
    received.push({ headers: request.headers, resource: resource.attributes, spans: scopeSpans[0].spans })
    response.end('{}')
  })
  fakePods = await startFakePods()
  pod = await startInboundPod({
    fakePods,
    log: recorded.log,
    queues: ['inbound', 'relay', 'outbound', 'outbound-slow'],
    handlers: { relay: relayHandlers, outbound: outboundHandlers, 'outbound-slow': outboundSlowHandlers },
    environment: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20secret',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_TRACES_SAMPLER: 'always_on',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
      OTEL_BSP_SCHEDULE_DELAY: '1',
    },
  })
  const other = (host: string) => addRecordingPod(fakePods, pod, host)
  remy = await (await other('far.example:3000')).person()
  quin = await (await other('near.example:3000')).person()
}, 180_000)
afterAll(async () => {
  await pod.close()
  await fakePods.close()
  await collector.close()
})

async function send(payload: string): Promise<string> {
  const { headers } = await pod.app.inject({ method: 'POST', url: '/receive/public', payload })
  return String(headers['x-request-id'])
}

describe('spans', () => {
  it('lead from a received envelope over open, store and notify to the delivery, in one trace', async () => {
    const { alice } = await pod.people('alice')
    const alicePerson = await Person.query(pod.db).findOne({ guid: alice.account.guid }).throwIfNotFound()
    const post = await addPost(pod, alicePerson)
    await pod.db('participations').insert({ guid: newGuid(), postId: post.id, authorId: remy.row.id })
    const comment = signedBy(quin, {
      type: 'comment',
      author: quin.address,
      guid: newGuid(),
      parent_guid: post.guid,
      text: 'a private thought',
      created_at: new Date(),
    })

    const trace = await send(envelopeOf(quin, comment))
    await vi.waitFor(() => expect(spansOf(trace).map(({ name }) => name)).toContain('deliver'))
    await vi.waitFor(() => expect(spansOf(trace)).toHaveLength(7))

    const byName = Object.fromEntries(spansOf(trace).map((span) => [span.name, span]))
    const parents = Object.values(byName).map(({ name, parentSpanId }) => [
      name,
      Object.values(byName).find(({ spanId }) => spanId === parentSpanId)?.name,
    ])
    expect(Object.fromEntries(parents)).toEqual({
      'POST /receive/public': undefined,
      'inbound batch': 'POST /receive/public',
      open: 'inbound batch',
      resolve: 'inbound batch',
      store: 'inbound batch',
      notify: 'inbound batch',
      deliver: 'POST /receive/public',
    })
    expect(byName['inbound batch']?.links).toEqual([{ traceId: trace, spanId: trace.slice(16) }])
    expect(valuesOf(byName['inbound batch']?.attributes)).toMatchObject({
      'messaging.destination.name': 'inbound',
      'pod.messages': '1',
      'pod.messages_stored': '1',
    })
    expect(valuesOf(byName['deliver']?.attributes)).toEqual({
      'server.address': 'far.example',
      'messaging.destination.name': expect.any(String),
      'pod.entity_type': 'comment',
      'pod.outcome': 'delivered',
    })
    expect(valuesOf(byName['POST /receive/public']?.attributes)).toEqual({
      'http.request.method': 'POST',
      'http.route': '/receive/public',
      'http.response.status_code': '202',
    })
    for (const { startTimeUnixNano, endTimeUnixNano } of spans()) {
      expect(BigInt(endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(startTimeUnixNano))
    }
    expect(JSON.stringify(received.map((each) => each.spans))).not.toMatch(/thought|alice|remy|@/)
    expect(received[0]?.headers).toMatchObject({ authorization: 'Basic secret', 'content-type': 'application/json' })
    expect(valuesOf(received[0]?.resource)).toMatchObject({
      'service.name': 'diaspora-pod-worker',
      'deployment.environment': 'test',
    })
  })

  it('of a batch of several messages are one trace that is linked to the requests', async () => {
    await pod.jobs.pause('inbound')
    const traces = await Promise.all([send(envelopeOf(remy, postBy(remy))), send(envelopeOf(remy, postBy(remy)))])
    await pod.jobs.resume('inbound')

    const batchOf = () => spans().find(({ links }) => links.length === 2)
    await vi.waitFor(() => expect(batchOf()).toBeDefined())
    expect(
      batchOf()
        ?.links.map(({ traceId }) => traceId)
        .sort(),
    ).toEqual([...traces].sort())
    expect(traces).not.toContain(batchOf()?.traceId)
  })

  it('of a failed request have the status of an error, and never a query', async () => {
    const { headers, statusCode } = await pod.app.inject('/api/v1/streams/main?before=secret')
    const trace = String(headers['x-request-id'])
    await vi.waitFor(() => expect(spansOf(trace)).toHaveLength(1))
    expect(statusCode).toBe(401)
    expect(spansOf(trace)[0]).toMatchObject({ name: 'GET /api/v1/streams/main', kind: 2, status: {} })
  })
})

const NUMBERS = {
  OTEL_EXPORTER_OTLP_TIMEOUT: 10_000,
  OTEL_BSP_SCHEDULE_DELAY: 1,
  OTEL_BSP_MAX_QUEUE_SIZE: 4,
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: 2,
}
const read = (given: Partial<TracingVariables>) => readTracingSettings({ ...NUMBERS, ...given })
const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1/' }

describe('the settings of OpenTelemetry', () => {
  it('make no spans unless an address is set', () => {
    expect(read({ OTEL_TRACES_SAMPLER: 'always_on' })).toBeUndefined()
    expect(read({ ...ENDPOINT, OTEL_SDK_DISABLED: 'true' })).toBeUndefined()
    expect(read({ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' })).toBeUndefined()
  })

  it.each<[Partial<TracingVariables>, object]>([
    [{}, { endpoint: 'http://127.0.0.1:1/v1/traces', ratio: 0.05 }],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:2/x' }, { endpoint: 'http://127.0.0.1:2/x' }],
    [{ OTEL_TRACES_SAMPLER_ARG: 0.5 }, { ratio: 0.5 }],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio' }, { ratio: 1 }],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_always_off', OTEL_TRACES_SAMPLER_ARG: 1 }, { ratio: 0 }],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=b%2Cc, d = e=f,broken' }, { headers: { a: 'b,c', d: 'e=f' } }],
  ])('are read: %j', (given, expected) => {
    expect(read({ ...ENDPOINT, ...given })).toMatchObject(expected)
  })
})

describe('a tracer', () => {
  const settingsWith = (given: Partial<TracingVariables>) => {
    const settings = read({ ...ENDPOINT, ...given })
    if (settings === undefined) throw new Error('There are no settings.')
    return settings
  }

  it('decides by the trace alone, near the ratio', async () => {
    const tracer = openTracer(settingsWith({ OTEL_TRACES_SAMPLER_ARG: 0.25 }), 'web', recorded.log)
    const traces = Array.from({ length: 4_000 }, () => newGuid())
    const isSampled = (trace: string) => tracer.begin('x', { kind: 'internal', traces: [trace] }) !== undefined
    const sampled = traces.filter(isSampled)

    expect(sampled.length).toBeGreaterThan(800)
    expect(sampled.length).toBeLessThan(1_200)
    expect(traces.filter(isSampled)).toEqual(sampled)
    expect(tracer.begin('x', { kind: 'internal', traces: [undefined, null] })).toBeUndefined()
  })

  it('logs an absent collector once, and continues', async () => {
    const { log, entries } = openRecordedLog()
    const tracer = openTracer(settingsWith({ OTEL_TRACES_SAMPLER: 'always_on' }), 'web', log)
    for (let count = 0; count < 9; count += 1) tracer.begin('x', { kind: 'internal', traces: [newGuid()] })?.end()
    await tracer.close()
    tracer.begin('x', { kind: 'internal', traces: [newGuid()] })?.end()
    await tracer.close()

    expect(entries().filter(({ msg }) => msg === 'spans not sent to the collector')).toHaveLength(1)
  })
})
