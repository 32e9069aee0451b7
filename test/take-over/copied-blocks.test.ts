import { afterAll, beforeAll, expect, it } from 'vitest'
import { copyOldPod, switchOver } from '../../src/take-over/take-over.js'
import { createLargeOldPod, stagedIn } from '../support/take-over/large-old-pod.js'
import { OLD_HOST, type OldPod } from '../support/take-over/old-pod.js'
import { openTestTarget, type TestTarget } from '../support/take-over/take-over-target.js'

/** Rows of each large table: 8 blocks, which two pairs of sessions copy. */
const ROWS = 80_000

let old: OldPod
let taken: TestTarget

beforeAll(async () => {
  old = await createLargeOldPod(ROWS)
  taken = await openTestTarget(old.url, `https://${OLD_HOST}`)
  await copyOldPod(taken.target, taken.options)
}, 180_000)

afterAll(async () => {
  await taken?.close()
  await old?.close()
})

it('copies a block that a killed process has left out before a later one', async () => {
  const expected = await stagedIn(taken)
  const { target, options, rowsOf } = taken
  const [gap] = await rowsOf(
    `delete from take_over.copied_blocks where table_name = 'comments' and after_key between 50000 and 60000
     returning after_key::int as after, up_to_key::int as "upTo"`,
  )
  const { after = 0, upTo = 0 } = (gap ?? {}) as { after?: number; upTo?: number }
  expect(upTo - after).toBe(10_000)
  await rowsOf('delete from take_over.comments where id > ? and id <= ? returning id', [after, upTo])
  expect(await copyOldPod(target, options)).toMatchObject({ copied: 10_000 })
  expect(await stagedIn(taken)).toEqual(expected)
}, 180_000)

it('refuses the switch if a table has other rows than its copy', async () => {
  const { target, options, rowsOf } = taken
  await rowsOf(`delete from take_over.notification_actors where id = 1001 returning id`)
  await expect(switchOver(target, options, async () => ({}))).rejects.toThrow(
    `The table notification_actors of the old database has ${ROWS + 10} rows, and ${ROWS + 9} are copied`,
  )
  expect(await rowsOf('select state from take_over')).toEqual([{ state: 'copying' }])
}, 180_000)
