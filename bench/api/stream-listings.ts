import {
  type Item,
  isFullPage,
  isNewestFirst,
  type Listing,
  type ListRequest,
  readerOf,
  requestNumbers,
  requestOf,
} from './api-listings.js'
import type { GeneratedPod } from './generated-pod.js'

const STREAMS = ['main', 'activity', 'aspects', 'mentions', 'tags', 'liked', 'commented'] as const
/** Length of the stream of mentions. */
const MENTIONS = 10

/** Every stream, and the search for posts. */
export const streamListings: readonly Listing[] = [
  ...STREAMS.map((stream): Listing => {
    return listing(`stream ${stream}`, (pod, number) => requestOf(pod, number, `/streams/${stream}`), lengthOf(stream))
  }),
  listing('stream main, far down', (pod, number) =>
    requestOf(pod, number, `/streams/main?before=${dateOfMiddle(pod, number)}`),
  ),
  {
    ...listing(
      'stream main, a hundred',
      (pod, number) => requestOf(pod, number, '/streams/main?per_page=100'),
      () => 100,
    ),
    kind: 'hundredPosts',
  },
  listing('stream of one aspect', (pod, number) => {
    return requestOf(pod, number, `/streams/aspects?aspect_ids=[${readerOf(pod, number)}]`)
  }),
  ...(['main', 'activity'] as const).map((stream) => {
    return listing(`stream ${stream}, reader with many contacts`, (pod) => ({
      path: `/api/v1/streams/${stream}`,
      user: pod.busyUser,
    }))
  }),
  listing('posts with a tag', (pod, number) => requestOf(pod, number, `/search/posts?tag=tag${2 + number}`)),
  listing('posts with a hot tag, far down', (pod, number) => {
    return requestOf(pod, number, `/search/posts?tag=tag${pod.hotTag}&before=${dateOfMiddle(pod, number)}`)
  }),
]

function listing(
  name: string,
  buildRequest: (pod: GeneratedPod, number: number) => ListRequest,
  length?: (pod: GeneratedPod, number: number) => number,
): Listing {
  const isComplete = (items: readonly Item[], pod: GeneratedPod, number: number) =>
    length === undefined ? isFullPage(items) : items.length === length(pod, number)
  return {
    name,
    kind: 'stream',
    requests: (pod) => requestNumbers().map((number) => buildRequest(pod, number)),
    isCorrect: (items, pod, number) => isComplete(items, pod, number) && isNewestFirst(items),
  }
}

function lengthOf(stream: (typeof STREAMS)[number]): Parameters<typeof listing>[2] {
  if (stream === 'mentions') return () => MENTIONS
  return undefined
}

function dateOfMiddle(pod: GeneratedPod, number: number): string {
  return new Date(Date.now() - (pod.posts / 2 + number) * 1_000).toISOString()
}
