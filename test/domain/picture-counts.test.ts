import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { countPictures } from '../../src/domain/photos/orphaned-files.js'
import { findPictureCount } from '../../src/persistence/photos/picture-counts.js'
import { addUserRow } from '../support/databases/rows.js'
import { type OpenDatabase, openTestDatabase } from '../support/databases/test-database.js'

let database: OpenDatabase
let authorId: number
beforeAll(async () => {
  database = await openTestDatabase()
  authorId = (await addUserRow(database, 'alice')).personId
})
afterAll(() => database.close())
beforeEach(async () => {
  await database.db('picture_counts').delete()
  await database.db('photos').delete()
})

let days = 0
const now = () => new Date(Date.UTC(2026, 0, 1 + days))
const { signal } = new AbortController()

/** A store that lists two names at once. */
function storeOf(names: readonly string[]) {
  const listed = names.map((name) => ({ name, bytes: 100, modifiedAt: new Date(0) }))
  return { list: async (after: string) => listed.filter(({ name }) => name > after).slice(0, 2) }
}

async function count(names: readonly string[], milliseconds = 60_000) {
  await countPictures({ db: database.db, now, pictures: storeOf(names) }, { milliseconds, signal })
}

const complete = () => findPictureCount(database.db, 'complete')

it('counts all pictures and those without a photo, in all sizes, once a day', async () => {
  await database.db('photos').insert({ guid: 'g'.repeat(32), authorId, public: true, name: 'b.jpg', remotePath: '' })

  await count(['a.jpg', 'b.jpg', 'thumb_large_a.jpg', 'thumb_large_b.jpg'])
  expect(await complete()).toMatchObject({ files: 4, bytes: 400, orphans: 2, orphanBytes: 200, countedAt: now() })
  await count([])
  expect(await complete()).toMatchObject({ files: 4 })
  days += 2
  await count([])
  expect(await complete()).toMatchObject({ files: 0, orphans: 0, countedAt: now() })
})

it('continues a count that has used up its time', async () => {
  const names = ['a.jpg', 'b.jpg', 'c.jpg', 'd.jpg', 'e.jpg']

  await count(names, -1)
  expect(await complete()).toBeUndefined()
  expect(await findPictureCount(database.db, 'running')).toMatchObject({ after: 'b.jpg', files: 2 })
  await count(names, -1)
  await count(names)
  expect(await complete()).toMatchObject({ files: 5, orphans: 5 })
  expect(await findPictureCount(database.db, 'running')).toBeUndefined()
})
