/** Delivers what is due for one pod. */
type DeliverToPod = (podId: number) => Promise<void>

interface DirectDeliveriesOptions {
  /** Pods that may be delivered to at a time; the others get jobs. */
  readonly atOnce: number
  readonly run: DeliverToPod
}

/**
 * Delivers to proven pods in the process that has written the deliveries, right after their commit. A job of the queue costs more
 * statements than the delivery. When the process dies, the sweeper adds a job for the pod.
 */
export interface DirectDeliveries {
  /** Delivers from now on, until the returned function is called. */
  serve(options: DirectDeliveriesOptions): () => void
  /** While stopped, all pods get jobs. */
  stop(isStopped: boolean): void
  /** Starts deliveries to the pods for which there is capacity, and returns the other pods. */
  start(podIds: readonly number[]): readonly number[]
}

export function openDirectDeliveries(): DirectDeliveries {
  let server: DirectDeliveriesOptions | undefined
  let isStopped = false
  /** The pods of running deliveries. True: more was written for the pod meanwhile, so that its run is followed by another. */
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
        if (running.size >= serving.atOnce) return true
        void runUntilNoneFollows(serving.run, podId)
        return false
      })
    },
  }
}
