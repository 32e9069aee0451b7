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
  /** Spans are collected for so long. */
  readonly delayMs: number
  /** Spans that wait, and those of one request. */
  readonly queued: number
  readonly batch: number
}

/** Names, meanings and defaults are those of the OpenTelemetry specification, but for the ratio. */
export interface TracingVariables {
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string
  readonly OTEL_EXPORTER_OTLP_TRACES_ENDPOINT?: string
  readonly OTEL_EXPORTER_OTLP_HEADERS?: string
  readonly OTEL_EXPORTER_OTLP_TRACES_HEADERS?: string
  readonly OTEL_EXPORTER_OTLP_TIMEOUT: number
  readonly OTEL_EXPORTER_OTLP_COMPRESSION?: 'gzip' | 'none'
  readonly OTEL_TRACES_SAMPLER?: string
  readonly OTEL_TRACES_SAMPLER_ARG?: number
  readonly OTEL_TRACES_EXPORTER?: string
  readonly OTEL_SDK_DISABLED?: string
  readonly OTEL_SERVICE_NAME?: string
  readonly OTEL_RESOURCE_ATTRIBUTES?: string
  readonly OTEL_BSP_SCHEDULE_DELAY: number
  readonly OTEL_BSP_MAX_QUEUE_SIZE: number
  readonly OTEL_BSP_MAX_EXPORT_BATCH_SIZE: number
}

const count = { type: 'integer', minimum: 1, maximum: 1_000_000, description: 'a number from 1 to 1000000' } as const
const address = { type: 'string', description: 'an http or https address' } as const
const pairs = { type: 'string', description: 'a list like name=value,name=value' } as const

/** JSON schemas of the variables. */
export const TRACING_VARIABLES = {
  OTEL_EXPORTER_OTLP_ENDPOINT: address,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address,
  OTEL_EXPORTER_OTLP_HEADERS: pairs,
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: pairs,
  OTEL_EXPORTER_OTLP_TIMEOUT: { ...count, default: 10_000 },
  OTEL_EXPORTER_OTLP_COMPRESSION: { type: 'string', enum: ['gzip', 'none'], description: 'gzip or none' },
  OTEL_TRACES_SAMPLER: {
    type: 'string',
    enum: ['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]),
    description: 'always_on, always_off or traceidratio, with or without parentbased_ before it',
  },
  OTEL_TRACES_SAMPLER_ARG: { type: 'number', minimum: 0, maximum: 1, description: 'a number from 0 to 1' },
  OTEL_TRACES_EXPORTER: { type: 'string', description: 'otlp or none' },
  OTEL_SDK_DISABLED: { type: 'string', description: 'true or false' },
  OTEL_SERVICE_NAME: { type: 'string', description: 'a name' },
  OTEL_RESOURCE_ATTRIBUTES: pairs,
  OTEL_BSP_SCHEDULE_DELAY: { ...count, default: 5_000 },
  OTEL_BSP_MAX_QUEUE_SIZE: { ...count, default: 2_048 },
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: { ...count, default: 512 },
} as const

const DEFAULT_RATIO = 0.05

/** Undefined: no spans are made. */
export function readTracingSettings(given: TracingVariables): TracingSettings | undefined {
  const endpoint = given.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? tracesBelow(given.OTEL_EXPORTER_OTLP_ENDPOINT)
  const isOff = given.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || given.OTEL_TRACES_EXPORTER === 'none'
  if (endpoint === undefined || isOff) return undefined
  return {
    endpoint,
    headers: readPairs(given.OTEL_EXPORTER_OTLP_TRACES_HEADERS ?? given.OTEL_EXPORTER_OTLP_HEADERS),
    timeoutMs: given.OTEL_EXPORTER_OTLP_TIMEOUT,
    gzip: given.OTEL_EXPORTER_OTLP_COMPRESSION === 'gzip',
    ratio: ratioOf(given),
    serviceName: given.OTEL_SERVICE_NAME,
    resource: readPairs(given.OTEL_RESOURCE_ATTRIBUTES),
    delayMs: given.OTEL_BSP_SCHEDULE_DELAY,
    queued: given.OTEL_BSP_MAX_QUEUE_SIZE,
    batch: given.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
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
    return name === '' ? [] : [[name, decoded(value)]]
  })
  return Object.fromEntries(entries)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
