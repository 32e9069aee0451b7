import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { beginImport } from '../../../src/federation/archives/imports/begin-import.js'
import { runImport } from '../../../src/federation/archives/imports/run-import.js'
import { openFolderPictures } from '../../../src/persistence/photos/folder-pictures.js'
import { entityToJson } from '../../../src/protocol/entities/entity-json.js'
import { makeImportedPicture } from '../../../workers/handlers/make-imported-picture.js'
import { archiveOf, writeArchiveFile } from '../../support/federation/archives.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let folder: string
let pod: FederationPod
let al: LocalUser
let an: LocalUser
let carl: RemotePerson
let alice: FakePerson
let anna: FakePerson
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pod-conversations-'))
  const opened = await openFederationPod()
  pod = { ...opened, config: { ...opened.config, uploadsDir: folder }, pictures: openFolderPictures(folder) }
  await pod.pictures.check()
  ;({ al, an } = await pod.localUsers('al', 'an'))
})
afterAll(async () => {
  await pod.close()
  await rm(folder, { recursive: true })
})
beforeEach(async () => {
  await pod.empty('account_migrations, imports, conversations')
  ;({ carl } = await pod.remotePeople('carl'))
  const name = newGuid().slice(0, 8)
  alice = pod.fakePods.person(`alice-${name}@a.example`)
  anna = pod.fakePods.person(`anna-${name}@a.example`)
})

type Written = readonly [author: FakePerson, text: string, guid?: string | undefined]

const guid = () => newGuid()

function conversation(conversationGuid: string, participants: readonly FakePerson[], messages: readonly Written[]) {
  const time = new Date('2020-01-01T00:00:00Z')
  const [author = alice] = participants
  const entity = entityToJson({
    type: 'conversation',
    author: author.address,
    guid: conversationGuid,
    subject: 'Soup',
    participants: participants.map(({ address }) => address),
    created_at: time,
    messages: [],
  })
  const written = messages.map(([{ address }, text, messageGuid = guid()]) =>
    entityToJson({
      type: 'message',
      author: address,
      guid: messageGuid,
      text,
      created_at: time,
      conversation_guid: conversationGuid,
    }),
  )
  return { ...entity, entity_data: { ...entity.entity_data, messages: written }, read: true }
}

async function importInto({ userId, id: personId, address }: LocalUser, old: FakePerson, conversations: unknown[]) {
  const { id } = await beginImport(pod, COMMAND_ACTOR, {
    file: await writeArchiveFile(join(folder, newGuid()), archiveOf(old, { user: { conversations } })),
    photosFile: undefined,
    user: { userId, personId, address, username: address.split('@')[0] ?? '' },
    options: { contacts: true, content: true, settings: true, profile: true },
    moveFrom: old.address,
  })
  const done = await runImport(pod, id, { signal: new AbortController().signal, makePicture: makeImportedPicture })
  const { imported, skipped, by_reason } = done?.counts.conversations ?? {}
  return { state: done?.state, imported, skipped, ...by_reason }
}

async function readers(conversationGuid: string): Promise<readonly number[]> {
  return pod
    .db('conversation_visibilities')
    .join('conversations', 'conversations.id', 'conversation_id')
    .where({ 'conversations.guid': conversationGuid })
    .orderBy('person_id')
    .pluck('person_id')
}

async function texts(): Promise<readonly string[]> {
  return pod.db('messages').orderBy('id').pluck('text')
}

it('two people who move to this pod share the conversation that both archives contain', async () => {
  const common = guid()
  const said: Written[] = [
    [alice, 'Hello', guid()],
    [anna, 'Hi', guid()],
    [carl, 'Soup?', guid()],
  ]
  const everybody = [alice, anna, carl]
  expect(await importInto(al, alice, [conversation(common, everybody, said)])).toMatchObject({ imported: 1 })
  // Anna has written once more after the first archive was made.
  const later: Written[] = [...said, [anna, 'Yes', guid()], [carl, 'Late', guid()]]
  expect(await importInto(an, anna, [conversation(common, everybody, later)])).toEqual({
    state: 'done',
    imported: 1,
    skipped: 0,
  })
  expect(await readers(common)).toEqual([al.id, an.id])
  // What others have written after it would be only a claim to the first one.
  expect((await texts()).toSorted()).toEqual(['Hello', 'Hi', 'Soup?', 'Yes'])
  expect(await importInto(an, anna, [conversation(common, everybody, later)])).toMatchObject({
    imported: 0,
    skipped: 1,
  })
})

it.each<readonly [string, (said: readonly Written[]) => readonly Written[]]>([
  ['a message that the other archive does not have', () => []],
  ['another text', (said) => said.map(([author, , id]) => [author, 'Guessed', id])],
  ['another author', (said) => said.map(([, text, id]) => [anna, text, id])],
  ['another guid', (said) => said.map(([author, text]) => [author, text])],
])('an import does not join a conversation with %s', async (_, forge) => {
  const common = guid()
  const said: Written[] = [[alice, 'A secret', guid()]]
  await importInto(al, alice, [conversation(common, [alice, anna], said)])
  const forged = conversation(common, [alice, anna], forge(said))
  expect(await importInto(an, anna, [forged])).toMatchObject({ imported: 0, guid_taken: 1 })
  expect(await readers(common)).toEqual([al.id])
  expect(await texts()).toEqual(['A secret'])
})

it('an import does not join a conversation whose first importer does not name the person', async () => {
  const common = guid()
  const said: Written[] = [[alice, 'A secret', guid()]]
  await importInto(al, alice, [conversation(common, [alice, carl], said)])
  const forged = conversation(common, [alice, anna, carl], said)
  expect(await importInto(an, anna, [forged])).toMatchObject({ imported: 0, guid_taken: 1 })
  expect(await readers(common)).toEqual([al.id])
})

it('an import does not join a conversation that another local person sees', async () => {
  const common = guid()
  await importInto(al, alice, [conversation(common, [alice, anna], [])])
  expect(await importInto(an, anna, [conversation(common, [anna, carl], [])])).toMatchObject({ guid_taken: 1 })
})

it('an import does not join a conversation that this pod has received', async () => {
  const common = guid()
  const time = new Date()
  await pod.db('conversations').insert({ guid: common, authorId: carl.id, subject: 'Soup' })
  await pod.db('conversation_visibilities').insert({
    conversationId: pod.db('conversations').where({ guid: common }).select('id'),
    personId: al.id,
    createdAt: time,
    updatedAt: time,
  })
  const forged = conversation(common, [carl, anna], [])
  expect(await importInto(an, anna, [forged])).toMatchObject({ imported: 0, guid_taken: 1 })
  expect(await readers(common)).toEqual([al.id])
})

it('a conversation that is twice in an archive is imported once', async () => {
  const twice = conversation(guid(), [alice, carl], [[carl, 'Hello', guid()]])
  expect(await importInto(al, alice, [twice, twice])).toMatchObject({ state: 'done', imported: 1, skipped: 1 })
})
