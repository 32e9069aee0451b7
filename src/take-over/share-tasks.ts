/**
 * Runs tasks in order, one at a time in each lane; the lanes work side by side. After a failure, each lane stops at its next task.
 */
export async function shareTasks<Lane, Task>(
  lanes: readonly Lane[],
  tasks: readonly Task[],
  signal: AbortSignal,
  work: (lane: Lane, task: Task) => Promise<void>,
): Promise<void> {
  const remainingTasks = [...tasks]
  const results = await Promise.allSettled(
    lanes.map(async (lane) => {
      try {
        for (let task = remainingTasks.shift(); task !== undefined; task = remainingTasks.shift()) {
          signal.throwIfAborted()
          await work(lane, task)
        }
      } catch (error) {
        remainingTasks.length = 0
        throw error
      }
    }),
  )
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
