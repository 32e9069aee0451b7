/** Sends the due deliveries of one pod. */
type DeliverToPod = (podId: number) => Promise<void>

interface InProcessDeliveriesOptions {
  /** Pods that may be delivered to at a time; the others get jobs. */
  readonly maxConcurrent: number
  readonly run: DeliverToPod
}

/**
 * Delivers to reachable pods in the process that has written the deliveries, right after their commit. A job of the queue costs more
 * statements than the delivery. When the process dies, the sweeper adds a job for the pod.
 */
export interface InProcessDeliveries {
  /** Delivers from now on, until the returned function is called. */
  serve(options: InProcessDeliveriesOptions): () => void
  /** While stopped, all pods get jobs. */
  stop(isStopped: boolean): void
  /** Starts deliveries to the pods for which there is capacity, and returns the other pods. */
  start(podIds: readonly number[]): readonly number[]
}

export function openInProcessDeliveries(): InProcessDeliveries {
  let server: InProcessDeliveriesOptions | undefined
  let isStopped = false
  /** The pods of running deliveries. True: more was written for the pod in the meantime, so that its run is followed by another. */
  const running = new Map<number, boolean>()

  async function runUntilNoneFollows(run: DeliverToPod, podId: number): Promise<void> {
    try {
      do {
        running.set(podId, false)
        await run(podId)
      } while (running.get(podId))
    } catch {
      // The sweeper finds the deliveries.
    } finally {
      running.delete(podId)
    }
  }

  return {
    serve(options) {
      server = options
      return () => {
        if (server === options) server = undefined
      }
    },

    stop(stopped) {
      isStopped = stopped
    },

    start(podIds) {
      const serving = isStopped ? undefined : server
      if (serving === undefined) return podIds
      return podIds.filter((podId) => {
        if (running.has(podId)) {
          running.set(podId, true)
          return false
        }
        if (running.size >= serving.maxConcurrent) return true
        void runUntilNoneFollows(serving.run, podId)
        return false
      })
    },
  }
}
