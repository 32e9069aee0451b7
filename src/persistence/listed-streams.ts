import type { Knex } from 'knex'
import { firstOf } from './gather.js'
import { type ListedPost, listedPosts, type Reader } from './listed-posts.js'
import { type Page, pageOf, type SeekParts, seekParts, type TimePage, unseen } from './paged.js'
import { peopleStream, tagStream } from './people-stream.js'
import { type Sight, USER } from './sight.js'
import { commentedPosts, involvingPosts, likedPosts, mentioningPosts, taggedPosts } from './stream-sources.js'

/** Every stream leaves out what the reader has hidden, and whatever people have written whom the reader blocks. */
export type Stream = keyof typeof streams

export interface StreamQuery {
  readonly sight: Sight
  readonly page: TimePage
}

/** A page of a stream, as the reader sees it. */
export async function listedStream(
  db: Knex,
  reader: Reader,
  { stream, ...query }: StreamQuery & { readonly stream: Stream },
): Promise<Page<ListedPost>> {
  return listed(db, reader, query, { name: stream, which: streams[stream] })
}

/** Posts of the people in some of the reader's aspects, and own posts that everybody sees or that were shared with these. */
export async function listedAspectStream(
  db: Knex,
  reader: Reader,
  { aspectIds, ...query }: StreamQuery & { readonly aspectIds: readonly number[] },
): Promise<Page<ListedPost>> {
  return listed(db, reader, query, { name: 'aspects', which: ofSomeAspects, values: [aspectIds] })
}

/** Posts under one tag. */
export async function listedPostsWithTag(
  db: Knex,
  reader: Reader,
  { tag, ...query }: StreamQuery & { readonly tag: string },
): Promise<Page<ListedPost>> {
  return listed(db, reader, query, { name: 'tag', which: underOneTag, values: [tag] })
}

type Which = (page: SeekParts, sight: Sight) => string

interface Named {
  readonly name: string
  readonly which: Which
  /** From $3 on. */
  readonly values?: readonly unknown[]
}

async function listed(
  db: Knex,
  reader: Reader,
  { sight, page }: StreamQuery,
  { name, which, values: first = [] }: Named,
): Promise<Page<ListedPost>> {
  const values = [...first]
  const seen = seekParts(page, values, { firstValue: 3 })
  const parts = { ...seen, limit: unseen(seen.limit, 'bigint') }
  const found = await listedPosts(db, reader, {
    name: `stream ${name} ${sight} ${parts.name}`,
    most: parts.most,
    which: which(parts, sight),
    values,
  })
  return pageOf(found, page)
}

const SOME = unseen('$3', 'bigint[]')

/** Who is in any aspect, which is whom the reader shares with. */
const filed = `select person_id from contacts where user_id = ${USER} and receiving`

const filedInSome = `
  select distinct contacts.person_id
  from aspects
  join aspect_memberships on aspect_memberships.aspect_id = aspects.id
  join contacts on contacts.id = aspect_memberships.contact_id
  where aspects.user_id = ${USER} and aspects.id = any(${SOME}::bigint[])`

const shownToSome = `(posts.public or (
  select true from post_aspects where post_aspects.post_id = posts.id and post_aspects.aspect_id = any(${SOME}::bigint[]) limit 1
) is true)`

const ownInSight: Readonly<Record<Sight, string>> = { public: 'posts.public', readable: 'true' }

/** Why a post is in the main stream is told once more in `stream-membership.ts`, from the side of the posts. */
const streams = {
  main: (page, sight) => peopleStream(page, sight, { authors: filed, own: ownInSight[sight], follows: true }),
  'all aspects': (page, sight) => peopleStream(page, sight, { authors: filed, own: ownInSight[sight], follows: false }),
  activity: (page, sight) => firstOf(page, involvingPosts(sight)),
  mentions: (page, sight) => firstOf(page, mentioningPosts(sight)),
  tags: tagStream,
  liked: (page, sight) => firstOf(page, likedPosts(sight)),
  commented: (page, sight) => firstOf(page, commentedPosts(sight)),
} as const satisfies Readonly<Record<string, Which>>

const ofSomeAspects: Which = (page, sight) =>
  peopleStream(page, sight, { authors: filedInSome, own: shownToSome, follows: false })

const underOneTag: Which = (page, sight) =>
  firstOf(page, taggedPosts(sight, '(select tags.id from tags where tags.name = $3)'))
