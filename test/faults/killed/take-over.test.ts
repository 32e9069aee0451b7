import { afterAll, beforeAll, expect, it } from 'vitest'
import { copyOldPod } from '../../../src/take-over/take-over.js'
import { killStep, runStep } from '../../support/take-over/killed-steps.js'
import { createLargeOldPod, stagedIn } from '../../support/take-over/large-old-pod.js'
import { OLD_HOST, type OldPod } from '../../support/take-over/old-pod.js'
import { openTestTarget, type TestTarget } from '../../support/take-over/take-over-target.js'

/** Rows of each large table: 15 blocks, which two pairs of sessions copy. */
const ROWS = 150_000
const KILLS = 20
const SELECT_SESSIONS_SQL = 'select from pg_stat_activity where datname = current_database() and application_name = ?'

let old: OldPod
let undisturbed: TestTarget

beforeAll(async () => {
  old = await createLargeOldPod(ROWS)
  undisturbed = await openTestTarget(old.url, `https://${OLD_HOST}`)
  await copyOldPod(undisturbed.target, undisturbed.options)
}, 180_000)

afterAll(async () => {
  await undisturbed?.close()
  await old?.close()
})

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
