import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { loadPrivateKey } from '../../../src/domain/accounts/private-keys.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { type PruneOptions, prune } from '../../../src/domain/operations/prune.js'
import { listPhotoFiles } from '../../../src/domain/photos/photos.js'
import { signMigration } from '../../../src/protocol/signatures/migration-signature.js'
import { maintenanceHandlers } from '../../../workers/handlers/maintenance.js'
import { addPost } from '../../support/databases/rows.js'
import { profileOf } from '../../support/federation/entities.js'
import { type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import { allStored, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import { addLocalUser, type LocalUser } from '../../support/people/local-users.js'
import { addRemotePerson, type RemotePerson } from '../../support/people/remote-people.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'
import { startS3Store } from '../../support/s3/s3-store.js'

let fakePods: FakePods
let closeStore: () => Promise<unknown>
let test: TestPod
let ann: LocalUser
let quin: RemotePerson
let name: string

describe.each(['a folder', 'an S3 store', 'an S3 store that serves the pictures itself'])('in %s', (kind) => {
  beforeAll(async () => {
    fakePods = await startFakePods()
    let environment: NodeJS.ProcessEnv
    if (kind === 'a folder') {
      const folder = await mkdtemp(join(tmpdir(), 'pod-moved-photos-'))
      environment = { UPLOADS_DIR: folder }
      closeStore = () => rm(folder, { recursive: true })
    } else {
      const store = await startS3Store()
      environment = { ...store.environment, ...(kind !== 'an S3 store' && { S3_DELIVERY: 'redirect' }) }
      closeStore = store.close
    }
    test = await buildPod({ fakePods, environment })
    await test.pod.pictures.check()
  })
  afterAll(async () => {
    await test.close()
    await fakePods.close()
    await closeStore()
  })
  beforeEach(async () => {
    const suffix = newGuid().slice(0, 8)
    ann = await addLocalUser(test.pod, `ann${suffix}`)
    quin = await addPerson(`quin-${suffix}@q.example`)
    name = await addPhoto(ann.id)
  })
  afterEach(async () => {
    await test.pod.db('pods').update({ blockedAt: null })
    await test.pod.db('photos').delete()
    await test.pod.db('posts').delete()
    await test.pod.db('outbox').delete()
  })

  async function addPerson(address: string): Promise<RemotePerson> {
    const person = fakePods.person(address)
    const { id } = await addRemotePerson(test.pod, address, person)
    return { ...person, id }
  }

  async function addPhoto(authorId: number, values = {}): Promise<string> {
    const file = `${newGuid()}.png`
    await test.pod.db('photos').insert({ guid: newGuid(), authorId, name: file, public: true, ...values })
    for (const size of listPhotoFiles(file)) await test.pod.pictures.write(size, Buffer.from(size))
    return file
  }

  /** The move, by a message of the old account. */
  async function move(from: RemotePerson, to: RemotePerson, path: string | undefined): Promise<void> {
    const entity = {
      ...{ type: 'account_migration' as const, author: from.address, old_identity: from.address },
      profile: profileOf(to, { first_name: 'Moved', public: false }),
      signature: signMigration({ from: from.address, to: to.address }, to.privateKey),
      remote_photo_path: path,
    }
    expect(await receive(test.pod, publicMessage(from, entity))).toEqual(allStored)
  }
  const moveAway = async (path: string | undefined) =>
    move({ ...quin, id: ann.id, address: ann.address, privateKey: await loadPrivateKey(test.pod, ann.id) }, quin, path)

  const letPass = (days: number) =>
    test.pod.db('moved_photo_files').update({ movedAt: test.pod.db.raw('now() - make_interval(days => ?)', [days]) })
  const runWorker = () =>
    maintenanceHandlers['delete-moved-files']?.(test.pod, { data: {} } as never, new AbortController().signal)
  const get = (file: string, method: 'GET' | 'HEAD' = 'GET') => test.inject({ method, url: `/uploads/images/${file}` })
  const place = async (file: string) => {
    const { statusCode, headers } = await get(file)
    return statusCode === 301 ? headers.location : statusCode
  }
  const storedFiles = async () => {
    const found = await Promise.all(listPhotoFiles(name).map((file) => test.pod.pictures.find(file)))
    return found.filter((file) => file !== undefined).length
  }
  /** A post of the account with the photo, older than every limit. */
  async function addOldPost(): Promise<{ readonly id: number }> {
    const old = new Date(Date.now() - 400 * 86_400_000)
    const { id } = await addPost(test.pod, ann)
    await test.pod.db('posts').where({ id }).update({ createdAt: old, storedAt: old, interactedAt: old })
    await test.pod.db('photos').update({ postId: id })
    return { id }
  }
  async function removePosts(more: Partial<PruneOptions> = {}): Promise<number> {
    const { signal } = new AbortController()
    const retention = { days: 90, withComments: false, includeUnfetchable: false, notificationDays: 0 }
    return (await prune(test.pod, { category: 'posts', ...retention, signal, ...more })).rows
  }
  const served = kind === 'an S3 store that serves the pictures itself' ? 302 : 200

  it('the files of an account that has moved are served for 90 days, then their addresses lead to the new pod', async () => {
    await moveAway('https://q.example/up')
    await letPass(89)
    await runWorker()
    expect([await place(name), await storedFiles()]).toEqual([served, 5])

    await letPass(91)
    expect(await place(`thumb_small_${name}`)).toBe(`https://q.example/up/thumb_small_${name}`)
    await runWorker()
    expect(await storedFiles()).toBe(0)
    for (const file of listPhotoFiles(name)) expect(await place(file)).toBe(`https://q.example/up/${file}`)
    const head = await get(name, 'HEAD')
    expect([head.statusCode, head.headers['cache-control']]).toEqual([301, 'public, max-age=86400'])
  })

  it('the files of an account that has moved without them stay', async () => {
    await moveAway(undefined)
    await runWorker()
    expect([await place(name), await storedFiles()]).toEqual([served, 5])
    expect(await test.pod.db('moved_photo_files')).toEqual([])
  })

  it('an old post stays with its files if the account has moved without them, because there are no others', async () => {
    const { id } = await addOldPost()
    await moveAway(undefined)
    expect(await removePosts({ withComments: true, includeUnfetchable: true })).toBe(0)
    expect(await test.pod.db('posts').where({ id }).pluck('author_id')).toEqual([quin.id])
    expect(await test.pod.db('outbox').where({ name: 'remove-photo-files' })).toEqual([])
    expect([await place(name), await storedFiles()]).toEqual([served, 5])
  })

  it('the addresses lead to the newest place, also if the photo has another name there', async () => {
    const remy = await addPerson(`remy-${newGuid().slice(0, 8)}@r.example`)
    await moveAway('https://q.example/up/')
    await move(quin, remy, 'https://r.example/pictures/')
    await letPass(91)
    expect(await place(name)).toBe(`https://r.example/pictures/${name}`)
    await test.pod.db('photos').update({ name: 'other one.png' })
    expect(await place(`scaled_full_${name}`)).toBe('https://r.example/pictures/scaled_full_other%20one.png')
  })

  it('a place on the pod before the newest one is followed, because the photos are still there', async () => {
    const remy = await addPerson(`remy-${newGuid().slice(0, 8)}@r.example`)
    await moveAway('https://q.example/up/')
    await move(quin, remy, undefined)
    await letPass(91)
    expect(await place(name)).toBe(`https://q.example/up/${name}`)
  })

  it.each(['https://elsewhere.example/up/', 'https://q.example.elsewhere.example/', 'https://q.example:8443/'])(
    'an address never leads to a host that is no pod of the account: %s',
    async (path) => {
      await moveAway(path)
      await letPass(91)
      expect(await place(name)).toBe(404)
      await runWorker()
      expect([await place(name), await storedFiles()]).toEqual([404, 0])
    },
  )

  it('an address never leads to a blocked pod or a blocked person', async () => {
    await moveAway('https://q.example/up/')
    await letPass(91)
    await test.pod.db('pods').where({ host: 'q.example' }).update({ blockedAt: new Date() })
    expect(await place(name)).toBe(404)
    await test.pod.db('pods').update({ blockedAt: null })
    await test.pod.db('people').where({ id: quin.id }).update({ restriction: 'block' })
    expect(await place(name)).toBe(404)
  })

  it('a photo that moderators have hidden before the move stays, and stays hidden', async () => {
    await test.pod.db('photos').where({ name }).update({ public: false, publicBeforeHiding: true })
    await moveAway('https://q.example/up/')
    expect(await test.pod.db('moved_photo_files')).toEqual([])
    await runWorker()
    expect([await place(name), await place(`thumb_small_${name}`), await storedFiles()]).toEqual([404, 404, 5])
  })

  it('a photo that moderators hide after the move is not served, and its address does not lead to it', async () => {
    await moveAway('https://q.example/up/')
    await test.pod.db('photos').where({ name }).update({ public: false, publicBeforeHiding: true })
    expect([await place(name), await place(`thumb_small_${name}`)]).toEqual([404, 404])
    await letPass(91)
    expect(await place(name)).toBe(404)
  })

  it('the files of a photo that is deleted after the move are deleted with it', async () => {
    await moveAway('https://q.example/up/')
    await test.pod.db('photos').where({ name }).delete()
    expect(await test.pod.db('outbox').where({ name: 'remove-photo-files' }).pluck('data')).toEqual([{ names: [name] }])
    await test.pod.pictures.delete(listPhotoFiles(name))
    expect(await place(name)).toBe(404)
  })

  it('the address of a photo leads on after its post is removed by its age, also when its author moves again', async () => {
    await addOldPost()
    await moveAway('https://q.example/up/')
    expect([await removePosts(), await storedFiles()]).toEqual([0, 5]) // the files are served for 90 days

    await letPass(91)
    await runWorker()
    expect([await removePosts(), await test.pod.db('photos')]).toEqual([1, []])
    expect(await place(`thumb_small_${name}`)).toBe(`https://q.example/up/thumb_small_${name}`)
    await test.pod.db('pods').where({ host: 'q.example' }).update({ blockedAt: new Date() })
    expect(await place(name)).toBe(404)
    await test.pod.db('pods').update({ blockedAt: null })
    const remy = await addPerson(`remy-${newGuid().slice(0, 8)}@r.example`)
    await move(quin, remy, 'https://r.example/pictures/')
    expect(await place(name)).toBe(`https://r.example/pictures/${name}`)
  })

  it('the file of a photo that is on this pod again under its old name stays', async () => {
    await moveAway('https://q.example/up/')
    await test.pod.db('photos').where({ name }).update({ remotePath: null })
    await letPass(91)
    await runWorker()
    expect([await place(name), await storedFiles()]).toEqual([served, 5])
  })

  it('an address of a photo that is on this pod again under another name leads to that one', async () => {
    await moveAway('https://q.example/up/')
    await test.pod.db('photos').where({ name }).update({ remotePath: null, name: 'new.png' })
    await letPass(91)
    await runWorker()
    expect([await place(name), await storedFiles()]).toEqual(['https://pod.example/uploads/images/new.png', 0])
  })
})
