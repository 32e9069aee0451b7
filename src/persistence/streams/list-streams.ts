import type { Knex } from 'knex'
import { type ListedPost, listedPosts, type Reader } from '../posts/list-posts.js'
import type { PostQuery } from '../posts/posts-statement.js'
import { USER, type Visibility } from '../posts/visibility.js'
import { type Page, pageOf, type SeekParts, seekParts, type TimePage } from '../sql/keyset-page.js'
import { firstOf } from '../sql/merged-scan.js'
import { opaqueParam } from '../sql/opaque-param.js'
import {
  closePeopleStream,
  nearPeopleStream,
  nearTagStream,
  type PeopleStream,
  peopleStream,
  tagStream,
} from './people-stream.js'
import { type Reach, reachesOf } from './stream-reach.js'
import {
  commentedPosts,
  involvingPosts,
  likedPosts,
  mentioningPosts,
  type ScanOfCopies,
  taggedPosts,
} from './stream-sources.js'

/** Every stream leaves out what the reader has hidden, and whatever people have written whom the reader blocks. */
export type Stream = keyof typeof streams

export interface StreamQuery {
  readonly visibility: Visibility
  readonly page: TimePage
}

/** A page of a stream, as the reader sees it. */
export async function listedStream(
  db: Knex,
  reader: Reader,
  { stream, ...query }: StreamQuery & { readonly stream: Stream },
): Promise<Page<ListedPost>> {
  return listed(db, reader, query, { name: stream, source: streams[stream], values: [] })
}

/** Posts of the people in some of the reader's aspects, and own posts that everybody sees or that were shared with these. */
export async function listedAspectStream(
  db: Knex,
  reader: Reader,
  { aspectIds, ...query }: StreamQuery & { readonly aspectIds: readonly number[] },
): Promise<Page<ListedPost>> {
  return listed(db, reader, query, { name: 'aspects', source: ofSomeAspects, values: [aspectIds] })
}

/** Posts under one tag. */
export async function listedPostsWithTag(
  db: Knex,
  reader: Reader,
  { tag, ...query }: StreamQuery & { readonly tag: string },
): Promise<Page<ListedPost>> {
  return listed(db, reader, query, { name: 'tag', source: underOneTag, values: [tag] })
}

interface Source {
  /** Finds a page, wherever its posts lie. */
  which(page: SeekParts, visibility: Visibility): PostQuery['which']
  /** Finds a page that is likely to end before a moment. */
  near?(page: SeekParts, visibility: Visibility, moment: string): PostQuery['which']
  /** The same where few posts of all were written in that time. */
  close?(page: SeekParts, visibility: Visibility, moment: string): PostQuery['which']
}

interface Named {
  readonly name: string
  readonly source: Source
  /** From $3 on. */
  readonly values: readonly unknown[]
}

/** What is gathered from many places is looked for where the last page was; if that is no page, everywhere. */
async function listed(db: Knex, reader: Reader, query: StreamQuery, stream: Named): Promise<Page<ListedPost>> {
  const { page } = query
  if (stream.source.near === undefined) return pageOf(await listedPosts(db, reader, wholeQuery(query, stream)), page)

  const reaches = reachesOf(db)
  const place = { userId: reader.userId, stream: `${stream.name} ${query.visibility} ${stream.values}`, page }
  const reach = reaches.of(place)
  const near = reach && (await listedPosts(db, reader, nearQuery(query, stream, reach)))
  const found = near && isPage(near, page, reach) ? near : await listedPosts(db, reader, wholeQuery(query, stream))
  reaches.learn(place, found, near?.length === 0)
  return pageOf(found, page)
}

/** It is full; or there is no more, in all there is. Nothing says nothing: it is also what is found where too much is to read. */
function isPage(near: readonly ListedPost[], { limit }: TimePage, { moment }: Reach): boolean {
  return near.length > limit || (moment === undefined && near.length > 0)
}

function wholeQuery({ visibility, page }: StreamQuery, { name, source, values: first }: Named): PostQuery {
  const values = [...first]
  const parts = partsOf(page, values)
  return {
    name: `stream ${name} ${visibility} ${parts.name}`,
    most: parts.most,
    which: (columns) => source.which(parts, visibility)(columns),
    values,
  }
}

function nearQuery({ visibility, page }: StreamQuery, { name, source, values: first }: Named, reach: Reach): PostQuery {
  const values = [...first, reach.moment ?? '-infinity']
  const moment = opaqueParam(`$${values.length + 2}`, 'timestamptz')
  const parts = partsOf(page, values)
  const way = reach.close && source.close !== undefined ? 'close' : 'near'
  return {
    name: `stream ${name} ${visibility} ${parts.name}, ${way}`,
    most: parts.most,
    which(columns) {
      const which = source[way]?.(parts, visibility, moment)
      if (which === undefined) throw new Error(`The stream ${name} is found in one way only.`)
      return which(columns)
    },
    values,
  }
}

function partsOf(page: TimePage, values: unknown[]): SeekParts {
  const parts = seekParts(page, values, { firstValue: 3 })
  return { ...parts, limit: opaqueParam(parts.limit, 'bigint') }
}

/** The places are rows of `id` and `time`. Each is looked up: a join could be done by reading all posts there are. */
function postsAt(page: SeekParts, places: string, condition = 'true'): PostQuery['which'] {
  return (columns) => `
    select ${columns}
    from (${places}) as place
    cross join lateral (select * from posts where posts.id = place.id and ${condition} offset 0) as posts
    ${page.order('place.time', 'place.id')} limit ${page.limit}`
}

const SOME = opaqueParam('$3', 'bigint[]')

/** Who is in any aspect, which is whom the reader shares with. */
const filed = `select person_id from contacts where user_id = ${USER} and receiving`

const filedInSome = `
  select person_id from contacts
  where user_id = ${USER}
    and id = any(array(select contact_id from aspect_memberships where aspect_id = any(${SOME}::bigint[])))`

const shownToSome = `(posts.public or (
  select true from post_aspects where post_aspects.post_id = posts.id and post_aspects.aspect_id = any(${SOME}::bigint[]) limit 1
) is true)`

const ownPostsVisible: Readonly<Record<Visibility, string>> = { public: 'posts.public', readable: 'true' }

/** Why a post is in the main stream is told once more in `stream-membership.ts`, from the side of the posts. */
const streams = {
  main: ofPeople((visibility) => ({ authors: filed, own: ownPostsVisible[visibility], follows: true })),
  'all aspects': ofPeople((visibility) => ({ authors: filed, own: ownPostsVisible[visibility], follows: false })),
  activity: inOneTable(involvingPosts),
  mentions: inOneTable(mentioningPosts),
  tags: {
    which: (page, visibility) => postsAt(page, tagStream(page, visibility)),
    near: nearTagStream,
  },
  liked: inOneTable(likedPosts),
  commented: { which: (page, visibility) => postsAt(page, firstOf(page, commentedPosts(visibility))) },
} as const satisfies Readonly<Record<string, Source>>

const ofSomeAspects = ofPeople(() => ({ authors: filedInSome, own: shownToSome, follows: false }))

const underOneTag = inOneTable((visibility) =>
  taggedPosts(visibility, '(select tags.id from tags where tags.name = $3)'),
)

function ofPeople(peopleFor: (visibility: Visibility) => PeopleStream): Source {
  return {
    which: (page, visibility) => postsAt(page, peopleStream(page, visibility, peopleFor(visibility))),
    near: (page, visibility, moment) => nearPeopleStream(page, visibility, peopleFor(visibility), moment),
    close: (page, visibility, moment) => closePeopleStream(page, visibility, peopleFor(visibility), moment),
  }
}

function inOneTable(scan: (visibility: Visibility) => ScanOfCopies): Source {
  return {
    which(page, visibility) {
      const { from, time, id, post } = scan(visibility)
      return postsAt(page, `select ${id} as id, ${time} as time from ${from} ${page.beyond(time, id)}`, post)
    },
  }
}
