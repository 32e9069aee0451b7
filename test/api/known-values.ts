import fc from 'fast-check'
import { seldom, times } from './hostile-values.js'

export type PoolName =
  | 'person_guid'
  | 'own_guid'
  | 'post_guid'
  | 'comment_guid'
  | 'photo_guid'
  | 'poll_answer'
  | 'conversation_guid'
  | 'message_guid'
  | 'notification_id'
  | 'aspect_id'
  | 'export_id'
  | 'import_id'
  | 'tag'
  | 'tokens'

/**
 * Something that is there when the request is sent: what a pool has in a place by then. Without a place it has that of the
 * request, where things belong together.
 */
export class Known {
  readonly pool: PoolName
  readonly place: number | undefined

  constructor(pool: PoolName, place?: number) {
    this.pool = pool
    this.place = place
  }

  toJSON(): string {
    return `${this.pool} ${this.place ?? ''}`
  }
}

/** Where a path gives a value another name than elsewhere, or needs only some of the values of that name. */
const inPaths: readonly (readonly [beginning: string, pool: PoolName])[] = [
  ['/conversations/{guid}', 'conversation_guid'],
  ['/aspects/{id}', 'aspect_id'],
  ['/tag_followings/{name}', 'tag'],
  ['/users/{person_guid}/contacts', 'own_guid'],
]

/** Values that mean something as this parameter of a path; undefined: any will do. */
export function knownInPath(path: string, name: string): fc.Arbitrary<unknown> | undefined {
  const [, pool] = inPaths.find(([start]) => path.startsWith(start) && start.includes(`{${name}}`)) ?? []
  return pool === undefined ? arbitraryOfParameter(name) : arbitraryOfPool(pool)
}

/** The same under a name in a body or a query. */
export function arbitraryOfParameter(name: string): fc.Arbitrary<unknown> | undefined {
  return Object.hasOwn(byName, name) ? byName[name] : undefined
}

function arbitraryOfPool(pool: PoolName): fc.Arbitrary<Known> {
  return seldom(
    fc.constant(new Known(pool)),
    fc.nat(99).map((place) => new Known(pool, place)),
  )
}

function few(pool: PoolName, minLength = 0): fc.Arbitrary<readonly Known[]> {
  return fc.uniqueArray(fc.nat(5), { minLength, maxLength: 2 }).map((places) => {
    return places.map((place) => new Known(pool, place))
  })
}

const byName: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  person_guid: arbitraryOfPool('person_guid'),
  person: arbitraryOfPool('person_guid'),
  recipients: few('person_guid', 1),
  post_guid: arbitraryOfPool('post_guid'),
  comment_guid: arbitraryOfPool('comment_guid'),
  photo_guid: arbitraryOfPool('photo_guid'),
  export_id: arbitraryOfPool('export_id'),
  import_id: arbitraryOfPool('import_id'),
  message_guid: arbitraryOfPool('message_guid'),
  photos: few('photo_guid'),
  poll_answer: arbitraryOfPool('poll_answer'),
  notification_id: arbitraryOfPool('notification_id'),
  aspect_id: arbitraryOfPool('aspect_id'),
  aspects: few('aspect_id'),
  aspect_ids: fc.oneof(few('aspect_id'), fc.constantFrom('[]', '[1,2]', '1', 'all', '[1,', '')),
  tag: arbitraryOfPool('tag'),
  query: fc.constantFrom('te', '#T', 'ca', '<3', '#', '%'),
  name_or_handle: fc.constantFrom('bo', 'alice@', 'Pod.Example', 'a b', '%%', 'x'),
  filter: fc.constantFrom('contacts', 'contacts:sharing', 'contacts:receiving', 'aspect:1,2', 'aspect:0', 'contact'),
  before: times,
  after: times,
  only_after: times,
  birthday: fc.oneof(times, fc.constantFrom('1004-02-29', '1984-02-30', '', '9999-12-31', '0000-01-01', '10000-01-01')),
}
