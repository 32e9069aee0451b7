/** What a job of gathered messages holds. */
export interface Packed {
  readonly messages: number
  readonly bytes: number
}

/** How much is in a queue that only tells how many jobs it has. */
export interface Ledger {
  /** A job on its way to the queue; the functions tell whether it has arrived. */
  add(job: Packed): { arrived(): void; failed(): void }
  /** Begins a look at the queue; the function takes how many jobs there are. */
  look(): (jobs: number) => void
  total(): Packed
}

interface Entry extends Packed {
  /** The look before which it was in the queue; what was on its way meanwhile may be seen or not. */
  seenFrom: number
}

/**
 * Those of the longest ago are the ones that have gone. Of jobs by other processes nothing is known but their number; they are
 * taken for as large as ours lately.
 */
export function openLedger(): Ledger {
  const lately = { messages: 1, bytes: 4 * 1024 }
  const total = { messages: 0, bytes: 0 }
  let ours: Entry[] = []
  let others = 0
  let looks = 0

  function count({ messages, bytes }: Packed, sign: 1 | -1): void {
    total.messages += sign * messages
    total.bytes += sign * bytes
  }

  function forgetOldest(jobs: number, look: number): void {
    let gone = 0
    ours = ours.filter((entry) => {
      if (entry.seenFrom > look || gone === jobs) return true
      gone += 1
      count(entry, -1)
      return false
    })
  }

  return {
    add(job) {
      const entry: Entry = { ...job, seenFrom: Number.POSITIVE_INFINITY }
      ours.push(entry)
      count(entry, 1)
      return {
        arrived() {
          entry.seenFrom = looks + 1
          lately.messages += (job.messages - lately.messages) / WEIGHT
          lately.bytes += (job.bytes - lately.bytes) / WEIGHT
        },
        failed() {
          const index = ours.lastIndexOf(entry)
          if (index === -1) return
          ours.splice(index, 1)
          count(entry, -1)
        },
      }
    },

    look() {
      looks += 1
      const now = looks
      return (jobs) => {
        const seen = ours.filter(({ seenFrom }) => seenFrom <= now).length
        forgetOldest(Math.max(0, seen - jobs), now)
        others = Math.max(0, jobs - ours.length)
      }
    },

    total: () => ({
      messages: Math.round(total.messages + others * lately.messages),
      bytes: Math.round(total.bytes + others * lately.bytes),
    }),
  }
}

/** How many jobs it takes until the average has forgotten the earlier ones. */
const WEIGHT = 16
