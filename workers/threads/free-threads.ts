/** The threads that have no task. */
export interface FreeThreads {
  /** Tasks that wait for a thread. */
  readonly waiting: number
  /** Resolves when a thread is free for the task. Tasks with an earlier due time come first. Rejects when the signal is aborted. */
  take(dueAt: number, signal: AbortSignal): Promise<void>
  giveBack(): void
}

interface WaitingTask {
  readonly dueAt: number
  start(): void
}

/**
 * Orders the tasks of the crypto threads by their due times. In the order of their addition, hundreds of public messages, which a thread
 * verifies in milliseconds, would wait for a dozen private ones, which it decrypts in a tenth of a second. The queue of the pool cannot
 * order tasks that have a timeout.
 */
export function openFreeThreads(threads: number): FreeThreads {
  const waitingTasks: WaitingTask[] = []
  let free = threads

  function add(task: WaitingTask): void {
    const index = waitingTasks.findLastIndex(({ dueAt }) => dueAt <= task.dueAt) + 1
    waitingTasks.splice(index, 0, task)
  }

  return {
    get waiting() {
      return waitingTasks.length
    },

    take(dueAt, signal) {
      if (free > 0) {
        free -= 1
        return Promise.resolve()
      }
      return new Promise((resolve, reject) => {
        const task: WaitingTask = {
          dueAt,
          start() {
            signal.removeEventListener('abort', giveUp)
            resolve()
          },
        }
        function giveUp(): void {
          waitingTasks.splice(waitingTasks.indexOf(task), 1)
          reject(signal.reason)
        }
        signal.addEventListener('abort', giveUp, { once: true })
        add(task)
      })
    },

    giveBack() {
      const next = waitingTasks.shift()
      if (next === undefined) free += 1
      else next.start()
    },
  }
}
