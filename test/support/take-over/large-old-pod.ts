import { contentOf } from './content-of.js'
import { createOldPod, type OldPod } from './old-pod.js'
import type { TestTarget } from './take-over-target.js'

/** A database of a diaspora* pod with this number of further rows in two tables, of which a block has 10 000. */
export async function createLargeOldPod(rows: number): Promise<OldPod> {
  const old = await createOldPod()
  await old.db.raw(`
    insert into comments (id, text, commentable_id, author_id, guid)
    select id, 'comment ' || id, 101, 12, 'a-comment-with-id-' || id from generate_series(1001, 1000 + ${rows}) as id`)
  await old.db.raw(`
    insert into notification_actors (id, notification_id, person_id)
    select id, 1, 12 from generate_series(1001, 1000 + ${rows}) as id`)
  return old
}

/**
 * The copied rows in a comparable form: without encrypted columns of accounts, which have random parts, without the ends of blocks,
 * and without the number of source rows, which is an estimate on a slow machine.
 */
export async function stagedIn({ target, rowsOf }: TestTarget) {
  return {
    content: await contentOf(target.db, 'take_over', ['copied_blocks', 'source_tables', 'users']),
    tables: await rowsOf('select name, last_key::float from take_over.source_tables order by name'),
    accounts: await rowsOf('select id::int, username, email from take_over.users order by id'),
    blocks: await rowsOf(`
      select table_name as name, sum(rows)::int as rows, sum(fingerprint::numeric)::text as fingerprint
      from take_over.copied_blocks group by 1 having sum(rows) > 0 order by 1`),
  }
}
