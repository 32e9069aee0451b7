import type { Scan } from './gather.js'
import { hasRow } from './has-row.js'
import { inSight, PERSON, type Sight, USER } from './sight.js'
import { notBlocked, notHidden } from './stream-conditions.js'

/** Of what the reader has written. */
export function ownPosts(condition: string): Scan {
  return {
    from: `posts where posts.author_id = ${PERSON} and ${condition} and ${notHidden('posts.id')}`,
    time: 'posts.created_at',
    id: 'posts.id',
  }
}

/** What these people have written for everybody; the author is an expression. */
export function publicPostsBy(author: string): Scan {
  return {
    from: `posts where posts.author_id = ${author} and posts.public and ${notHidden('posts.id')}`,
    time: 'posts.created_at',
    id: 'posts.id',
  }
}

/** What they have shown to the reader among others. */
export function shownPostsBy(author: string): Scan {
  return {
    from: `
      post_visibilities as shown
      where shown.user_id = ${USER} and shown.author_id = ${author} and ${notHidden('shown.post_id')}`,
    time: 'shown.created_at',
    id: 'shown.post_id',
  }
}

/** Posts, not comments, that name the reader. */
export function mentioningPosts(sight: Sight): Scan {
  return through(sight, 'mentions', { where: `mentions.person_id = ${PERSON} and mentions.post_id is not null` })
}

/** The tag is an expression. */
export function taggedPosts(sight: Sight, tag: string): Scan {
  return through(sight, 'taggings', { where: `taggings.tag_id = ${tag} and taggings.post_id is not null` })
}

export function likedPosts(sight: Sight): Scan {
  const where = `likes.author_id = ${PERSON} and likes.post_created_at is not null and likes.positive`
  return through(sight, 'likes', { where, time: 'post_created_at' })
}

/** Under some of them the reader has said more than one thing. */
export function commentedPosts(sight: Sight): Scan {
  const where = `comments.author_id = ${PERSON} and comments.post_created_at is not null`
  return { ...through(sight, 'comments', { where, time: 'post_created_at' }), repeats: true }
}

/** What the reader has written or hears of, by when somebody last said something. */
export function involvingPosts(sight: Sight): Scan {
  const hearsOf = hasRow(
    `participations where participations.author_id = ${PERSON} and participations.post_id = posts.id`,
  )
  const post = `(posts.author_id = ${PERSON} or ${hearsOf})`
  return through(sight, 'involvements', { where: `involvements.user_id = ${USER}`, post, time: 'interacted_at' })
}

/**
 * Posts by way of a table that has a copy of what orders them. Each is looked up: a join could be done by reading all there
 * are, where somebody is believed to have few.
 */
function through(
  sight: Sight,
  table: string,
  { where, post = 'true', time = 'created_at' }: { where: string; post?: string; time?: string },
): Scan {
  const conditions = [
    `posts.id = ${table}.post_id`,
    post,
    inSight[sight],
    notHidden('posts.id'),
    notBlocked('posts.author_id'),
  ]
  return {
    from: `${table} where ${where} and ${hasRow(`posts where ${conditions.join(' and ')}`)}`,
    time: `${table}.${time}`,
    id: `${table}.post_id`,
  }
}
