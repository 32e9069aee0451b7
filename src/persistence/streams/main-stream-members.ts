import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { followRowSql, isRestrictedSql } from '../people/restricted-people.js'

/** A post that is in the main stream of a user. Tokens without `private:read` show it only if it is `public`. */
export interface MainStreamMember {
  readonly userId: number
  readonly postId: number
  readonly public: boolean
}

/**
 * Finds which of these posts are in the main streams of which of these users, each pair once, in no order. Hidden posts and posts of
 * blocked authors are left out. `list-streams.ts` lists the stream of one user by the same rules; `main-stream.test.ts` compares both.
 */
export async function findMainStreamMembers(
  db: Knex,
  { userIds, postIds }: { readonly userIds: readonly number[]; readonly postIds: readonly number[] },
): Promise<readonly MainStreamMember[]> {
  return queryPrepared<MainStreamMember>(db, 'main-stream-members', MEMBERS_SQL, [userIds, postIds])
}

/**
 * Starts from the given posts and finds their readers: the author, the author's contacts (`contacts_person_id`), followers of a tag of a
 * public post (`tag_followings_tag_id`), and people it mentions (`mentions_post_once`). The number of posts of a reader does not matter.
 */
const MEMBERS_SQL = `
  with readers as (
    select id, person_id from users where id = any($1::bigint[]) and closed_at is null
  ), candidates as (
    select id, author_id, public from posts where id = any($2::bigint[])
  ), pairs as (
    select readers.id as user_id, candidates.id as post_id
    from candidates join readers on readers.person_id = candidates.author_id
    union
    select contacts.user_id, candidates.id
    from candidates join contacts on contacts.person_id = candidates.author_id and contacts.receiving
    where contacts.user_id in (select id from readers)
    union
    select tag_followings.user_id, candidates.id
    from candidates
    join taggings on taggings.post_id = candidates.id
    join tag_followings on tag_followings.tag_id = taggings.tag_id
    where candidates.public and tag_followings.user_id in (select id from readers)
    union
    select readers.id, candidates.id
    from candidates
    join mentions on mentions.post_id = candidates.id
    join readers on readers.person_id = mentions.person_id
  )
  select readers.id as "userId", candidates.id as "postId", candidates.public
  from pairs
  join readers on readers.id = pairs.user_id
  join candidates on candidates.id = pairs.post_id
  where (
      candidates.public or candidates.author_id = readers.person_id
      or exists (
        select from post_visibilities as visible where visible.user_id = readers.id and visible.post_id = candidates.id
      )
    )
    and not exists (select from hidden_posts as hidden where hidden.user_id = readers.id and hidden.post_id = candidates.id)
    and not exists (select from blocks where blocks.user_id = readers.id and blocks.person_id = candidates.author_id)
    and (
      candidates.author_id = readers.person_id
      or not ${isRestrictedSql('candidates.author_id')}
      or exists (select from ${followRowSql('readers.id', 'candidates.author_id')})
    )`
