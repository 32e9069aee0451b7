/** How often in a second of processor time something can be done: other work on the machine does not count against it. */
export type Rate = number

const MICROSECONDS_PER_PART = 300_000

/** Does `once` for a while and gives its rate. `messages` is how many it does at a time. */
export function rateOf(messages: number, once: () => void): Rate {
  const start = process.cpuUsage()
  let done = 0
  let microseconds = 0
  while (microseconds < MICROSECONDS_PER_PART) {
    once()
    done += messages
    const { user, system } = process.cpuUsage(start)
    microseconds = user + system
  }
  return (done / microseconds) * 1_000_000
}
