import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { beginImport } from '../../../src/federation/archives/imports/begin-import.js'
import { runImport } from '../../../src/federation/archives/imports/run-import.js'
import { sendDueAnnouncements } from '../../../src/federation/archives/moves/send-announcements.js'
import { listAnnouncedMoves, listWaitingPods } from '../../../src/persistence/archives/account-moves.js'
import { takeDueDeliveries } from '../../../src/persistence/outbound/due-deliveries.js'
import { DAY_MS } from '../../../src/protocol/durations.js'
import { makeImportedPicture } from '../../../workers/handlers/make-imported-picture.js'
import { archivedContact, archivedPost, archiveOf, writeArchiveFile } from '../../support/federation/archives.js'
import { postBy } from '../../support/federation/entities.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { addRecordingPod, writeMessage } from '../../support/federation/recording-pod.js'
import type { LocalUser } from '../../support/people/local-users.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

const forever = new AbortController().signal

let pod: FederationPod
let folder: string
let al: LocalUser
let old: FakePerson
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pod-absent-pods-'))
  const opened = await openFederationPod()
  pod = { ...opened, config: { ...opened.config, uploadsDir: folder } }
  ;({ al } = await pod.localUsers('al'))
})
afterAll(async () => {
  await pod.close()
  await rm(folder, { recursive: true })
})
beforeEach(async () => {
  await pod.empty('account_migrations, imports, posts, contacts, outbox, outbound_messages')
  await pod.db('people').whereNotNull('podId').delete()
  await pod.db('pods').delete()
  old = pod.fakePods.person(`alice-${newGuid().slice(0, 8)}@old.example`)
})

/** A pod of a contact, which does not answer until the returned function is called. */
async function absentPod(host: string) {
  const absent = await addRecordingPod(pod.fakePods, pod, host)
  pod.fakePods.script(`${host}/receive/public`, (_request, response) => void response.destroy())
  await pod
    .db('pods')
    .where({ id: absent.id })
    .update({ offlineSince: new Date(Date.now() - 60 * DAY_MS) })
  let received = 0
  const comeBack = async () => {
    pod.fakePods.script(`${host}/receive/public`, (_request, response) => {
      received += 1
      response.writeHead(202).end()
    })
    // A check or a delivery has found it.
    const lastSuccessAt = new Date(Date.now() + DAY_MS / 2)
    await pod.db('pods').where({ id: absent.id }).update({ offlineSince: null, lastSuccessAt })
  }
  return { id: absent.id, comeBack, received: () => received }
}

async function move(archive: unknown): Promise<void> {
  const { id } = await beginImport(pod, COMMAND_ACTOR, {
    file: await writeArchiveFile(join(folder, newGuid()), archive),
    photosFile: undefined,
    user: { userId: al.userId, personId: al.id, address: al.address, username: 'al' },
    options: { contacts: true, content: true, settings: true, profile: true },
    moveFrom: old.address,
  })
  await runImport(pod, id, { signal: forever, makePicture: makeImportedPicture })
}

/** Sends what is due a number of days after the move. */
const announce = (days: number) => sendDueAnnouncements(pod.at(new Date(Date.now() + days * DAY_MS)), forever)
const findAnnouncement = (podId: number) => pod.db('migrationAnnouncements').where({ podId }).first()

it('a pod that was away for 60 days gets the move first, then the posts of the new account', async () => {
  const away = await absentPod('away.example:3000')
  await move(archiveOf(old, { user: { contacts: [archivedContact('x@away.example:3000')] } }))
  await writeMessage(pod, { senderId: al.id, entity: postBy(al), guid: newGuid(), pods: [away.id] })
  const isHeld = async () => {
    await pod.db('deliveries').update({ dueAt: new Date(Date.now() - 1_000) })
    const due = await takeDueDeliveries(pod.db, [{ podId: away.id, limit: 10 }])
    return due.map(({ isHeld: held }) => held)
  }
  await announce(0)
  const { dueAt, lastStatus, attempts } = await findAnnouncement(away.id)
  expect({ lastStatus, attempts }).toEqual({ lastStatus: null, attempts: 0 })
  // A pod that is away for more than 14 days is tried monthly.
  expect(dueAt.getTime()).toBeGreaterThan(Date.now() + 29 * DAY_MS)
  expect(await isHeld()).toEqual([true])

  await away.comeBack()
  await announce(1)
  expect(away.received()).toBe(1)
  expect(await findAnnouncement(away.id)).toMatchObject({ lastStatus: 202, deliveredAt: expect.any(Date) })
  expect(await isHeld()).toEqual([false])
})

it('a pod that never answers is given up after five years, and listed', async () => {
  const away = await absentPod('gone.example:3000')
  await move(archiveOf(old, { user: { contacts: [archivedContact('x@gone.example:3000')] } }))
  await announce(5 * 365 - 40)
  expect(await findAnnouncement(away.id)).toMatchObject({ givenUpAt: null })
  const isListed = async () => (await listWaitingPods(pod.db)).find((each) => each.pod === 'gone.example:3000')?.givenUp
  expect(await isListed()).toBe(false)

  await announce(5 * 366 + 100)
  expect(await findAnnouncement(away.id)).toMatchObject({ deliveredAt: null, givenUpAt: expect.any(Date) })
  expect(await isListed()).toBe(true)
  const [{ refused } = { refused: 0 }] = await listAnnouncedMoves(pod.db, { waiting: false })
  expect(refused).toBeGreaterThan(0)
})

it('after the move the old private key is in no table', async () => {
  await move(archiveOf(old, { user: { posts: [archivedPost(postBy(old))] } }))
  const tables: readonly string[] = await pod
    .db('information_schema.tables')
    .where({ tableSchema: 'public', tableType: 'BASE TABLE' })
    .pluck('table_name')
  expect(tables.length).toBeGreaterThan(50)
  const lines = old.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString().split('\n')
  const pkcs8 = old.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString().split('\n')
  for (const part of [lines[3] ?? '', pkcs8[3] ?? '']) {
    for (const table of tables) {
      const found = await pod.db(table).whereRaw(`position(? in "${table}"::text) > 0`, [part]).limit(1)
      expect({ table, found }).toEqual({ table, found: [] })
    }
  }
  // A sealed value hides the key from this search.
  const sealed: readonly { readonly tableName: string; readonly columnName: string }[] = await pod
    .db('information_schema.columns')
    .where({ tableSchema: 'public' })
    .where('column_name', 'like', 'sealed%')
    .select('tableName', 'columnName')
  expect(sealed.map(({ tableName, columnName }) => `${tableName}.${columnName}`)).toEqual(
    expect.arrayContaining(['imports.sealed_key', 'import_uploads.sealed_key', 'user_secrets.sealed_private_key']),
  )
  for (const table of ['imports', 'import_uploads']) {
    expect(await pod.db(table).whereNotNull('sealedKey')).toEqual([])
  }
  const { sealedPrivateKey } = await pod.db('user_secrets').where({ userId: al.userId }).first()
  expect(pod.secrets.decrypt(sealedPrivateKey, `user ${al.userId}`).includes(pkcs8[3] ?? '')).toBe(false)
})

it('a pod that is not known to be offline, and does not answer, is tried less and less often, then given up', async () => {
  const silent = await absentPod('silent.example:3000')
  await pod.db('pods').where({ id: silent.id }).update({ offlineSince: null, answeredAt: null, lastSuccessAt: null })
  await move(archiveOf(old, { user: { contacts: [archivedContact('x@silent.example:3000')] } }))
  const waits: number[] = []
  let now = Date.now()
  let announcement = await findAnnouncement(silent.id)
  while (announcement.givenUpAt === null) {
    await sendDueAnnouncements(pod.at(new Date(now)), forever)
    announcement = await findAnnouncement(silent.id)
    waits.push((announcement.dueAt.getTime() - now) / 3_600_000)
    await sendDueAnnouncements(pod.at(new Date(now + 4 * 60_000)), forever) // nothing has shown that the pod is back
    expect(await findAnnouncement(silent.id)).toEqual(announcement)
    now = announcement.dueAt.getTime()
  }
  expect(waits.slice(0, 4).map((hours) => Math.round(hours * 60))).toEqual([5, 10, 20, 40])
  expect(waits.slice(-16)).toEqual(Array.from({ length: 16 }, () => 720))
  expect(waits).toHaveLength(30)
})

it('a pod that has answered before is not given up', async () => {
  const away = await absentPod('earlier.example:3000')
  await pod.db('pods').where({ id: away.id }).update({ offlineSince: null, answeredAt: new Date() })
  await move(archiveOf(old, { user: { contacts: [archivedContact('x@earlier.example:3000')] } }))
  await pod.db('migrationAnnouncements').where({ podId: away.id }).update({ unanswered: 40 })
  await announce(0)
  expect(await findAnnouncement(away.id)).toMatchObject({ unanswered: 41, givenUpAt: null })
})

it('an archive adds two ports of a host at most', async () => {
  const contacts = Array.from({ length: 5 }, (_, port) => archivedContact(`x@ports.example:${3000 + port}`))
  await move(archiveOf(old, { user: { contacts } }))
  expect(await pod.db('pods').where({ host: 'ports.example' }).orderBy('port').pluck('port')).toEqual([3000, 3001])
})
