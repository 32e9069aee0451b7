import { afterAll, beforeAll, expect, it } from 'vitest'
import { copyOldPod } from '../../../src/take-over/take-over.js'
import { contentOf } from '../../support/take-over/content-of.js'
import { killStep, runStep } from '../../support/take-over/killed-steps.js'
import { createOldPod, OLD_HOST, type OldPod } from '../../support/take-over/old-pod.js'
import { openTestTarget, type TestTarget } from '../../support/take-over/take-over-target.js'

/** Rows of each large table: 15 blocks, which two pairs of sessions copy. */
const ROWS = 150_000
const KILLS = 20
const SELECT_SESSIONS_SQL = 'select from pg_stat_activity where datname = current_database() and application_name = ?'

let old: OldPod
let undisturbed: TestTarget

beforeAll(async () => {
  old = await createOldPod()
  await old.db.raw(`
    insert into comments (id, text, commentable_id, author_id, guid)
    select id, 'comment ' || id, 101, 12, 'a-comment-with-id-' || id from generate_series(1001, 1000 + ${ROWS}) as id`)
  await old.db.raw(`
    insert into notification_actors (id, notification_id, person_id)
    select id, 1, 12 from generate_series(1001, 1000 + ${ROWS}) as id`)
  undisturbed = await openTestTarget(old.url, `https://${OLD_HOST}`)
  await copyOldPod(undisturbed.target, undisturbed.options)
}, 180_000)

afterAll(async () => {
  await undisturbed?.close()
  await old?.close()
})

/**
 * The copied rows. Those of accounts have seals with random parts, and blocks have other ends. On a slow machine the number of rows of
 * the source is an estimate.
 */
async function stagedIn({ target, rowsOf }: TestTarget) {
  return {
    content: await contentOf(target.db, 'take_over', ['copied_blocks', 'source_tables', 'users']),
    tables: await rowsOf('select name, last_key::float from take_over.source_tables order by name'),
    accounts: await rowsOf('select id::int, username, email from take_over.users order by id'),
    blocks: await rowsOf(`
      select table_name as name, sum(rows)::int as rows, sum(fingerprint::numeric)::text as fingerprint
      from take_over.copied_blocks group by 1 having sum(rows) > 0 order by 1`),
  }
}

async function countBlocks({ rowsOf }: TestTarget): Promise<number> {
  const [table] = await rowsOf(`select to_regclass('take_over.copied_blocks') is not null as exists`)
  if (table?.['exists'] !== true) return 0
  const [row] = await rowsOf('select count(*)::int as count from take_over.copied_blocks')
  return Number(row?.['count'])
}

it('has the result of an undisturbed copy when its process is killed twenty times', async () => {
  const killed = await openTestTarget(old.url, `https://${OLD_HOST}`)
  const environment = { ...killed.environment, TAKE_OVER_FROM: old.url }
  try {
    const all = await countBlocks(undisturbed)
    const isConnected = async (purpose: string) =>
      (await killed.rowsOf(SELECT_SESSIONS_SQL, [`pod command (${purpose})`])).length > 0
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = await countBlocks(killed)
      await killStep(['copy'], environment, async () => {
        if (kill < 2) return isConnected('migrations')
        // Another block is copied, or in the end all of them are compared.
        return before < all ? (await countBlocks(killed)) > before : isConnected('take-over')
      })
    }
    await runStep(['copy'], environment)
    expect(await stagedIn(killed)).toEqual(await stagedIn(undisturbed))
  } finally {
    await killed.close()
  }
}, 600_000)
