import type { PostQuery } from '../posts/posts-statement.js'
import { PERSON, USER, type Visibility, visibilityCondition } from '../posts/visibility.js'
import type { SeekParts } from '../sql/keyset-page.js'
import { gather, type MergedScan, type Scan } from '../sql/merged-scan.js'
import { closePage, nearPage, type Places } from './near-page.js'
import { notHidden } from './stream-conditions.js'
import { followedPosts, mentioningPosts, ownPosts, publicPosts, shownPosts, taggedPosts } from './stream-sources.js'

/** So many that the newest posts of everybody are likely to hold a page of theirs. */
const MANY_AUTHORS = 200
/** How many of these are looked through before each author is asked for. */
const LONGEST_WALK = 1_000

export interface PeopleStream {
  /** Whose posts, as rows of `person_id`. */
  readonly authors: string
  /** Which of the reader's own, as a condition. */
  readonly own: string
  /** Whether also what others write about what the reader follows, or to the reader. */
  readonly follows: boolean
}

/** A page of what people have written. What costs least comes first, so that the rest has less to look for. */
export function peopleStream(page: SeekParts, visibility: Visibility, { authors, own, follows }: PeopleStream): string {
  const merged = gather(page)
  merged.know('authors', keysOf(`select person_id from (${authors}) as authors where not ${isBlocked}`))
  merged.find('own', ownPosts(own))
  if (follows) merged.find('mentioning', mentioningPosts(visibility))
  if (visibility === 'readable') merged.find('shown_lately', walk(page, shownToReader, 'true'))
  merged.find('published_lately', walk(page, everybodys, `recent.public and ${areMany}`))
  if (follows) findFollowed(merged, 'public')
  if (visibility === 'readable') {
    merged.findOfEach(
      'shown',
      'authors',
      shownPosts('shown.author_id = key'),
      `${isNoPage(page, 'shown_lately')} and ${isMore(page)}`,
    )
  }
  merged.findOfEach('published', 'authors', publicPosts('posts.author_id = key'), isNoPage(page, 'published_lately'))
  return merged.statement()
}

/** The same for a page that is likely to end before a moment. */
export function nearPeopleStream(
  page: SeekParts,
  visibility: Visibility,
  { authors, own, follows }: PeopleStream,
  moment: string,
): PostQuery['which'] {
  const near = nearPage(page, moment)
  near.know('authors', `select array(${authors}) as keys`)
  const byThem = (author: string) => `${author} = any((select keys from authors)::bigint[])`

  const toAll: Places[] = [publicPosts(byThem('posts.author_id'))]
  const toReader: Places[] = [ownPosts(own)]
  if (visibility === 'readable') toReader.push(shownPosts(byThem('shown.author_id')))
  if (follows) {
    toAll.push(followedPosts('public'))
    const mentioning = mentioningPosts(visibility)
    toReader.push({ ...mentioning, from: `${mentioning.from} and ${mentioning.seen}` })
  }
  near.find('to_all', toAll)
  near.find('to_reader', toReader)
  return near.which(
    visibility === 'readable' ? `(posts.public or posts.id = any(${near.found('to_reader')}))` : 'posts.public',
  )
}

/** The same where few posts of all were written in that time: nobody asks each author. */
export function closePeopleStream(
  page: SeekParts,
  visibility: Visibility,
  { authors, own, follows }: PeopleStream,
  moment: string,
): PostQuery['which'] {
  const close = closePage(page, moment)
  const isOwn = `posts.author_id = ${PERSON}`
  const isShown = `posts.id = any(${close.idsOf(shownPosts('true'))})`
  const theirs = `select person_id from (${authors}) as authors where person_id = any(${close.authors})`
  const reasons = [`posts.author_id = any(array(${theirs}))`, `${isOwn} and ${own}`]
  if (follows) {
    reasons.push(`posts.public and posts.id = any(${close.idsOf(followedPosts('public'))})`)
    reasons.push(`posts.id = any(${close.idsOf(mentioningPosts(visibility))})`)
  }
  const isSeen = visibility === 'readable' ? `(posts.public or ${isOwn} or ${isShown})` : 'posts.public'
  return close.which(`${isSeen} and (${reasons.join(' or ')})`)
}

/** A page of what is posted under the tags that the reader follows. */
export function tagStream(page: SeekParts, visibility: Visibility): string {
  const merged = gather(page)
  findFollowed(merged, visibility)
  return merged.statement()
}

/** The same for a page that is likely to end before a moment. */
export function nearTagStream(page: SeekParts, visibility: Visibility, moment: string): PostQuery['which'] {
  const near = nearPage(page, moment)
  near.find('tagged', [followedPosts(visibility)])
  return near.which(visibilityCondition[visibility])
}

function findFollowed(merged: MergedScan, visibility: Visibility): void {
  merged.know('tags_followed', keysOf(`select tag_id from tag_followings where user_id = ${USER}`))
  merged.findOfEach('tagged', 'tags_followed', taggedPosts(visibility, 'key'))
}

/** The planner takes each list for one of ten, so that nobody's plan is made for the length of theirs. */
function keysOf(rows: string): string {
  return `select unnest(array(${rows})) as key`
}

const isBlocked = `(person_id in (select blocks.person_id from blocks where blocks.user_id = ${USER})) is true`

const everybodys: Omit<Scan, 'check'> = {
  from: 'select id, created_at as time, author_id, public from posts where true',
  ...{ time: 'created_at', id: 'id' },
}

const shownToReader: Omit<Scan, 'check'> = {
  from: `select post_id as id, created_at as time, author_id from post_visibilities where user_id = ${USER}`,
  ...{ time: 'created_at', id: 'post_id' },
}

/** Few authors are asked one by one in less time. */
const areMany = `(select count(*) from authors) >= ${MANY_AUTHORS}`

/** Those of the authors among the first of all. */
function walk(page: SeekParts, all: typeof everybodys, condition: string): string {
  return `
    select recent.id, recent.time from (${inOrder(page, all)} limit ${LONGEST_WALK}) as recent
    where ${condition} and (recent.author_id in (select key from authors)) is true and ${notHidden('recent.id')}
    ${page.order('recent.time', 'recent.id')} limit ${page.limit}`
}

function inOrder(page: SeekParts, { from, time, id }: typeof everybodys): string {
  return `${from} ${page.beyond(time, id)} ${page.order(time, id)}`
}

function isNoPage(page: SeekParts, set: string): string {
  return `(select count(*) from ${set}) < ${page.limit}`
}

/** The walk has not come to the end of what was shown to the reader. */
function isMore(page: SeekParts): string {
  return `exists (${inOrder(page, shownToReader)} offset ${LONGEST_WALK} limit 1)`
}
