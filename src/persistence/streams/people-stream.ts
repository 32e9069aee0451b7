import type { SelectPosts } from '../posts/posts-statement.js'
import { VIEWER_PERSON_ID_SQL, VIEWER_USER_ID_SQL, type Visibility, visibilityCondition } from '../posts/visibility.js'
import type { KeysetClauseBuilder } from '../sql/keyset-page.js'
import { type MergedScans, mergeScans, type PostScan } from '../sql/merged-scan.js'
import {
  mentioningPosts,
  ownPosts,
  postsWithFollowedTags,
  publicPosts,
  sharedPosts,
  taggedPosts,
} from './post-scans.js'
import { notHiddenSql } from './stream-conditions.js'
import { createSparseWindowPage, createWindowPage, type WindowScan } from './window-page.js'

/** Number of authors from which the newest public posts of the whole pod are likely to contain a page of their posts. */
const MANY_AUTHORS = 200
/** The newest posts of the whole pod that are read before the posts of each author. */
const RECENT_POSTS = 1_000

/** A stream of the posts of people: the main stream, or that of aspects. */
export interface PeopleStream {
  /** The authors, as a select of `person_id`. */
  readonly authors: string
  /** The viewer's own posts in the stream, as a condition. */
  readonly ownCondition: string
  /** The stream also has posts with followed tags and posts that mention the viewer, by any author. */
  readonly hasTagsAndMentions: boolean
}

/**
 * Selects a page of `id` and `time` from the whole stream.
 *
 * Merges one index scan per reason for which a post is in the stream. Cheap scans come first: their posts bound how far the others read.
 * Indexes: `posts_of_author` for own posts and public posts of authors, `mentions_of_person`, `taggings_of_tag`,
 * `post_visibilities_of_author` for shared posts. The scans `recent_…` read `post_visibilities_newest` and `posts_newest` for the
 * authors among the newest posts of all; if these fill a page, the authors are not read one by one.
 */
export function peopleStreamSql(
  page: KeysetClauseBuilder,
  visibility: Visibility,
  { authors, ownCondition, hasTagsAndMentions }: PeopleStream,
): string {
  const mergedScans = mergeScans(page)
  mergedScans.defineRows(
    'authors',
    keysSql(`select person_id from (${authors}) as authors where not ${IS_BLOCKED_SQL}`),
  )
  mergedScans.addPosts('own_posts', ownPosts(ownCondition))
  if (hasTagsAndMentions) mergedScans.addPosts('mentioning_posts', mentioningPosts(visibility))
  if (visibility === 'readable') mergedScans.addPosts('recent_shared', recentPostsSql(page, allSharedPosts, 'true'))
  mergedScans.addPosts('recent_public', recentPostsSql(page, allPosts, `recent.public and ${HAS_MANY_AUTHORS_SQL}`))
  if (hasTagsAndMentions) addPostsWithFollowedTags(mergedScans, 'public')
  if (visibility === 'readable') {
    mergedScans.addPostsOfEachKey(
      'shared_posts',
      'authors',
      sharedPosts('shared.author_id = key'),
      `${doesNotFillPageSql(page, 'recent_shared')} and ${hasMoreSharedPostsSql(page)}`,
    )
  }
  mergedScans.addPostsOfEachKey(
    'public_posts',
    'authors',
    publicPosts('posts.author_id = key'),
    doesNotFillPageSql(page, 'recent_public'),
  )
  return mergedScans.toSql()
}

/**
 * Selects a page of the same stream from a time window. Indexes: `posts_of_author`, `post_visibilities_of_author`, `taggings_of_tag` and
 * `mentions_of_person`, each with a range of times.
 */
export function peopleStreamInWindow(
  page: KeysetClauseBuilder,
  visibility: Visibility,
  { authors, ownCondition, hasTagsAndMentions }: PeopleStream,
  windowEnd: string,
): SelectPosts {
  const windowPage = createWindowPage(page, windowEnd)
  windowPage.defineRows('authors', `select array(${authors}) as ids`)
  const isByAuthors = (authorId: string) => `${authorId} = any((select ids from authors)::bigint[])`

  const publicScans: WindowScan[] = [publicPosts(isByAuthors('posts.author_id'))]
  const viewerScans: WindowScan[] = [ownPosts(ownCondition)]
  if (visibility === 'readable') viewerScans.push(sharedPosts(isByAuthors('shared.author_id')))
  if (hasTagsAndMentions) {
    publicScans.push(postsWithFollowedTags('public'))
    const mentioningScan = mentioningPosts(visibility)
    viewerScans.push({ ...mentioningScan, from: `${mentioningScan.from} and ${mentioningScan.isPostVisible}` })
  }
  windowPage.addCandidates('public_ids', publicScans)
  windowPage.addCandidates('viewer_ids', viewerScans)
  return windowPage.selectPosts(
    visibility === 'readable'
      ? `(posts.public or posts.id = any(${windowPage.candidateIds('viewer_ids')}))`
      : 'posts.public',
  )
}

/**
 * Selects a page of the same stream from a window in which the whole pod has few posts. Reads all of them by `posts_newest` and checks
 * the reasons for each. Contacts are looked up only for the authors of these posts.
 */
export function peopleStreamInSparseWindow(
  page: KeysetClauseBuilder,
  visibility: Visibility,
  { authors, ownCondition, hasTagsAndMentions }: PeopleStream,
  windowEnd: string,
): SelectPosts {
  const windowPage = createSparseWindowPage(page, windowEnd)
  const isOwn = `posts.author_id = ${VIEWER_PERSON_ID_SQL}`
  const isShared = `posts.id = any(${windowPage.idsInWindow(sharedPosts('true'))})`
  const authorsInWindow = `select person_id from (${authors}) as authors where person_id = any(${windowPage.authorIds})`
  const reasons = [`posts.author_id = any(array(${authorsInWindow}))`, `${isOwn} and ${ownCondition}`]
  if (hasTagsAndMentions) {
    reasons.push(`posts.public and posts.id = any(${windowPage.idsInWindow(postsWithFollowedTags('public'))})`)
    reasons.push(`posts.id = any(${windowPage.idsInWindow(mentioningPosts(visibility))})`)
  }
  const isVisible = visibility === 'readable' ? `(posts.public or ${isOwn} or ${isShared})` : 'posts.public'
  return windowPage.selectPosts(`${isVisible} and (${reasons.join(' or ')})`)
}

/** Selects a page of `id` and `time` of the posts with followed tags, tag by tag. Index `taggings_of_tag`. */
export function tagStream(page: KeysetClauseBuilder, visibility: Visibility): string {
  const mergedScans = mergeScans(page)
  addPostsWithFollowedTags(mergedScans, visibility)
  return mergedScans.toSql()
}

/** Selects a page of the same stream from a time window. */
export function tagStreamInWindow(page: KeysetClauseBuilder, visibility: Visibility, windowEnd: string): SelectPosts {
  const windowPage = createWindowPage(page, windowEnd)
  windowPage.addCandidates('tagged_ids', [postsWithFollowedTags(visibility)])
  return windowPage.selectPosts(visibilityCondition[visibility])
}

function addPostsWithFollowedTags(merged: MergedScans, visibility: Visibility): void {
  const tagIds = `select tag_id from tag_followings where user_id = ${VIEWER_USER_ID_SQL}`
  merged.defineRows('followed_tags', keysSql(tagIds))
  merged.addPostsOfEachKey('tagged_posts', 'followed_tags', taggedPosts(visibility, 'key'))
}

/** Selects ids as `key`. The planner assumes ten elements for the array, so that the plan does not depend on the viewer's list. */
function keysSql(ids: string): string {
  return `select unnest(array(${ids})) as key`
}

const IS_BLOCKED_SQL = `(person_id in (select blocks.person_id from blocks where blocks.user_id = ${VIEWER_USER_ID_SQL})) is true`

type RecentScan = Omit<PostScan, 'check'>

/** Index `posts_newest`. */
const allPosts: RecentScan = {
  from: 'select id, created_at as time, author_id, public from posts where true',
  time: 'created_at',
  id: 'id',
}

/** The private posts shared with the viewer, by any author. Index `post_visibilities_newest`. */
const allSharedPosts: RecentScan = {
  from: `select post_id as id, created_at as time, author_id from post_visibilities where user_id = ${VIEWER_USER_ID_SQL}`,
  time: 'created_at',
  id: 'post_id',
}

/** Whether there are many authors. The posts of few authors are read faster author by author. */
const HAS_MANY_AUTHORS_SQL = `(select count(*) from authors) >= ${MANY_AUTHORS}`

/** Selects the posts of the authors among the newest posts of a scan. */
function recentPostsSql(page: KeysetClauseBuilder, scan: RecentScan, condition: string): string {
  return `
    select recent.id, recent.time from (${orderedPostsSql(page, scan)} limit ${RECENT_POSTS}) as recent
    where ${condition} and (recent.author_id in (select key from authors)) is true and ${notHiddenSql('recent.id')}
    ${page.orderBy('recent.time', 'recent.id')} limit ${page.limit}`
}

function orderedPostsSql(page: KeysetClauseBuilder, { from, time, id }: RecentScan): string {
  return `${from} ${page.pastKey(time, id)} ${page.orderBy(time, id)}`
}

function doesNotFillPageSql(page: KeysetClauseBuilder, postSet: string): string {
  return `(select count(*) from ${postSet}) < ${page.limit}`
}

/** The viewer has more shared posts than `recent_shared` has read. */
function hasMoreSharedPostsSql(page: KeysetClauseBuilder): string {
  return `exists (${orderedPostsSql(page, allSharedPosts)} offset ${RECENT_POSTS} limit 1)`
}
