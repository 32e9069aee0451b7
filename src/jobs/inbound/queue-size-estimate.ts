/** The size of a job of packed messages. */
export interface PackedSize {
  readonly messages: number
  readonly bytes: number
}

/** Estimates the size of a queue that counts only jobs. */
export interface QueueSizeEstimate {
  /** A job on its way to the queue; one of the functions reports the result. */
  add(job: PackedSize): { acknowledged(): void; failed(): void }
  /** Called before the jobs of the queue are counted; the function takes their number. */
  beginCount(): (jobs: number) => void
  total(): PackedSize
}

interface Entry extends PackedSize {
  /** The first count that is sure to include the job: it was in the queue when the count began. */
  countedFrom: number
}

/**
 * Assumes that the oldest jobs of this process have ended first. Of jobs of other processes only the number is known; each is
 * estimated by the average of the recent jobs of this process.
 */
export function openQueueSizeEstimate(): QueueSizeEstimate {
  const average = { messages: 1, bytes: 4 * 1024 }
  const total = { messages: 0, bytes: 0 }
  let ownEntries: Entry[] = []
  let jobsOfOthers = 0
  let counts = 0

  function addToTotal({ messages, bytes }: PackedSize, sign: 1 | -1): void {
    total.messages += sign * messages
    total.bytes += sign * bytes
  }

  function removeOldest(jobs: number, count: number): void {
    let removedEntries = 0
    ownEntries = ownEntries.filter((entry) => {
      if (entry.countedFrom > count || removedEntries === jobs) return true
      removedEntries += 1
      addToTotal(entry, -1)
      return false
    })
  }

  return {
    add(job) {
      const entry: Entry = { ...job, countedFrom: Number.POSITIVE_INFINITY }
      ownEntries.push(entry)
      addToTotal(entry, 1)
      return {
        acknowledged() {
          entry.countedFrom = counts + 1
          average.messages += (job.messages - average.messages) / JOBS_OF_AVERAGE
          average.bytes += (job.bytes - average.bytes) / JOBS_OF_AVERAGE
        },
        failed() {
          const index = ownEntries.lastIndexOf(entry)
          if (index === -1) return
          ownEntries.splice(index, 1)
          addToTotal(entry, -1)
        },
      }
    },

    beginCount() {
      counts += 1
      const count = counts
      return (jobs) => {
        const countedEntries = ownEntries.filter(({ countedFrom }) => countedFrom <= count).length
        removeOldest(Math.max(0, countedEntries - jobs), count)
        jobsOfOthers = Math.max(0, jobs - ownEntries.length)
      }
    },

    total: () => ({
      messages: Math.round(total.messages + jobsOfOthers * average.messages),
      bytes: Math.round(total.bytes + jobsOfOthers * average.bytes),
    }),
  }
}

/** The weight of a job in the average is one divided by this. */
const JOBS_OF_AVERAGE = 16
