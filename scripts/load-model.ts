/** Assumed use per account. An operator can replace each value by that of their own pod. */
export const ORDINARY = {
  /** Share of accounts that are active on an ordinary day. */
  activeShare: 0.15,
  /** Activity of one active account in a day. */
  postsPerDay: 0.5,
  reactionsPerDay: 4,
  /** Requests of the clients of an active account, and the share of lists, which a replica can serve. */
  requestsPerDay: 150,
  listShare: 0.8,
  /** The people that an account follows, and the share of remote ones. */
  contacts: 60,
  shareElsewhere: 0.7,
  /** Share of limited posts. */
  privateShare: 0.2,
  /** Share of the followers who receive such a post. */
  audienceShare: 0.5,
  /** Pods that a public post goes to, and reactions to a post; each is relayed to all pods with the post. */
  podsPerPost: 25,
  reactionsPerPost: 6,
  /** Pictures of a post, pictures that a client loads per API request, their size, and the size of an original. */
  photosPerPost: 0.3,
  picturesPerRequest: 2,
  pictureBytes: 60_000,
  photoBytes: 1_500_000,
  /** People in the rest of the network: the maximum that a user can follow. */
  network: 1_000_000,
  /** Ratio of the busiest second of a day to the mean. */
  peak: 5,
  /** A row of a message, with its indexes. */
  rowBytes: 1_400,
} as const

export type Habits = { readonly [Name in keyof typeof ORDINARY]: number }

/** Assumed hardware. */
export const HARDWARE = {
  /** Threads of a worker process, each for a core. */
  threads: 2,
  databaseCores: 16,
  /** Planned load. The rest is for bursts and for failed machines. */
  maxBusyShare: 0.6,
  webConnections: 10,
  workerConnections: 20,
} as const

export type Hardware = { readonly [Name in keyof typeof HARDWARE]: number }

/** Parts of a pod that can be scaled separately. */
export const TIERS = ['web', 'worker', 'postgres', 'redis'] as const
export type Tier = (typeof TIERS)[number]

/** Kinds of work of a pod. */
export const ACTIVITIES = ['public message in', 'private message in', 'delivery out', 'request', 'write'] as const
export type Activity = (typeof ACTIVITIES)[number]

/** Microseconds of processor time per activity and tier. */
export type Costs = Readonly<Record<Activity, Readonly<Record<Tier, number>>>>

export interface Forecast {
  readonly people: number
  /** Activities in the busiest second. */
  readonly perSecond: Readonly<Record<Activity, number>>
  readonly tiers: readonly TierForecast[]
  readonly first: Tier
  readonly connections: number
  /** Read replicas for the lists, if the primary serves everything else. 0: none are needed. */
  readonly replicas: number
  readonly rowGigabytesPerYear: number
  readonly photoGigabytesPerYear: number
  /** Traffic of pictures in the busiest second. */
  readonly pictureMegabits: number
}

interface TierForecast {
  readonly tier: Tier
  /** Busy cores in the busiest second. */
  readonly cores: number
  /** Number of processes that keeps each below the planned load. */
  readonly processes: number
  /** Share of the planned load of one process, or of the database. */
  readonly load: number
}

const SECONDS_OF_A_DAY = 86_400
/** Share of a list request that the primary serves even with a replica: the lookup of the token. */
const LEFT_TO_PRIMARY = 0.1

/** The work of a pod with this number of people, and its cost. */
export function forecast(people: number, habits: Habits, hardware: Hardware, costs: Costs): Forecast {
  const perDay = activitiesPerDay(people, habits)
  const perSecond = mapKeys(ACTIVITIES, (activity) => (perDay[activity] / SECONDS_OF_A_DAY) * habits.peak)
  const coresOf = (tier: Tier) => sum(ACTIVITIES.map((activity) => (perSecond[activity] * costs[activity][tier]) / 1e6))
  const tiers = TIERS.map((tier) => {
    const cores = coresOf(tier)
    const load = cores / (coresOfOne(tier, hardware) * hardware.maxBusyShare)
    return { tier, cores, load, processes: tier === 'web' || tier === 'worker' ? Math.max(1, Math.ceil(load)) : 1 }
  })
  const processesOf = (wanted: Tier) => tiers.find(({ tier }) => tier === wanted)?.processes ?? 1
  const requestCores = (perSecond.request * costs.request.postgres) / 1e6
  const lists = requestCores * habits.listShare * (1 - LEFT_TO_PRIMARY)
  const databaseCores = hardware.databaseCores * hardware.maxBusyShare
  const [first] = tiers.toSorted((one, other) => other.load - one.load)
  return {
    people,
    perSecond,
    tiers,
    first: first?.tier ?? 'web',
    connections: processesOf('web') * hardware.webConnections + processesOf('worker') * hardware.workerConnections,
    replicas: coresOf('postgres') <= databaseCores ? 0 : Math.ceil(lists / databaseCores),
    rowGigabytesPerYear: (rowsPerDay(people, habits) * 365 * habits.rowBytes) / 1e9,
    photoGigabytesPerYear:
      (people * habits.activeShare * habits.postsPerDay * habits.photosPerPost * 365 * habits.photoBytes) / 1e9,
    pictureMegabits: (perSecond.request * habits.picturesPerRequest * habits.pictureBytes * 8) / 1e6,
  }
}

/** Maximum number of people with which one process of a tier, or the database, stays below the planned load. */
export function maximumPeople(tier: Tier, habits: Habits, hardware: Hardware, costs: Costs): number {
  const isFull = (people: number) => {
    const found = forecast(people, habits, hardware, costs).tiers.find((each) => each.tier === tier)
    return found !== undefined && found.load > 1
  }
  let [enough, tooMany] = [0, 1]
  while (!isFull(tooMany) && tooMany < 1e9) [enough, tooMany] = [tooMany, tooMany * 2]
  while (tooMany - enough > Math.max(1, enough / 1_000)) {
    const middle = (enough + tooMany) / 2
    if (isFull(middle)) tooMany = middle
    else enough = middle
  }
  return enough
}

/** Remote people whom a local user follows: the more users a pod has, the more of the network they follow already. */
function followedElsewhere(people: number, { contacts, shareElsewhere, network }: Habits): number {
  return network * (1 - Math.exp((-people * contacts * shareElsewhere) / network))
}

/** Stored rows per day. A message is stored once for all its recipients. */
function rowsPerDay(people: number, habits: Habits): number {
  const { activeShare, postsPerDay, reactionsPerDay, reactionsPerPost, shareElsewhere } = habits
  const active = people * activeShare
  const fromElsewhere = followedElsewhere(people, habits) * activeShare * postsPerDay * (1 + reactionsPerPost)
  return fromElsewhere + active * (postsPerDay * (1 + reactionsPerPost * shareElsewhere) + reactionsPerDay)
}

/** Activities per day. A pod receives a public message once, and a private message once per recipient. */
function activitiesPerDay(people: number, habits: Habits): Readonly<Record<Activity, number>> {
  const { contacts, shareElsewhere, activeShare, postsPerDay, reactionsPerPost, privateShare } = habits
  const active = people * activeShare
  const follows = people * contacts * shareElsewhere
  const followed = followedElsewhere(people, habits)
  const ownPosts = active * postsPerDay
  const withReactions = 1 + reactionsPerPost
  const publicPosts = (authors: number) => authors * activeShare * postsPerDay * (1 - privateShare)
  const privatePosts = (receivers: number) =>
    receivers * activeShare * postsPerDay * privateShare * habits.audienceShare
  const reactionsElsewhere = active * habits.reactionsPerDay * shareElsewhere
  return {
    'public message in': publicPosts(followed) * withReactions + ownPosts * reactionsPerPost * shareElsewhere,
    'private message in': privatePosts(follows) * withReactions,
    'delivery out':
      ownPosts *
        ((1 - privateShare) * habits.podsPerPost + privateShare * habits.audienceShare * contacts * shareElsewhere) *
        withReactions +
      reactionsElsewhere,
    request: active * habits.requestsPerDay,
    write: active * (postsPerDay + habits.reactionsPerDay),
  }
}

/** A web process has one event loop and Redis one thread; a worker waits for its threads most of the time. */
function coresOfOne(tier: Tier, { threads, databaseCores }: Hardware): number {
  if (tier === 'worker') return threads
  return tier === 'postgres' ? databaseCores : 1
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function mapKeys<Key extends string, Value>(keys: readonly Key[], value: (key: Key) => Value): Record<Key, Value> {
  return Object.fromEntries(keys.map((key) => [key, value(key)])) as Record<Key, Value> // one for each key
}
