import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Logger } from 'pino'
import type { TracingSettings } from '../../config/tracing-settings.js'
import { messageOf } from '../../errors/thrown.js'

/** A span in the JSON form of OTLP. */
export interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly OtlpAttribute[]
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly status: { readonly code?: number }
}

export interface OtlpAttribute {
  readonly key: string
  readonly value: { readonly stringValue: string } | { readonly intValue: string }
}

export interface SpanExporter {
  add(span: OtlpSpan): void
  /** Sends the collected spans, within the time of one request. */
  close(): Promise<void>
}

/** An absent collector is logged so often. */
const LOG_INTERVAL_MS = 60_000

type ExporterSettings = Pick<
  TracingSettings,
  'endpoint' | 'headers' | 'timeoutMs' | 'gzip' | 'delayMs' | 'queued' | 'batch'
>

/** Sends spans in batches as OTLP over HTTP. Spans that cannot be sent are dropped and counted. No timer runs while there are none. */
export function openOtlpExporter(
  settings: ExporterSettings,
  resource: readonly OtlpAttribute[],
  scope: { readonly name: string; readonly version: string },
  log: Pick<Logger, 'warn'>,
): SpanExporter {
  let collectedSpans: OtlpSpan[] = []
  let timer: NodeJS.Timeout | undefined
  let sending: Promise<void> | undefined
  let droppedSpans = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  const closing = new AbortController()

  async function sendAll(): Promise<void> {
    while (collectedSpans.length > 0) {
      const spans = collectedSpans.slice(0, settings.batch)
      collectedSpans = collectedSpans.slice(settings.batch)
      try {
        await post(
          { resourceSpans: [{ resource: { attributes: resource }, scopeSpans: [{ scope, spans }] }] },
          settings,
          closing.signal,
        )
      } catch (error) {
        droppedSpans += spans.length
        logDropped(error)
      }
    }
  }

  function logDropped(error: unknown): void {
    if (performance.now() - loggedAt < LOG_INTERVAL_MS) return
    loggedAt = performance.now()
    log.warn({ reason: messageOf(error), spans: droppedSpans }, 'spans not sent to the collector')
    droppedSpans = 0
  }

  function send(): void {
    clearTimeout(timer)
    timer = undefined
    sending ??= sendAll().finally(() => {
      sending = undefined
      if (collectedSpans.length > 0) schedule()
    })
  }

  function schedule(): void {
    timer ??= setTimeout(send, settings.delayMs).unref()
  }

  return {
    add(span) {
      if (collectedSpans.length >= settings.queued) {
        droppedSpans += 1
        return
      }
      collectedSpans.push(span)
      if (collectedSpans.length >= settings.batch) send()
      else schedule()
    },
    async close() {
      clearTimeout(timer)
      const limit = setTimeout(() => closing.abort(), settings.timeoutMs)
      await sending
      await sendAll()
      clearTimeout(limit)
      clearTimeout(timer)
    },
  }
}

const compress = promisify(gzip)

async function post(
  document: object,
  { endpoint, headers, timeoutMs, gzip: isCompressed }: ExporterSettings,
  closing: AbortSignal,
): Promise<void> {
  const text = JSON.stringify(document)
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      ...(isCompressed && { 'content-encoding': 'gzip' }),
    },
    body: isCompressed ? new Uint8Array(await compress(text)) : text,
    redirect: 'error',
    signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), closing]),
  })
  await response.body?.cancel()
  if (!response.ok) throw new Error(`The collector answered with status ${response.status}.`)
}
