import { afterAll, beforeAll, expect, it } from 'vitest'
import { migrations } from '../../migrations/index.js'
import { MOVED_PHOTO_FILES_SQL } from '../../src/take-over/build/post-statements.js'
import { addUserRow } from '../support/databases/rows.js'
import { type OpenDatabase, openTestDatabase } from '../support/databases/test-database.js'

const MOVED = new Date('2024-05-06T07:08:09Z')
const BEFORE = new Date(MOVED.getTime() - 1_000)

let database: OpenDatabase
beforeAll(async () => {
  database = await openTestDatabase()
  const { db } = database
  const [{ id: podId }] = await db('pods').insert({ host: 'far.example' }).returning('id')
  const addRemote = async (name: string) => {
    const person = { guid: name.padEnd(16, '0'), address: `${name}@far.example`, publicKey: 'key', podId }
    const [{ id }] = await db('people').insert(person).returning('id')
    return id as number
  }
  const addMove = (oldPersonId: number, newPersonId: number, remotePhotoPath: string | null) =>
    db('account_migrations').insert({ oldPersonId, newPersonId, signature: 'x', remotePhotoPath, createdAt: MOVED })
  const addPhoto = (authorId: number, name: string, values = {}) =>
    db('photos').insert({
      guid: name.padEnd(16, '0'),
      authorId,
      name,
      public: true,
      remotePath: 'https://far.example/',
      createdAt: BEFORE,
      ...values,
    })

  const [alice, bob] = [await addUserRow(database, 'alice'), await addUserRow(database, 'bob')]
  const [moved, newest, without, remote, other] = [
    await addRemote('moved'),
    await addRemote('newest'),
    await addRemote('without'),
    await addRemote('remote'),
    await addRemote('other'),
  ]
  await addMove(alice.personId, moved, 'https://far.example/')
  await addMove(moved, newest, null)
  await addMove(bob.personId, without, null)
  await addMove(remote, other, 'https://far.example/')
  await addPhoto(newest, 'of-alice.png')
  await addPhoto(moved, 'not-moved-on.png')
  await addPhoto(newest, 'local.png', { remotePath: null })
  await addPhoto(newest, 'taken-later.png', { createdAt: new Date(MOVED.getTime() + 1_000) })
  await addPhoto(without, 'of-bob.png')
  await addPhoto(other, 'never-here.png')
})
afterAll(() => database.close())

const noted = () => database.db('moved_photo_files').orderBy('name').select('name', 'deletedAt')
const ofAlice = ['not-moved-on.png', 'of-alice.png'].map((name) => ({ name, deletedAt: null }))

it('the migration notes the files of earlier moves with photos from this pod', async () => {
  const migration = await migrations.get('0232-moved-photo-files')?.()
  await migration?.down(database.db)
  await migration?.up(database.db)
  expect(await noted()).toEqual(ofAlice)
})

it('a take-over notes the files of people who had moved away from the old pod with photos', async () => {
  await database.db('moved_photo_files').delete()
  await database.db.raw(MOVED_PHOTO_FILES_SQL)
  expect(await noted()).toEqual(ofAlice)
})
