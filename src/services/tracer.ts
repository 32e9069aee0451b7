/** Creates spans for OpenTelemetry. */
export interface Tracer {
  /** Undefined: none of the traces is sampled. */
  begin(name: string, options: SpanOptions): ActiveSpan | undefined
}

export interface SpanOptions {
  readonly kind: SpanKind
  /** Traces of the request or the messages; work of several traces has a trace of its own. */
  readonly traces: readonly (string | null | undefined)[]
  /** The span of the request to which the trace belongs. */
  readonly isRequest?: boolean
  /** The span is linked to the requests of its traces. */
  readonly isBatch?: boolean
  /** Milliseconds since 1970. Default: now. */
  readonly since?: number
  readonly attributes?: SpanAttributes
}

export type SpanKind = 'internal' | 'server' | 'client' | 'consumer'

/** All that a span may say: never texts, tokens, addresses of people, or queries. */
export interface SpanAttributes {
  readonly method?: string
  /** A pattern, without guids. */
  readonly route?: string
  readonly status?: number
  readonly host?: string
  readonly queue?: string
  readonly job?: string
  readonly entity?: string
  readonly outcome?: string
  readonly fault?: string
  readonly messages?: number
  readonly stored?: number
  readonly waiting?: number
  readonly rejected?: number
  readonly ignored?: number
}

export interface ActiveSpan {
  set(attributes: SpanAttributes): void
  beginChild(name: string): ActiveSpan
  end(result?: { readonly hasFailed?: boolean }): void
}
