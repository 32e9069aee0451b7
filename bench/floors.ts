/**
 * The ratio that `--check` requires. Where the goal is not reached, the floor is a little below the lowest value of a quiet
 * machine, so that a slower pod fails: docs/decisions/0011-benchmark-floors.md. Goals: docs/measurements/benchmark-floors.md.
 */
export const FLOORS = {
  lived: {
    stored: { redis: 0.3, postgresql: 0.3 },
    done: { redis: 0.2, postgresql: 0.2 },
    /** Processor time of the cryptography of a message, as a part of all its processor time, by messages a second. */
    rates: { 18: 0.045, 60: 0.055, 300: 0.11 },
  },
  /** 1 000 filters on the longest text take at most 5 ms. */
  filters: 1,
  accept: { redis: 0.3, postgresql: 0.17 },
  unenvelop: 0.7,
  unenvelopInThreads: 0.7,
  private: 0.9,
  /** Speed compared with the Ruby gem. */
  peer: 4,
  persist: 0.27,
  inbound: { redis: { 2048: 0.18, 4096: 0.3 }, postgresql: { 2048: 0.15, 4096: 0.2 } },
  backlog: 0.6,
  hostile: { redis: 0.6, postgresql: 0.6 },
  /** Ordinary traffic may take three times as long while the pod is attacked. */
  attacked: 1 / 3,
  /** Several processes on the same cores, compared with one web and one worker process. */
  processes: 0.75,
  outbound: { public: 0.07, private: 0.1, fanout: 0.2 },
  hanging: { redis: 0.85, postgresql: 0.8 },
  /** A post to many pods compared with bare POSTs; 2 s compared with the 99th percentile of other posts during a fan-out. */
  deliveries: { healthy: 0.3, duringFanOut: 1 },
  discovery: 0.1,
  list: {
    page: 0.13,
    notifications: 0.11,
    posts: 0.09,
    stream: 0.06,
    hundredComments: 0.06,
    hundredPosts: 0.028,
    search: 0.08,
  },
  /** The 99th percentile of the API without a backup, compared with the one during the daily backup. */
  backup: 0.66,
  /** A list on a large pod, compared with the same list on a pod of a hundredth of its size. */
  size: 0.8,
} as const
