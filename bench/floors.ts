/**
 * What a ratio must reach with `--check`. Where the goal that was set beforehand is not reached, a floor lies below the least that
 * a quiet machine has shown: it is there to catch whatever makes the pod slower. Decision 11 has all goals beside what is reached.
 */
export const FLOORS = {
  accept: { redis: 0.3, postgresql: 0.17 },
  unenvelop: 0.7,
  unenvelopInThreads: 0.7,
  private: 0.9,
  /** Times as fast as the gem. */
  peer: 4,
  persist: 0.27,
  inbound: { redis: { 2048: 0.18, 4096: 0.3 }, postgresql: { 2048: 0.15, 4096: 0.2 } },
  backlog: 0.6,
  hostile: { redis: 0.6, postgresql: 0.6 },
  /** Ordinary traffic may take three times as long while the pod is attacked. */
  attacked: 1 / 3,
  /** Processes on as many cores as before do the same work. */
  processes: 0.75,
  outbound: { public: 0.07, private: 0.1, fanout: 0.2 },
  hanging: { redis: 0.85, postgresql: 0.8 },
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
  /** Of a list on a large pod, beside the same on one of a hundredth of its size. */
  size: 0.8,
} as const
