import {
  type BackgroundTaskDependencies,
  type BackgroundTaskHandler,
  type BackgroundTaskHandlers,
  runBackgroundTask,
} from '../../../src/domain/operations/background-tasks.js'

/** Runs the unfinished operations of these kinds to their end, as a worker does. Returns their ids. */
export async function finishBackgroundTasks(
  pod: BackgroundTaskDependencies,
  works: Partial<BackgroundTaskHandlers>,
): Promise<readonly number[]> {
  const ids: readonly number[] = await pod
    .db('operations')
    .whereIn('kind', Object.keys(works))
    .whereIn('state', ['queued', 'running'])
    .orderBy('id')
    .pluck('id')
  for (const operationId of ids) {
    await runBackgroundTask(pod, { data: { operationId }, finish: async () => {} }, works, new AbortController().signal)
  }
  return ids
}

/** The works, with a step at the end of the transaction of each chunk. */
export function withChunkStep(
  works: Partial<BackgroundTaskHandlers>,
  step: (chunk: { readonly done: number; readonly skipped: number }) => void,
): Partial<BackgroundTaskHandlers> {
  return Object.fromEntries(
    Object.entries(works).map(([kind, work]) => {
      const runChunk: BackgroundTaskHandler['runChunk'] = async (...given) => {
        const chunk = await work.runChunk(...given)
        step(chunk)
        return chunk
      }
      return [kind, { ...work, runChunk }]
    }),
  )
}

/** The works of a worker that dies before the commit of a chunk. */
export function crashInChunk(works: Partial<BackgroundTaskHandlers>, number: number): Partial<BackgroundTaskHandlers> {
  let chunks = 0
  return withChunkStep(works, () => {
    chunks += 1
    if (chunks === number) throw new Error('the worker dies')
  })
}
