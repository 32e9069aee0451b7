import { expect, it } from 'vitest'
import { startRestoredCopy } from '../../bin/start-restored-copy.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { createBackup } from '../../src/operations/backup/create-backup.js'
import { addPost } from '../support/databases/rows.js'
import { serveHttp } from '../support/http/scripted-server.js'
import { viewerOf } from '../support/people/local-users.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { startBackedUpPod } from './backup-fixture.js'

const uninterrupted = { signal: new AbortController().signal, report: () => undefined }

it('a backup is started as a copy that sends no request to other pods, and fails with another secret key', async () => {
  await using source = await startBackedUpPod()
  let requests = 0
  const otherPod = await serveHttp((_request, response) => {
    requests += 1
    response.end()
  })
  const { pod, repository, identity, recipient } = source
  const { db } = pod
  const { ann } = await source.people('ann')
  const user = await viewerOf(pod, ann)
  await addPost(pod, { id: user.personId })
  const photo = { authorId: user.personId, public: true, pending: false }
  const hidden = { ...photo, guid: newGuid(), name: `${newGuid()}.jpg`, publicBeforeHiding: true }
  const shown = { ...photo, guid: newGuid(), name: `${newGuid()}.jpg` }
  await db('photos').insert([{ ...photo, guid: newGuid(), name: 'without-file.jpg' }, hidden, shown])
  for (const { name } of [hidden, shown]) await pod.pictures.write(name, Buffer.from('picture'))
  const remote = await addRemotePerson(pod, `quin@127.0.0.1:${otherPod.port}`)
  await db('contacts').insert({ userId: user.userId, personId: remote.id, sharing: true, receiving: true })
  const due = { queue: 'outbound', data: { personId: user.personId }, sweepAt: new Date(0) }
  await db('outbox').insert([
    { ...due, name: 'dispatch' },
    { ...due, queue: 'mail', name: 'send-mail' },
  ])
  const options = { repository, identities: [identity], ...uninterrupted }

  expect(await startRestoredCopy(await source.backUp(), options)).toEqual([])

  const config = { ...pod.config, secretKey: 'another key that is only good for tests' }
  const backup = { repository, recipients: [recipient], settings: [], ...uninterrupted }
  const wrong = await createBackup({ ...pod, config }, backup)
  expect(await startRestoredCopy(wrong, options)).toEqual([expect.stringContaining('another secret key')])
  expect(requests).toBe(0)
  await otherPod.close()
}, 240_000)
