import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { readSoftware } from '../../config/software.js'
import type { TracingSettings } from '../../config/tracing-settings.js'
import type { ActiveSpan, SpanAttributes, SpanKind, SpanOptions, Tracer } from '../../services/tracer.js'
import { type OtlpAttribute, openOtlpExporter, type SpanExporter } from './otlp-exporter.js'

/** The attributes that a span may have, by their names in OpenTelemetry. */
const NAMES: Readonly<Record<keyof SpanAttributes, string>> = {
  method: 'http.request.method',
  route: 'http.route',
  status: 'http.response.status_code',
  host: 'server.address',
  queue: 'messaging.destination.name',
  job: 'pod.job',
  entity: 'pod.entity_type',
  outcome: 'pod.outcome',
  fault: 'pod.fault',
  messages: 'pod.messages',
  stored: 'pod.messages_stored',
  waiting: 'pod.messages_waiting',
  rejected: 'pod.messages_rejected',
  ignored: 'pod.messages_ignored',
}

const KINDS: Readonly<Record<SpanKind, number>> = { internal: 1, server: 2, client: 3, consumer: 5 }
const FAILED = { code: 2 } as const
/** Links of a span, as many as OpenTelemetry keeps by default. */
const LINKS = 128

/** Creates spans and sends them to the collector of the settings. */
export function openTracer(
  settings: TracingSettings,
  kind: 'web' | 'worker',
  log: Pick<Logger, 'warn'>,
): Tracer & { close(): Promise<void> } {
  const { name, version } = readSoftware()
  const resource = {
    'service.name': settings.serviceName ?? `diaspora-pod-${kind}`,
    'service.version': version,
    'service.instance.id': `${hostname()}:${process.pid}`,
    ...settings.resource,
  }
  const attributes = Object.entries(resource).map(([key, value]) => attributeOf(key, value))
  const exporter = openOtlpExporter(settings, attributes, { name, version }, log)

  return {
    begin(spanName, options) {
      const traces = [...new Set(options.traces.flatMap((trace) => trace?.replaceAll('-', '') ?? []))]
      const sampledTraces = traces.filter((trace) => isSampled(trace, settings.ratio))
      const [trace] = sampledTraces
      if (trace === undefined) return undefined
      return beginSpan(exporter, {
        name: spanName,
        ...options,
        ...spanIds(options, trace, traces.length),
        links: linksOf(options, sampledTraces),
      })
    },
    close: () => exporter.close(),
  }
}

/** Whether spans of a trace are sent. Only the id of the trace counts, so that all processes decide alike. */
function isSampled(trace: string, ratio: number): boolean {
  return Number.parseInt(trace.slice(-13), 16) < ratio * 16 ** 13
}

/** The span of the request itself, whose id follows from the trace, so that other processes can refer to it. */
function requestSpanOf(trace: string): string {
  return trace.slice(16)
}

function spanIds({ isRequest }: SpanOptions, trace: string, traces: number) {
  if (isRequest) return { traceId: trace, spanId: requestSpanOf(trace) }
  if (traces > 1) return { traceId: randomBytes(16).toString('hex'), spanId: newSpanId() }
  return { traceId: trace, spanId: newSpanId(), parentSpanId: requestSpanOf(trace) }
}

function linksOf({ isBatch }: SpanOptions, traces: readonly string[]) {
  return isBatch ? traces.slice(0, LINKS).map((traceId) => ({ traceId, spanId: requestSpanOf(traceId) })) : []
}

interface SpanStart extends Omit<SpanOptions, 'traces'> {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
}

function beginSpan(exporter: SpanExporter, start: SpanStart): ActiveSpan {
  const { name, traceId, spanId, parentSpanId, links, kind } = start
  const began = start.since ?? currentMilliseconds()
  let spanAttributes: SpanAttributes = start.attributes ?? {}
  return {
    set(attributes) {
      spanAttributes = { ...spanAttributes, ...attributes }
    },
    beginChild: (childName) =>
      beginSpan(exporter, {
        name: childName,
        kind: 'internal',
        traceId,
        spanId: newSpanId(),
        parentSpanId: spanId,
        links: [],
      }),
    end(result) {
      exporter.add({
        traceId,
        spanId,
        name,
        links,
        kind: KINDS[kind],
        ...(parentSpanId !== undefined && { parentSpanId }),
        startTimeUnixNano: nanoseconds(began),
        endTimeUnixNano: nanoseconds(currentMilliseconds()),
        attributes: Object.entries(NAMES).flatMap(([field, key]) => {
          const value = spanAttributes[field as keyof SpanAttributes] // the keys of NAMES are those of the attributes
          return value === undefined ? [] : [attributeOf(key, value)]
        }),
        status: result?.hasFailed === true ? FAILED : {},
      })
    },
  }
}

function attributeOf(key: string, value: string | number): OtlpAttribute {
  return { key, value: typeof value === 'number' ? { intValue: String(Math.round(value)) } : { stringValue: value } }
}

function newSpanId(): string {
  return randomBytes(8).toString('hex')
}

/** Milliseconds since 1970, with fractions. */
function currentMilliseconds(): number {
  return performance.timeOrigin + performance.now()
}

function nanoseconds(milliseconds: number): string {
  return String(BigInt(Math.round(milliseconds * 1_000)) * 1_000n)
}
