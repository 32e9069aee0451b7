import { mkdtemp, rename, rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { beginImport } from '../../../src/federation/archives/imports/begin-import.js'
import { retryItems } from '../../../src/federation/archives/imports/retry-items.js'
import { runImport } from '../../../src/federation/archives/imports/run-import.js'
import { IMPORT_LIMITS } from '../../../src/federation/archives/limits.js'
import { makeImportedPicture } from '../../../workers/handlers/make-imported-picture.js'
import { startImports } from '../../../workers/run-imports.js'
import { archivedContact, archiveOf, writeArchiveFile } from '../../support/federation/archives.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { addRecordingPod } from '../../support/federation/recording-pod.js'
import type { LocalUser } from '../../support/people/local-users.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

const forever = new AbortController().signal

let pod: FederationPod
let folder: string
let al: LocalUser
let bob: LocalUser
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pod-import-turns-'))
  const opened = await openFederationPod()
  pod = { ...opened, config: { ...opened.config, uploadsDir: folder } }
  ;({ al, bob } = await pod.localUsers('al', 'bob'))
})
afterAll(async () => {
  await pod.close()
  await rm(folder, { recursive: true })
})
beforeEach(() => pod.empty('account_migrations, imports, contacts'))

const newOldAccount = () => pod.fakePods.person(`alice-${newGuid().slice(0, 8)}@old.example`)

async function begin(as: LocalUser, old: FakePerson, contacts: readonly string[], mustMove = false): Promise<number> {
  const archive = archiveOf(old, { user: { contacts: contacts.map((address) => archivedContact(address)) } })
  const { id } = await beginImport(pod, COMMAND_ACTOR, {
    file: await writeArchiveFile(join(folder, newGuid()), archive),
    photosFile: undefined,
    user: { userId: as.userId, personId: as.id, address: as.address, username: as.address.split('@')[0] ?? '' },
    options: { contacts: true, content: mustMove, settings: true, profile: true },
    moveFrom: mustMove ? old.address : undefined,
  })
  return id
}

const stateOf = (id: number) => pod.db('imports').where({ id }).first('state', 'phase', 'lines')

it('an import of many batches yields to others after each turn, and continues at its cursor', async () => {
  const local = Array.from({ length: IMPORT_LIMITS.batchItems + 1 }, (_, index) => `nobody${index}@pod.example`)
  const long = await begin(al, newOldAccount(), local)
  const short = await begin(bob, newOldAccount(), [])
  const options = { signal: forever, makePicture: makeImportedPicture, turnMs: 0 }

  const first = await runImport(pod, null, { ...options, afterImportId: 0 })
  expect([first?.id, await stateOf(long)]).toEqual([
    long,
    { state: 'running', phase: 'contacts', lines: IMPORT_LIMITS.batchItems },
  ])
  const second = await runImport(pod, null, { ...options, afterImportId: long })
  expect([second?.id, (await stateOf(short)).state]).toEqual([short, 'done'])
  await runImport(pod, null, { ...options, afterImportId: short })

  expect(await pod.db('imports').where({ id: long }).first()).toMatchObject({
    state: 'done',
    counts: { contacts: { found: local.length, refused: local.length } },
  })
  expect(await runImport(pod, null, options)).toBeUndefined()
})

it('an import whose folder is on another machine waits for a worker there, and counts no attempt', async () => {
  const other = await begin(al, newOldAccount(), [])
  const here = await begin(bob, newOldAccount(), [])
  const { uid } = await pod.db('imports').where({ id: other }).first('uid')
  const imports = join(folder, 'imports')
  await rename(join(imports, uid), join(folder, uid))
  const options = { signal: forever, makePicture: makeImportedPicture }

  expect((await runImport(pod, null, options))?.id).toBe(here)
  for (let attempt = 0; attempt <= IMPORT_LIMITS.attempts; attempt += 1)
    expect(await runImport(pod, null, options)).toBeUndefined()
  expect(await pod.db('imports').where({ id: other }).first('state', 'attempts', 'aliveAt')).toEqual({
    ...{ state: 'running', attempts: 0, aliveAt: null },
  })

  await rename(join(folder, uid), join(imports, uid))
  expect(await runImport(pod, null, options)).toMatchObject({ id: other, state: 'done' })
})

it('items are tried again only on the machine that has them, and attempts elsewhere do not count', async () => {
  const id = await begin(al, newOldAccount(), ['x@nobody.example'])
  const { uid } = await pod.db('imports').where({ id }).first('uid')
  await runImport(pod, id, { signal: forever, makePicture: makeImportedPicture })
  const retryAt = new Date(Date.now() - 1_000)
  await pod.db('imports').where({ id }).update({ retryAt })
  const imports = join(folder, 'imports')
  await rename(join(imports, uid), join(folder, uid))

  await retryItems(pod, forever)
  expect(await pod.db('imports').where({ id }).first('retries', 'retryAt')).toEqual({ retries: 0, retryAt })
  await rename(join(folder, uid), join(imports, uid))
  await retryItems(pod, forever)
  expect(await pod.db('imports').where({ id }).first('retries')).toEqual({ retries: 1 })
  expect((await pod.db('imports').where({ id }).first()).retryAt > new Date()).toBe(true)

  await rm(join(imports, uid), { recursive: true })
  await pod
    .db('imports')
    .where({ id })
    .update({ retryAt: new Date(Date.now() - 31 * 86_400_000) })
  await retryItems(pod, forever)
  expect(await pod.db('imports').where({ id }).first('retries', 'retryAt')).toEqual({ retries: 1, retryAt: null })
})

it('an import whose folder is on no machine fails once its upload would have been deleted', async () => {
  const id = await begin(al, newOldAccount(), ['x@old.example'])
  const { uid } = await pod.db('imports').where({ id }).first('uid')
  await rm(join(folder, 'imports', uid), { recursive: true })
  const createdAt = new Date(Date.now() - (IMPORT_LIMITS.uploadDays * 24 + 1) * 60 * 60_000)
  await pod.db('imports').where({ id }).update({ createdAt, attempts: IMPORT_LIMITS.attempts })
  await runImport(pod, id, { signal: forever, makePicture: makeImportedPicture })
  expect(await pod.db('imports').where({ id }).first('state', 'error')).toEqual({ state: 'failed', error: 'crashed' })
})

it('a pod that does not answer an import delays no announcement of a move', async () => {
  const other = await addRecordingPod(pod.fakePods, pod, 'waiting.example:3000')
  const moved = await begin(al, newOldAccount(), ['x@waiting.example:3000'], true)
  await runImport(pod, moved, { signal: forever, makePicture: makeImportedPicture })
  const unanswered: ServerResponse[] = []
  pod.fakePods.script('silent.example/.well-known/webfinger', (_request, response) => void unanswered.push(response))
  const slow = await begin(bob, newOldAccount(), ['x@silent.example'])

  const imports = startImports(pod)
  await vi.waitFor(
    () => expect([other.received.length, unanswered.length].map((count) => count > 0)).toEqual([true, true]),
    20_000,
  )

  expect(await stateOf(slow)).toMatchObject({ state: 'running', phase: 'contacts' })
  pod.fakePods.script('silent.example/.well-known/webfinger', (_request, response) => void response.destroy())
  for (const response of unanswered) response.destroy()
  await imports.stop()
})
