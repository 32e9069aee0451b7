import type { FLOORS } from '../floors.js'
import { type GeneratedPod, guidOf } from './generated-pod.js'

/** A list of the API, with requests whose results are on different pages of the database. */
export interface Listing {
  readonly name: string
  readonly kind: keyof typeof FLOORS.list
  requests(pod: GeneratedPod): readonly ListRequest[]
  /** Whether the items are the correct response to the request of this number. */
  isCorrect(items: readonly Item[], pod: GeneratedPod, number: number): boolean
}

export interface ListRequest {
  readonly path: string
  /** Number of the user who sends the request. */
  readonly user: number
}

/** The fields of a list item that a bench checks. */
export interface Item {
  readonly guid: string
  readonly created_at: string
  readonly read?: boolean
  readonly author?: { readonly guid: string }
  readonly root?: object
  readonly poll?: object
  readonly participants?: readonly object[]
}

const REQUESTS = 64
const PAGE_SIZE = 15
/** A prime, so that the readers are distributed over all users. */
const STEP = 7_919

/** Numbers of the users who send the requests. */
export function readersOf({ users }: GeneratedPod): readonly number[] {
  return [...new Set(requestNumbers().map((number) => 1 + ((number * STEP) % users)))]
}

export const listings: readonly Listing[] = [
  {
    name: 'posts of a person',
    kind: 'posts',
    requests: (pod) =>
      requestNumbers().map((number) => requestOf(pod, number, `/users/${authorGuid(pod, number)}/posts`)),
    isCorrect: (items, pod, number) =>
      isFullPage(items) &&
      isNewestFirst(items) &&
      items.every(({ author }) => author?.guid === authorGuid(pod, number)) &&
      items.some(({ root }) => root !== undefined) &&
      items.some(({ poll }) => poll !== undefined),
  },
  {
    name: 'posts, reader with many contacts',
    kind: 'posts',
    requests: (pod) =>
      requestNumbers().map((number) => ({
        ...requestOf(pod, number, `/users/${authorGuid(pod, number)}/posts`),
        user: pod.busyUser,
      })),
    isCorrect: (items, pod, number) =>
      isFullPage(items) &&
      isNewestFirst(items) &&
      items.every(({ author }) => author?.guid === authorGuid(pod, number)),
  },
  {
    name: 'posts of a person with many posts',
    kind: 'posts',
    requests: (pod) =>
      requestNumbers().map((number) => requestOf(pod, number, `/users/${prolificAuthorGuid(pod)}/posts`)),
    isCorrect: (items, pod) =>
      isFullPage(items) &&
      isNewestFirst(items) &&
      items.every(({ author }) => author?.guid === prolificAuthorGuid(pod)),
  },
  {
    name: 'their posts, far down',
    kind: 'posts',
    requests: (pod) =>
      requestNumbers().map((number) => {
        const before = new Date(Date.now() - (pod.posts / (2 + number / REQUESTS)) * 1_000)
        return requestOf(pod, number, `/users/${prolificAuthorGuid(pod)}/posts?before=${before.toISOString()}`)
      }),
    isCorrect: (items, pod) =>
      isFullPage(items) &&
      isNewestFirst(items) &&
      items.every(({ author }) => author?.guid === prolificAuthorGuid(pod)),
  },
  {
    name: 'photos of a person',
    kind: 'page',
    requests: (pod) =>
      requestNumbers().map((number) => requestOf(pod, number, `/users/${authorGuid(pod, number)}/photos`)),
    isCorrect: (items) => isFullPage(items) && isNewestFirst(items),
  },
  {
    name: 'comments',
    kind: 'page',
    requests: (pod) =>
      requestNumbers().map((number) => {
        // A public post whose first comment does not belong to the hot post.
        const post = 20 * (1 + ((number * STEP) % (pod.posts / 20 - 2))) + 2
        return requestOf(pod, number, `/posts/${guidOf('post', post)}/comments`)
      }),
    isCorrect: (items) => items.length === 5 && isOldestFirst(items),
  },
  {
    name: 'comments of a hot post',
    kind: 'page',
    requests: (pod) =>
      requestNumbers().map((number) => requestOf(pod, number, `/posts/${guidOf('post', pod.hotPost)}/comments`)),
    isCorrect: (items) => isFullPage(items) && isOldestFirst(items),
  },
  {
    name: 'a hundred of them, far down',
    kind: 'hundredComments',
    requests: (pod) =>
      requestNumbers().map((number) => {
        const before = new Date(Date.now() - (pod.posts / (2 + number / REQUESTS)) * 1_000)
        const query = `before=${before.toISOString()}&per_page=100`
        return requestOf(pod, number, `/posts/${guidOf('post', pod.hotPost)}/comments?${query}`)
      }),
    isCorrect: (items) => items.length === 100 && isNewestFirst(items),
  },
  {
    name: 'notifications',
    kind: 'notifications',
    requests: (pod) => requestNumbers().map((number) => requestOf(pod, number, '/notifications')),
    isCorrect: (items) => isFullPage(items) && isNewestFirst(items),
  },
  {
    name: 'unread notifications',
    kind: 'notifications',
    requests: (pod) => requestNumbers().map((number) => requestOf(pod, number, '/notifications?only_unread=true')),
    isCorrect: (items) => isFullPage(items) && isNewestFirst(items) && items.every(({ read }) => read === false),
  },
  {
    name: 'conversations',
    kind: 'page',
    requests: (pod) => requestNumbers().map((number) => requestOf(pod, number, '/conversations')),
    isCorrect: (items) =>
      isFullPage(items) && isNewestFirst(items) && items.every(({ participants }) => participants?.length === 3),
  },
  {
    name: 'unread conversations',
    kind: 'page',
    requests: (pod) => requestNumbers().map((number) => requestOf(pod, number, '/conversations?only_unread=true')),
    isCorrect: (items) => items.length === 10 && isNewestFirst(items) && items.every(({ read }) => read === false),
  },
  {
    name: 'messages',
    kind: 'page',
    requests: (pod) =>
      requestNumbers().map((number) => {
        // A conversation that the user has started.
        const conversation = readerOf(pod, number) - 1 + pod.users * (1 + (number % 99))
        return requestOf(pod, number, `/conversations/${guidOf('conversation', conversation)}/messages`)
      }),
    isCorrect: (items) => items.length === 5 && isOldestFirst(items),
  },
  {
    name: 'people by name',
    kind: 'search',
    // The people with the longest numbers: each is the first result, and usually the only one.
    requests: (pod) =>
      requestNumbers().map((number) =>
        requestOf(pod, number, `/search/users?name_or_handle=person%20${searchedPerson(pod, number)}`),
      ),
    isCorrect: ([first], pod, number) => first?.guid === guidOf('person', searchedPerson(pod, number)),
  },
]

export function requestNumbers(): readonly number[] {
  return Array.from({ length: REQUESTS }, (_, number) => number)
}

export function readerOf({ users }: GeneratedPod, number: number): number {
  return 1 + ((number * STEP) % users)
}

export function requestOf(pod: GeneratedPod, number: number, path: string): ListRequest {
  return { path: `/api/v1${path}`, user: readerOf(pod, number) }
}

/** Guid of a person who has shared private posts with this reader. */
function authorGuid(pod: GeneratedPod, number: number): string {
  const author = readerOf(pod, number) + pod.users * (number % 10)
  return guidOf('person', author)
}

function prolificAuthorGuid(pod: GeneratedPod): string {
  return guidOf('person', pod.prolificAuthor)
}

function searchedPerson({ people }: GeneratedPod, number: number): number {
  return people - number
}

export function isFullPage(items: readonly Item[]): boolean {
  return items.length === PAGE_SIZE
}

export function isNewestFirst(items: readonly Item[]): boolean {
  return items.every(({ created_at }, index) => created_at <= (items[index - 1]?.created_at ?? created_at))
}

function isOldestFirst(items: readonly Item[]): boolean {
  return isNewestFirst(items.toReversed())
}
