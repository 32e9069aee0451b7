import type { ValuesOf } from './schemas.js'
import type { TRACING_VARIABLES } from './variables/tracing.js'

/** Where spans are sent, and which. */
export interface TracingSettings {
  /** An OTLP/HTTP address that accepts traces as JSON. */
  readonly endpoint: string
  /** May have secrets. */
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly gzip: boolean
  /** The share of the traces that is sent, from 0 to 1. */
  readonly ratio: number
  /** Undefined: by the kind of the process. */
  readonly serviceName: string | undefined
  readonly resource: Readonly<Record<string, string>>
  /** Spans are collected for this time. */
  readonly delayMs: number
  /** Spans that wait, and those of one request. */
  readonly queued: number
  readonly batch: number
}

export type TracingVariables = ValuesOf<typeof TRACING_VARIABLES>

const DEFAULT_RATIO = 0.05

/** Undefined: no spans are made. */
export function readTracingSettings(variables: TracingVariables): TracingSettings | undefined {
  const endpoint = variables.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? tracesBelow(variables.OTEL_EXPORTER_OTLP_ENDPOINT)
  const isOff = variables.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || variables.OTEL_TRACES_EXPORTER === 'none'
  if (endpoint === undefined || isOff) return undefined
  return {
    endpoint,
    headers: readPairs(variables.OTEL_EXPORTER_OTLP_TRACES_HEADERS ?? variables.OTEL_EXPORTER_OTLP_HEADERS),
    timeoutMs: variables.OTEL_EXPORTER_OTLP_TIMEOUT,
    gzip: variables.OTEL_EXPORTER_OTLP_COMPRESSION === 'gzip',
    ratio: ratioOf(variables),
    serviceName: variables.OTEL_SERVICE_NAME,
    resource: readPairs(variables.OTEL_RESOURCE_ATTRIBUTES),
    delayMs: variables.OTEL_BSP_SCHEDULE_DELAY,
    queued: variables.OTEL_BSP_MAX_QUEUE_SIZE,
    batch: variables.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
  }
}

function tracesBelow(base: string | undefined): string | undefined {
  return base === undefined ? undefined : `${base.replace(/\/$/, '')}/v1/traces`
}

function ratioOf({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio }: TracingVariables): number {
  switch (sampler?.replace('parentbased_', '')) {
    case 'always_on':
      return 1
    case 'always_off':
      return 0
    case 'traceidratio':
      return ratio ?? 1
    default:
      return ratio ?? DEFAULT_RATIO
  }
}

/** Pairs as in the header `baggage`; values may be percent-encoded. */
function readPairs(text = ''): Readonly<Record<string, string>> {
  const entries = text.split(',').flatMap((pair): [string, string][] => {
    const [, name = '', value = ''] = /^\s*([^=]+?)\s*=\s*(.*?)\s*$/.exec(pair) ?? []
    return name === '' ? [] : [[name, decodePercent(value)]]
  })
  return Object.fromEntries(entries)
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
