import { PERSON, USER, type Visibility, visibilityCondition } from '../posts/visibility.js'
import { hasRow } from '../sql/has-row.js'
import type { Scan } from '../sql/merged-scan.js'
import { notBlocked, notHidden } from './stream-conditions.js'

/** Posts that are found in another table; whether the reader is shown one of them is a condition on `posts`. */
export interface ScanOfCopies extends Scan {
  readonly post: string
  /** Whether the post is visible. */
  readonly seen: string
}

/** Of what the reader has written. */
export function ownPosts(condition: string): Scan {
  return {
    from: `posts where posts.author_id = ${PERSON} and ${condition}`,
    check: notHidden('posts.id'),
    time: 'posts.created_at',
    id: 'posts.id',
  }
}

/** What authors have written for everybody for whom a condition holds. */
export function publicPosts(byThem: string): Scan {
  return {
    from: `posts where ${byThem} and posts.public`,
    check: notHidden('posts.id'),
    time: 'posts.created_at',
    id: 'posts.id',
  }
}

/** What such authors have shown to the reader among others. */
export function shownPosts(byThem: string): Scan {
  return {
    from: `post_visibilities as shown where shown.user_id = ${USER} and ${byThem}`,
    check: notHidden('shown.post_id'),
    time: 'shown.created_at',
    id: 'shown.post_id',
  }
}

/** Posts, not comments, that name the reader. */
export function mentioningPosts(visibility: Visibility): ScanOfCopies {
  return through(visibility, 'mentions', { where: `mentions.person_id = ${PERSON} and mentions.post_id is not null` })
}

/** The tag is an expression. */
export function taggedPosts(visibility: Visibility, tag: string): ScanOfCopies {
  return through(visibility, 'taggings', { where: `taggings.tag_id = ${tag} and taggings.post_id is not null` })
}

/** Under any tag that the reader follows. */
export function followedPosts(visibility: Visibility): ScanOfCopies {
  return taggedPosts(visibility, `any(array(select tag_id from tag_followings where user_id = ${USER}))`)
}

export function likedPosts(visibility: Visibility): ScanOfCopies {
  const where = `likes.author_id = ${PERSON} and likes.post_created_at is not null and likes.positive`
  return through(visibility, 'likes', { where, time: 'post_created_at' })
}

/** Under some of them the reader has said more than one thing. */
export function commentedPosts(visibility: Visibility): Scan {
  const where = `comments.author_id = ${PERSON} and comments.post_created_at is not null`
  return { ...through(visibility, 'comments', { where, time: 'post_created_at' }), repeats: true }
}

/** What the reader has written or hears of, by when somebody last said something. */
export function involvingPosts(visibility: Visibility): ScanOfCopies {
  const hearsOf = hasRow(
    `participations where participations.author_id = ${PERSON} and participations.post_id = posts.id`,
  )
  const post = `(posts.author_id = ${PERSON} or ${hearsOf})`
  return through(visibility, 'activity_entries', {
    where: `activity_entries.user_id = ${USER}`,
    post,
    time: 'interacted_at',
  })
}

/** By way of a table that has a copy of what orders the posts. */
function through(
  visibility: Visibility,
  table: string,
  { where, post = 'true', time = 'created_at' }: { where: string; post?: string; time?: string },
): ScanOfCopies {
  const conditions = [post, visibilityCondition[visibility], notHidden('posts.id'), notBlocked('posts.author_id')].join(
    ' and ',
  )
  const such = (condition: string) => hasRow(`posts where posts.id = ${table}.post_id and ${condition}`)
  return {
    from: `${table} where ${where}`,
    check: such(conditions),
    seen: such(visibilityCondition[visibility]),
    post: conditions,
    time: `${table}.${time}`,
    id: `${table}.post_id`,
  }
}
