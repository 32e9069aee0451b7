import { VIEWER_PERSON_ID_SQL, VIEWER_USER_ID_SQL, type Visibility, visibilityCondition } from '../posts/visibility.js'
import { hasRowSql } from '../sql/has-row.js'
import type { PostScan } from '../sql/merged-scan.js'
import { notBlockedSql, notHiddenSql } from './stream-conditions.js'

/**
 * A scan of another table that refers to posts and holds a copy of the time they are ordered by. Its `check` looks each post up by its
 * primary key.
 */
export interface PostReferenceScan extends PostScan {
  /** The conditions of `check`, for a row of `posts`. */
  readonly postCondition: string
  /** A condition on the scanned row: the viewer may see its post. */
  readonly isPostVisible: string
}

/** The viewer's own posts. Index `posts_of_author`. */
export function ownPosts(condition: string): PostScan {
  return {
    from: `posts where posts.author_id = ${VIEWER_PERSON_ID_SQL} and ${condition}`,
    check: notHiddenSql('posts.id'),
    time: 'posts.created_at',
    id: 'posts.id',
  }
}

/** The public posts of authors, given as a condition on `posts.author_id`. Index `posts_of_author`. */
export function publicPosts(authorCondition: string): PostScan {
  return {
    from: `posts where ${authorCondition} and posts.public`,
    check: notHiddenSql('posts.id'),
    time: 'posts.created_at',
    id: 'posts.id',
  }
}

/**
 * The private posts that authors have shared with the viewer, given as a condition on `shared.author_id`. Index
 * `post_visibilities_of_author`, or `post_visibilities_newest` for all authors.
 */
export function sharedPosts(authorCondition: string): PostScan {
  return {
    from: `post_visibilities as shared where shared.user_id = ${VIEWER_USER_ID_SQL} and ${authorCondition}`,
    check: notHiddenSql('shared.post_id'),
    time: 'shared.created_at',
    id: 'shared.post_id',
  }
}

/** Posts that mention the viewer. Mentions in comments do not count. Index `mentions_of_person`. */
export function mentioningPosts(visibility: Visibility): PostReferenceScan {
  return scanReferences(visibility, 'mentions', {
    where: `mentions.person_id = ${VIEWER_PERSON_ID_SQL} and mentions.post_id is not null`,
  })
}

/** Posts with a tag, given as an expression for its id. Index `taggings_of_tag`. */
export function taggedPosts(visibility: Visibility, tagId: string): PostReferenceScan {
  return scanReferences(visibility, 'taggings', {
    where: `taggings.tag_id = ${tagId} and taggings.post_id is not null`,
  })
}

/** Posts with any tag that the viewer follows. */
export function postsWithFollowedTags(visibility: Visibility): PostReferenceScan {
  return taggedPosts(visibility, `any(array(select tag_id from tag_followings where user_id = ${VIEWER_USER_ID_SQL}))`)
}

/** Posts that the viewer likes. Index `likes_of_person`. */
export function likedPosts(visibility: Visibility): PostReferenceScan {
  const where = `likes.author_id = ${VIEWER_PERSON_ID_SQL} and likes.post_created_at is not null and likes.positive`
  return scanReferences(visibility, 'likes', { where, time: 'post_created_at' })
}

/** Posts that the viewer has commented on, once per comment. Index `comments_of_person`. */
export function commentedPosts(visibility: Visibility): PostScan {
  const where = `comments.author_id = ${VIEWER_PERSON_ID_SQL} and comments.post_created_at is not null`
  return { ...scanReferences(visibility, 'comments', { where, time: 'post_created_at' }), hasDuplicates: true }
}

/**
 * The viewer's own posts and posts that the viewer participates in, by the time of the last interaction. Index `activity_entries_latest`.
 */
export function postsWithActivity(visibility: Visibility): PostReferenceScan {
  const viewerParticipates = hasRowSql(
    `participations where participations.author_id = ${VIEWER_PERSON_ID_SQL} and participations.post_id = posts.id`,
  )
  return scanReferences(visibility, 'activity_entries', {
    where: `activity_entries.user_id = ${VIEWER_USER_ID_SQL}`,
    postCondition: `(posts.author_id = ${VIEWER_PERSON_ID_SQL} or ${viewerParticipates})`,
    time: 'interacted_at',
  })
}

function scanReferences(
  visibility: Visibility,
  table: string,
  options: { readonly where: string; readonly postCondition?: string; readonly time?: string },
): PostReferenceScan {
  const { where, postCondition = 'true', time = 'created_at' } = options
  const allConditions = [
    postCondition,
    visibilityCondition[visibility],
    notHiddenSql('posts.id'),
    notBlockedSql('posts.author_id'),
  ].join(' and ')
  const hasPost = (condition: string) => hasRowSql(`posts where posts.id = ${table}.post_id and ${condition}`)
  return {
    from: `${table} where ${where}`,
    check: hasPost(allConditions),
    isPostVisible: hasPost(visibilityCondition[visibility]),
    postCondition: allConditions,
    time: `${table}.${time}`,
    id: `${table}.post_id`,
  }
}
