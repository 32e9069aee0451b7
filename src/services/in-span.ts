import type { ActiveSpan, SpanOptions, Tracer } from './tracer.js'

/** Runs work within a span if there is a tracer and a trace of the work is sampled. The span ends with the work. */
export async function inSpan<Result>(
  tracer: Tracer | undefined,
  name: string,
  options: SpanOptions,
  run: (span: ActiveSpan | undefined) => Promise<Result>,
): Promise<Result> {
  return endAfter(tracer?.begin(name, options), run)
}

/** Runs a part of the work of a span in a child span. */
export async function inChildSpan<Result>(
  parent: ActiveSpan | undefined,
  name: string,
  run: () => Promise<Result>,
): Promise<Result> {
  return endAfter(parent?.beginChild(name), run)
}

async function endAfter<Result>(
  span: ActiveSpan | undefined,
  run: (span: ActiveSpan | undefined) => Promise<Result>,
): Promise<Result> {
  if (span === undefined) return run(span)
  try {
    const result = await run(span)
    span.end()
    return result
  } catch (error) {
    span.end({ hasFailed: true })
    throw error
  }
}
