/**
 * Runs tasks in order, one at a time on each connection, and on all connections at the same time. After a failure no further task begins.
 */
export async function shareTasks<Connection, Task>(
  connections: readonly Connection[],
  tasks: readonly Task[],
  signal: AbortSignal,
  work: (connection: Connection, task: Task) => Promise<void>,
): Promise<void> {
  const remainingTasks = [...tasks]
  const results = await Promise.allSettled(
    connections.map(async (connection) => {
      try {
        for (let task = remainingTasks.shift(); task !== undefined; task = remainingTasks.shift()) {
          signal.throwIfAborted()
          await work(connection, task)
        }
      } catch (error) {
        remainingTasks.length = 0
        throw error
      }
    }),
  )
  const rejection = results.find((result) => result.status === 'rejected')
  if (rejection !== undefined) throw rejection.reason
}
