import type pg from 'pg'
import type { Difference } from './verify-target.js'

const READERS = 200
/** Items that a reader may see, the newest, and items of which most readers may see none. */
const ITEMS_OF_READER = 500
const OTHER_ITEMS = 500
const EXAMPLES = 20

/**
 * Compares who may read private posts and photos: for some users, and for a visitor without an account, the rows of the source with
 * the rule of this pod.
 */
export async function compareRights(
  session: pg.Client,
  /** Accounts that read nothing any more. */
  closedUserIds: readonly number[],
): Promise<readonly Difference[]> {
  const differences: Difference[] = []
  for (const { check, select } of [
    { check: 'readers of private posts', select: differingRightsSql('Post', IS_READABLE_POST_SQL) },
    { check: 'readers of private photos', select: differingRightsSql('Photo', IS_READABLE_PHOTO_SQL) },
  ]) {
    const { rows } = await session.query<{ reader: string; id: string; expected: boolean }>(select, [closedUserIds])
    if (rows.length === 0) continue
    const examples = rows.map(
      ({ reader, id, expected }) => `${id} for ${reader} ${expected ? 'not readable' : 'readable'}`,
    )
    differences.push({ check, detail: 'rights differ', examples })
  }
  return differences
}

const IS_READABLE_POST_SQL = `(
  found.public or found.author_id = pairs.person_id
  or exists (select from post_visibilities as shown where shown.post_id = found.id and shown.user_id = pairs.user_id)
)`

const IS_READABLE_PHOTO_SQL = `(
  found.author_id = pairs.person_id or found.public
  or exists (select from photo_visibilities as shown where shown.photo_id = found.id and shown.user_id = pairs.user_id)
)`

/** Selects the pairs of reader and item for which source and target differ. Photos of public posts are public here. */
function differingRightsSql(type: 'Post' | 'Photo', isReadable: string): string {
  const table = type === 'Post' ? 'posts' : 'photos'
  const isPrivate =
    type === 'Post'
      ? `source.public is not true and source.type is distinct from 'Reshare'`
      : `source.public is not true and source.pending is not true and not exists (
           select from take_over.posts as shown where shown.guid = source.status_message_guid and (shown.public or shown.type = 'Reshare')
         )`
  return `
    with readers as materialized (
      select users.id as user_id, users.person_id, users.username::text as reader from users
      where users.id <> all($1::bigint[]) order by md5(users.id::text) limit ${READERS}
    ), secret as materialized (
      select source.id, people.owner_id as author_user_id from take_over.${table} as source
      join take_over.people on people.id = source.author_id
      where ${isPrivate}
        and not exists (select from take_over.skipped_rows as skipped where skipped.source = '${table}' and skipped.id = source.id)
    ), allowed as materialized (
      select secret.id, readers.user_id from secret join readers on readers.user_id = secret.author_user_id
      union
      select secret.id, readers.user_id from take_over.share_visibilities as shared
      join readers on readers.user_id = shared.user_id
      join secret on secret.id = shared.shareable_id
      where shared.shareable_type = '${type}'
    ), others as materialized (
      select id from secret order by md5(id::text) limit ${OTHER_ITEMS}
    ), pairs as materialized (
      select id, readers.* from (
        select *, row_number() over (partition by user_id order by id desc) as number from allowed
      ) as newest join readers using (user_id) where number <= ${ITEMS_OF_READER}
      union
      select id, readers.* from others cross join (
        select * from readers union all select 0, 0, 'a visitor'
      ) as readers
    )
    select pairs.reader, pairs.id::text as id, allowed.id is not null as expected
    from pairs left join allowed on allowed.id = pairs.id and allowed.user_id = pairs.user_id
    join ${table} as found on found.id = pairs.id
    where (allowed.id is not null) is distinct from ${isReadable}
    order by pairs.id, pairs.reader limit ${EXAMPLES}`
}
