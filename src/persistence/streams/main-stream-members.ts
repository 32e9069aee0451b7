import type { Knex } from 'knex'
import { named } from '../database/database.js'

/**
 * What a main stream is made of, asked from the side of the posts: `mainStreamMembers(db, { userIds, postIds })` resolves to
 * the pairs `{ userId, postId, public }` of a user and a post of their main stream, in no order, each once. What a user has
 * hidden and whom they have blocked is left out; a token without `private:read` shows only what is `public`.
 * The stream itself is listed in `listed-streams.ts`; a test holds the two against each other.
 */
export interface MainStreamMember {
  readonly userId: number
  readonly postId: number
  readonly public: boolean
}

/** Any number of users and posts with one statement. */
export async function mainStreamMembers(
  db: Knex,
  { userIds, postIds }: { readonly userIds: readonly number[]; readonly postIds: readonly number[] },
): Promise<readonly MainStreamMember[]> {
  return named<MainStreamMember>(db, 'main-stream-members', members, [userIds, postIds])
}

/** Of the reasons for which a post is in a main stream, a tag counts only for what is public. */
const members = `
  with readers as (
    select id, person_id from users where id = any($1::bigint[]) and closed_at is null
  ), written as (
    select id, author_id, public from posts where id = any($2::bigint[])
  ), concerned as (
    select readers.id as user_id, written.id as post_id
    from written join readers on readers.person_id = written.author_id
    union
    select contacts.user_id, written.id
    from written join contacts on contacts.person_id = written.author_id and contacts.receiving
    where contacts.user_id in (select id from readers)
    union
    select tag_followings.user_id, written.id
    from written
    join taggings on taggings.post_id = written.id
    join tag_followings on tag_followings.tag_id = taggings.tag_id
    where written.public and tag_followings.user_id in (select id from readers)
    union
    select readers.id, written.id
    from written
    join mentions on mentions.post_id = written.id
    join readers on readers.person_id = mentions.person_id
  )
  select readers.id as "userId", written.id as "postId", written.public
  from concerned
  join readers on readers.id = concerned.user_id
  join written on written.id = concerned.post_id
  where (
      written.public or written.author_id = readers.person_id
      or exists (select from post_visibilities as shown where shown.user_id = readers.id and shown.post_id = written.id)
    )
    and not exists (select from hidden_posts as hidden where hidden.user_id = readers.id and hidden.post_id = written.id)
    and not exists (select from blocks where blocks.user_id = readers.id and blocks.person_id = written.author_id)`
