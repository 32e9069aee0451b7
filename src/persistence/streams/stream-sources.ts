import { inSight, PERSON, type Sight, USER } from '../posts/visibility.js'
import { hasRow } from '../sql/has-row.js'
import type { Scan } from '../sql/merged-scan.js'
import { notBlocked, notHidden } from './stream-conditions.js'

/** Posts that are found in another table; whether the reader is shown one of them is a condition on `posts`. */
export interface ScanOfCopies extends Scan {
  readonly post: string
  /** Whether it is in sight. */
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
export function mentioningPosts(sight: Sight): ScanOfCopies {
  return through(sight, 'mentions', { where: `mentions.person_id = ${PERSON} and mentions.post_id is not null` })
}

/** The tag is an expression. */
export function taggedPosts(sight: Sight, tag: string): ScanOfCopies {
  return through(sight, 'taggings', { where: `taggings.tag_id = ${tag} and taggings.post_id is not null` })
}

/** Under any tag that the reader follows. */
export function followedPosts(sight: Sight): ScanOfCopies {
  return taggedPosts(sight, `any(array(select tag_id from tag_followings where user_id = ${USER}))`)
}

export function likedPosts(sight: Sight): ScanOfCopies {
  const where = `likes.author_id = ${PERSON} and likes.post_created_at is not null and likes.positive`
  return through(sight, 'likes', { where, time: 'post_created_at' })
}

/** Under some of them the reader has said more than one thing. */
export function commentedPosts(sight: Sight): Scan {
  const where = `comments.author_id = ${PERSON} and comments.post_created_at is not null`
  return { ...through(sight, 'comments', { where, time: 'post_created_at' }), repeats: true }
}

/** What the reader has written or hears of, by when somebody last said something. */
export function involvingPosts(sight: Sight): ScanOfCopies {
  const hearsOf = hasRow(
    `participations where participations.author_id = ${PERSON} and participations.post_id = posts.id`,
  )
  const post = `(posts.author_id = ${PERSON} or ${hearsOf})`
  return through(sight, 'involvements', { where: `involvements.user_id = ${USER}`, post, time: 'interacted_at' })
}

/** By way of a table that has a copy of what orders the posts. */
function through(
  sight: Sight,
  table: string,
  { where, post = 'true', time = 'created_at' }: { where: string; post?: string; time?: string },
): ScanOfCopies {
  const conditions = [post, inSight[sight], notHidden('posts.id'), notBlocked('posts.author_id')].join(' and ')
  const such = (condition: string) => hasRow(`posts where posts.id = ${table}.post_id and ${condition}`)
  return {
    from: `${table} where ${where}`,
    check: such(conditions),
    seen: such(inSight[sight]),
    post: conditions,
    time: `${table}.${time}`,
    id: `${table}.post_id`,
  }
}
