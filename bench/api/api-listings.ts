import type { FLOORS } from '../floors.js'
import { type GeneratedPod, guidOf } from './generated-pod.js'

/** One list of the API with many variants of its request, so that the results are on different pages of the database. */
export interface Listing {
  readonly name: string
  readonly kind: keyof typeof FLOORS.list
  questions(pod: GeneratedPod): readonly { readonly path: string; readonly user: number }[]
  /** Whether that is the answer to the question of this number. */
  isRight(items: readonly Item[], pod: GeneratedPod, number: number): boolean
}

/** What is looked at in an answer. */
export interface Item {
  readonly guid: string
  readonly created_at: string
  readonly read?: boolean
  readonly author?: { readonly guid: string }
  readonly root?: object
  readonly poll?: object
  readonly participants?: readonly object[]
}

const QUESTIONS = 64
const A_PAGE = 15
/** Prime, so that they lie everywhere. */
const STEP = 7_919

/** The users who send the requests. */
export function readersOf({ users }: GeneratedPod): readonly number[] {
  return [...new Set(numbers().map((number) => 1 + ((number * STEP) % users)))]
}

export const listings: readonly Listing[] = [
  {
    name: 'posts of a person',
    kind: 'posts',
    questions: (pod) => numbers().map((number) => ask(pod, number, `/users/${person(pod, number)}/posts`)),
    isRight: (items, pod, number) =>
      isPage(items) &&
      newestFirst(items) &&
      items.every(({ author }) => author?.guid === person(pod, number)) &&
      items.some(({ root }) => root !== undefined) &&
      items.some(({ poll }) => poll !== undefined),
  },
  {
    name: 'posts, reader with many contacts',
    kind: 'posts',
    questions: (pod) =>
      numbers().map((number) => ({ ...ask(pod, number, `/users/${person(pod, number)}/posts`), user: pod.busyUser })),
    isRight: (items, pod, number) =>
      isPage(items) && newestFirst(items) && items.every(({ author }) => author?.guid === person(pod, number)),
  },
  {
    name: 'posts of a person with many posts',
    kind: 'posts',
    questions: (pod) => numbers().map((number) => ask(pod, number, `/users/${prolific(pod)}/posts`)),
    isRight: (items, pod) =>
      isPage(items) && newestFirst(items) && items.every(({ author }) => author?.guid === prolific(pod)),
  },
  {
    name: 'their posts, far down',
    kind: 'posts',
    questions: (pod) =>
      numbers().map((number) => {
        const before = new Date(Date.now() - (pod.posts / (2 + number / QUESTIONS)) * 1_000)
        return ask(pod, number, `/users/${prolific(pod)}/posts?before=${before.toISOString()}`)
      }),
    isRight: (items, pod) =>
      isPage(items) && newestFirst(items) && items.every(({ author }) => author?.guid === prolific(pod)),
  },
  {
    name: 'photos of a person',
    kind: 'page',
    questions: (pod) => numbers().map((number) => ask(pod, number, `/users/${person(pod, number)}/photos`)),
    isRight: (items) => isPage(items) && newestFirst(items),
  },
  {
    name: 'comments',
    kind: 'page',
    questions: (pod) =>
      numbers().map((number) => {
        // Not one of the posts whose first comment stands under the hot one, nor a private one.
        const post = 20 * (1 + ((number * STEP) % (pod.posts / 20 - 2))) + 2
        return ask(pod, number, `/posts/${guidOf('post', post)}/comments`)
      }),
    isRight: (items) => items.length === 5 && oldestFirst(items),
  },
  {
    name: 'comments of a hot post',
    kind: 'page',
    questions: (pod) => numbers().map((number) => ask(pod, number, `/posts/${guidOf('post', pod.hotPost)}/comments`)),
    isRight: (items) => isPage(items) && oldestFirst(items),
  },
  {
    name: 'a hundred of them, far down',
    kind: 'hundredComments',
    questions: (pod) =>
      numbers().map((number) => {
        const before = new Date(Date.now() - (pod.posts / (2 + number / QUESTIONS)) * 1_000)
        const query = `before=${before.toISOString()}&per_page=100`
        return ask(pod, number, `/posts/${guidOf('post', pod.hotPost)}/comments?${query}`)
      }),
    isRight: (items) => items.length === 100 && newestFirst(items),
  },
  {
    name: 'notifications',
    kind: 'notifications',
    questions: (pod) => numbers().map((number) => ask(pod, number, '/notifications')),
    isRight: (items) => isPage(items) && newestFirst(items),
  },
  {
    name: 'unread notifications',
    kind: 'notifications',
    questions: (pod) => numbers().map((number) => ask(pod, number, '/notifications?only_unread=true')),
    isRight: (items) => isPage(items) && newestFirst(items) && items.every(({ read }) => read === false),
  },
  {
    name: 'conversations',
    kind: 'page',
    questions: (pod) => numbers().map((number) => ask(pod, number, '/conversations')),
    isRight: (items) =>
      isPage(items) && newestFirst(items) && items.every(({ participants }) => participants?.length === 3),
  },
  {
    name: 'unread conversations',
    kind: 'page',
    questions: (pod) => numbers().map((number) => ask(pod, number, '/conversations?only_unread=true')),
    isRight: (items) => items.length === 10 && newestFirst(items) && items.every(({ read }) => read === false),
  },
  {
    name: 'messages',
    kind: 'page',
    questions: (pod) =>
      numbers().map((number) => {
        // One that the user has started.
        const conversation = reader(pod, number) - 1 + pod.users * (1 + (number % 99))
        return ask(pod, number, `/conversations/${guidOf('conversation', conversation)}/messages`)
      }),
    isRight: (items) => items.length === 5 && oldestFirst(items),
  },
  {
    name: 'people by name',
    kind: 'search',
    // The longest numbers; a person with one of them is the first result, and mostly the only one.
    questions: (pod) =>
      numbers().map((number) => ask(pod, number, `/search/users?name_or_handle=person%20${soughtPerson(pod, number)}`)),
    isRight: ([first], pod, number) => first?.guid === guidOf('person', soughtPerson(pod, number)),
  },
]

export function numbers(): readonly number[] {
  return Array.from({ length: QUESTIONS }, (_, number) => number)
}

export function reader({ users }: GeneratedPod, number: number): number {
  return 1 + ((number * STEP) % users)
}

export function ask(pod: GeneratedPod, number: number, path: string) {
  return { path: `/api/v1${path}`, user: reader(pod, number) }
}

/** A person who has shared private posts with this reader. */
function person(pod: GeneratedPod, number: number): string {
  const author = reader(pod, number) + pod.users * (number % 10)
  return guidOf('person', author)
}

function prolific(pod: GeneratedPod): string {
  return guidOf('person', pod.prolificAuthor)
}

function soughtPerson({ people }: GeneratedPod, number: number): number {
  return people - number
}

export function isPage(items: readonly Item[]): boolean {
  return items.length === A_PAGE
}

export function newestFirst(items: readonly Item[]): boolean {
  return items.every(({ created_at }, index) => created_at <= (items[index - 1]?.created_at ?? created_at))
}

function oldestFirst(items: readonly Item[]): boolean {
  return newestFirst(items.toReversed())
}
