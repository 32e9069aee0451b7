import { ask, type Item, isPage, type Listing, newestFirst, numbers, reader } from './api-listings.js'
import type { GeneratedPod } from './generated-pod.js'

const STREAMS = ['main', 'activity', 'aspects', 'mentions', 'tags', 'liked', 'commented'] as const
/** In whose names these are written. */
const MENTIONS = 10

/** Every stream, and the search for posts. */
export const streamListings: readonly Listing[] = [
  ...STREAMS.map((stream): Listing => {
    return listing(`stream ${stream}`, (pod, number) => ask(pod, number, `/streams/${stream}`), expected(stream))
  }),
  listing('stream main, far down', (pod, number) => ask(pod, number, `/streams/main?before=${halfway(pod, number)}`)),
  {
    ...listing(
      'stream main, a hundred',
      (pod, number) => ask(pod, number, '/streams/main?per_page=100'),
      () => 100,
    ),
    kind: 'hundredPosts',
  },
  listing('stream of one aspect', (pod, number) => {
    return ask(pod, number, `/streams/aspects?aspect_ids=[${reader(pod, number)}]`)
  }),
  ...(['main', 'activity'] as const).map((stream) => {
    return listing(`stream ${stream}, reader with many contacts`, (pod) => ({
      path: `/api/v1/streams/${stream}`,
      user: pod.busyUser,
    }))
  }),
  listing('posts with a tag', (pod, number) => ask(pod, number, `/search/posts?tag=tag${2 + number}`)),
  listing('posts with a hot tag, far down', (pod, number) => {
    return ask(pod, number, `/search/posts?tag=tag${pod.hotTag}&before=${halfway(pod, number)}`)
  }),
]

type Question = ReturnType<Listing['questions']>[number]

function listing(
  name: string,
  question: (pod: GeneratedPod, number: number) => Question,
  length?: (pod: GeneratedPod, number: number) => number,
): Listing {
  const isLong = (items: readonly Item[], pod: GeneratedPod, number: number) =>
    length === undefined ? isPage(items) : items.length === length(pod, number)
  return {
    name,
    kind: 'stream',
    questions: (pod) => numbers().map((number) => question(pod, number)),
    isRight: (items, pod, number) => isLong(items, pod, number) && newestFirst(items),
  }
}

function expected(stream: (typeof STREAMS)[number]): Parameters<typeof listing>[2] {
  if (stream === 'mentions') return () => MENTIONS
  return undefined
}

function halfway(pod: GeneratedPod, number: number): string {
  return new Date(Date.now() - (pod.posts / 2 + number) * 1_000).toISOString()
}
