import {
  type BackgroundTaskDependencies,
  type BackgroundTaskHandler,
  type BackgroundTaskHandlers,
  runBackgroundTask,
} from '../../../src/domain/operations/background-tasks.js'

/** Runs the unfinished operations of these kinds to their end, as a worker does. Returns their ids. */
export async function finishBackgroundTasks(
  pod: BackgroundTaskDependencies,
  handlers: Partial<BackgroundTaskHandlers>,
): Promise<readonly number[]> {
  const ids: readonly number[] = await pod
    .db('operations')
    .whereIn('kind', Object.keys(handlers))
    .whereIn('state', ['queued', 'running'])
    .orderBy('id')
    .pluck('id')
  for (const operationId of ids) {
    await runBackgroundTask(
      pod,
      { data: { operationId }, finish: async () => {} },
      handlers,
      new AbortController().signal,
    )
  }
  return ids
}

/** The handlers with a step at the end of the transaction of each chunk. */
export function withChunkStep(
  handlers: Partial<BackgroundTaskHandlers>,
  step: (chunk: { readonly done: number; readonly skipped: number }) => void,
): Partial<BackgroundTaskHandlers> {
  return Object.fromEntries(
    Object.entries(handlers).map(([kind, handler]) => {
      const runChunk: BackgroundTaskHandler['runChunk'] = async (...args) => {
        const chunk = await handler.runChunk(...args)
        step(chunk)
        return chunk
      }
      return [kind, { ...handler, runChunk }]
    }),
  )
}

/** The handlers of a worker that crashes before the commit of a chunk. */
export function crashInChunk(
  handlers: Partial<BackgroundTaskHandlers>,
  number: number,
): Partial<BackgroundTaskHandlers> {
  let chunks = 0
  return withChunkStep(handlers, () => {
    chunks += 1
    if (chunks === number) throw new Error('the worker dies')
  })
}
