import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import sharp from 'sharp'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { closeUser } from '../../src/domain/accounts/closing/close-now.js'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import {
  findStateOfCasePicture,
  readPictureOfCase,
  requestPictureOfCase,
} from '../../src/domain/moderation/case-pictures.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { PHOTO_LIMITS } from '../../src/domain/photos/limits.js'
import { storePhoto } from '../../src/domain/photos/store-photo.js'
import { uploadPhoto } from '../../src/domain/photos/uploads.js'
import type { Upload } from '../../src/jobs/definitions.js'
import { AlreadyDone, type JobContext, loadJob } from '../../src/jobs/outbox/load-job.js'
import { QueueUnavailable } from '../../src/jobs/queues/queue-unavailable.js'
import { openFolderPictures } from '../../src/persistence/photos/folder-pictures.js'
import { deleteOldUploads, storeUpload } from '../../src/persistence/photos/picture-files.js'
import type { RemoteResponse } from '../../src/services/remote-pod-client.js'
import { prune } from '../../workers/handlers/maintenance.js'
import { makePreview } from '../../workers/handlers/make-preview.js'
import { photoHandlers, startUploadSweeper } from '../../workers/handlers/photos.js'
import { sweep } from '../../workers/sweeper.js'
import { reasonOf } from '../support/assertions/refusal-reasons.js'
import { addPost } from '../support/databases/rows.js'
import { twoColours } from '../support/files/pictures.js'
import { viewerOf } from '../support/people/local-users.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'
import { startTestWorkers, untilIdle } from '../support/queues/test-workers.js'

let test: TestPod
let alice: Viewer
let uploadsDir: string
let png: Buffer
beforeAll(async () => {
  uploadsDir = await mkdtemp(join(tmpdir(), 'pod-photos-'))
  test = await buildPod({ environment: { UPLOADS_DIR: uploadsDir } })
  alice = await viewerOf(test.pod, (await test.people('alice')).alice)
  png = await twoColours().png().toBuffer()
})
afterAll(async () => {
  await test.close()
  await rm(uploadsDir, { recursive: true })
})
beforeEach(async () => {
  await test.pod.db('photos').delete()
  await test.pod.db('outbox').delete()
  await Promise.all(['spool', 'images'].map((folder) => rm(join(uploadsDir, folder), { recursive: true, force: true })))
})

const never = new AbortController().signal
const photos = () => test.pod.db('photos').select('guid', 'name', 'pending')
const list = (folder: string) => readdir(join(uploadsDir, folder)).catch(() => [])
const keep = (bytes = png) => storeUpload(uploadsDir, Readable.from([bytes]), never)
const upload = async (within = 50) => uploadPhoto(test.pod, alice, { file: await keep(), use: 'pending' }, within)

type UploadWork = JobContext & { readonly data: Upload }

/** The job of an upload, as a worker receives it. */
async function workInHand(): Promise<UploadWork> {
  const row = await test.pod.db('outbox').where({ name: 'make-photo' }).first('id')
  const work = row && (await loadJob(test.pod.db, { outboxId: row.id }))
  if (work === undefined) throw new Error('There is no upload.')
  return work as JobContext as UploadWork
}

/** Resolves when the upload of a client waits for a worker. */
async function untilInHand(): Promise<UploadWork> {
  return expect
    .poll(() => workInHand().catch(() => undefined))
    .toBeDefined()
    .then(workInHand)
}

async function work(): Promise<void> {
  const workers = startTestWorkers(test.pod, { handlers: { photos: photoHandlers }, queues: ['photos'] })
  await sweepNow()
  await untilIdle(test.pod, 10_000, ['photos'])
  await workers.close()
}

async function sweepNow(): Promise<void> {
  await test.pod.db('outbox').update({ sweepAt: test.pod.db.fn.now() })
  await sweep(test.pod)
}

describe('an upload', () => {
  it('fails after a time limit without a worker, and is not processed later', async () => {
    await expect(upload()).rejects.toThrow(QueueUnavailable)

    expect(await test.pod.db('outbox').pluck('name')).toEqual(['remove-photo-files'])
    await work()
    expect([await photos(), await list('spool'), await list('images')]).toEqual([[], [], []])
  })

  it('that a worker finishes at the moment the client gives up becomes a photo', async () => {
    const uploading = upload(100)
    const inHand = await untilInHand()
    let place: () => void = () => {}
    const placed = new Promise<void>((resolve) => {
      place = resolve
    })
    const keeping = storePhoto(test.pod, inHand, { width: 1, height: 1, bytes: 1, publish: () => placed })
    // Now the client waits for the row that the worker holds.
    await expect.poll(waitingForLocks).toBe(1)
    place()
    await keeping

    expect(await photos()).toMatchObject([{ guid: await uploading }])
    expect(await test.pod.db('outbox').pluck('name')).toEqual([])
  })

  it('that was withdrawn while a worker processed it leaves no files', async () => {
    const uploading = upload(100)
    uploading.catch(() => {})
    const inHand = await untilInHand()
    const making = photoHandlers['make-photo']({ ...test.pod, db: afterwards(uploading) }, inHand, never)

    await expect(making).rejects.toThrow(AlreadyDone)
    expect([await photos(), await list('spool'), await list('images')]).toEqual([[], [], []])
  })

  it('whose worker is killed after moving the files is processed again under the same name', async () => {
    const uploading = upload(10_000)
    const inHand = await untilInHand()
    const { name } = inHand.data
    await mkdir(join(uploadsDir, 'images'))
    const dying = storePhoto(test.pod, inHand, {
      width: 1,
      height: 1,
      bytes: 1,
      async publish() {
        await writeFile(join(uploadsDir, 'images', name), 'half')
        throw new Error('killed')
      },
    })
    await expect(dying).rejects.toThrow('killed')
    expect(await photos()).toEqual([])

    await Promise.all([work(), uploading])

    expect(await photos()).toMatchObject([{ guid: await uploading, name }])
    expect((await list('images')).filter((file) => file.endsWith(name))).toHaveLength(5)
    expect(await list('spool')).toEqual([])
  })

  it('that is withdrawn after its worker was killed leaves no files', async () => {
    const uploading = upload(200)
    uploading.catch(() => {})
    const { name } = (await untilInHand()).data
    await mkdir(join(uploadsDir, 'images'))
    await writeFile(join(uploadsDir, 'images', `thumb_small_${name}`), 'half')
    await expect(uploading).rejects.toThrow(QueueUnavailable)

    await work()

    expect([await photos(), await list('images')]).toEqual([[], []])
  })

  it('whose owner closes the account after the worker was killed leaves no files', async () => {
    const { yan } = await test.people('yan')
    const uploading = uploadPhoto(
      test.pod,
      await viewerOf(test.pod, yan),
      { file: await keep(), use: 'pending' },
      10_000,
    )
    uploading.catch(() => {})
    const { name } = (await untilInHand()).data
    await mkdir(join(uploadsDir, 'images'))
    await writeFile(join(uploadsDir, 'images', `thumb_small_${name}`), 'half')
    await closeUser(test.pod, 'yan')

    await Promise.all([reasonOf(uploading), work()])
    await work()

    expect([await photos(), await list('images')]).toEqual([[], []])
  })

  it('is retried when the disk fails, and given up after a few attempts', async () => {
    await writeFile(join(uploadsDir, 'images'), 'a file where the folder should be')
    const uploading = upload(10_000)
    uploading.catch(() => {})
    await untilInHand()
    await Promise.all([work(), expect(uploading).rejects.toThrow(QueueUnavailable)])

    expect([await photos(), await list('spool')]).toEqual([[], []])
    await rm(join(uploadsDir, 'images'))
  })

  it('that is not in the folder of the worker fails with the name of the wrong setting', async () => {
    const uploading = upload(100)
    uploading.catch(() => {})
    const inHand = await untilInHand()
    const pictures = openFolderPictures(join(uploadsDir, 'another'))

    await expect(photoHandlers['make-photo']({ ...test.pod, pictures }, inHand, never)).rejects.toThrow('UPLOADS_DIR')
    await expect(uploading).rejects.toThrow(QueueUnavailable)
  })

  it('of a user who closes the account in the meantime is refused', async () => {
    const { zoe } = await test.people('zoe')
    const viewer = await viewerOf(test.pod, zoe)
    const uploading = uploadPhoto(test.pod, viewer, { file: await keep(), use: 'pending' }, 10_000)
    await untilInHand()
    await closeUser(test.pod, 'zoe')

    const [reason] = await Promise.all([reasonOf(uploading), work()])
    expect([reason, await photos(), await list('images')]).toEqual(['image_invalid', [], []])
  })
})

describe('the cleanup of leftovers', () => {
  it('deletes files of uploads after an hour', async () => {
    const [old, young] = [await keep(), await keep()]
    await utimes(join(uploadsDir, 'spool', old), 0, (Date.now() - PHOTO_LIMITS.uploadAgeMs) / 1_000 - 60)

    const sweeping = startUploadSweeper(test.pod)
    await expect.poll(() => list('spool')).toEqual([young])
    await sweeping.stop()
    expect(await deleteOldUploads(uploadsDir, new Date(Date.now() + 60_000))).toBe(1)
  })

  it('deletes pending photos with their files after a day, and keeps photos in use', async () => {
    const dayAgo = test.pod.db.raw(`now() - interval '1 day 1 minute'`)
    const add = async (fields: object) => {
      const name = `${newGuid()}.png`
      await test.pod.db('photos').insert({ guid: newGuid(), authorId: alice.personId, name, ...fields })
      return name
    }
    const forgotten = await add({ pending: true, createdAt: dayAgo })
    const stays = [
      await add({ pending: true }),
      await add({ pending: false, createdAt: dayAgo }),
      await add({ postId: (await addPost(test.pod, { id: alice.personId })).id, createdAt: dayAgo }),
    ]

    await prune(test.pod)

    expect((await photos()).map(({ name }) => name).toSorted()).toEqual(stays.toSorted())
    expect(await test.pod.db('outbox').select('queue', 'name', 'data')).toEqual([
      { queue: 'photos', name: 'remove-photo-files', data: { names: [forgotten] } },
    ])
  })

  it('deletes no files for remote photos', async () => {
    const { id: authorId } = await addRemotePerson(test.pod, 'quin@q.example')
    const remotePath = 'https://q.example/up/'
    await test.pod.db('photos').insert({ guid: newGuid(), authorId, name: 'a.jpg', remotePath })

    await test.pod.db('photos').delete()

    expect(await test.pod.db('outbox').pluck('name')).toEqual([])
  })
})

/** Number of sessions of this database that wait for a lock. */
async function waitingForLocks(): Promise<number> {
  const { rows } = await test.pod.db.raw(
    `select count(*)::int as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rows[0].count
}

/** A database whose transactions begin after a given promise. */
function afterwards(other: Promise<unknown>): TestPod['pod']['db'] {
  const { db } = test.pod
  return new Proxy(db, {
    get(target, name, receiver) {
      if (name !== 'transaction') return Reflect.get(target, name, receiver)
      return async (run: Parameters<typeof db.transaction>[0]) => {
        await Promise.allSettled([other])
        return db.transaction(run)
      }
    },
  })
}

describe('a reported picture', () => {
  it('is fetched by a worker when a moderator requests it, and kept as a blurred and a clear copy', async () => {
    const { mod } = await test.people('mod')
    const rita = await addRemotePerson(test.pod, 'rita@r.example')
    const post = await addPost(test.pod, rita, { text: 'Look' })
    const [{ guid }] = await test.pod
      .db('photos')
      .insert({
        guid: newGuid(),
        authorId: rita.id,
        postId: post.id,
        public: true,
        pending: false,
        position: 0,
        remotePath: 'https://r.example/uploads/',
        name: 'x.png',
        createdAt: new Date(),
      })
      .returning('guid')
    await mod.post(`/api/v1/posts/${post.guid}/report`, { reason: 'Spam' })
    const found = await test.pod.db('moderation_cases').where({ targetGuid: post.guid }).first('id')
    const picture = { caseId: found.id, photoGuid: guid }
    const requested: string[] = []
    const pod = (body: Buffer) => ({
      ...test.pod,
      remotePods: {
        ...test.pod.remotePods,
        async get(url: string | URL) {
          requested.push(String(url))
          return { status: 200, url: new URL(url), contentType: 'image/png', body } as RemoteResponse
        },
      },
    })
    const work = async (body: Buffer) => {
      const job = await test.pod.db('outbox').where({ name: 'preview-picture' }).first('data')
      await test.pod.db('outbox').where({ name: 'preview-picture' }).delete()
      return job && (await makePreview(pod(body), job.data))
    }
    const stateOf = () => findStateOfCasePicture(test.pod, COMMAND_ACTOR, picture)

    expect([await stateOf(), requested]).toEqual([undefined, []])
    await expect(
      requestPictureOfCase(test.pod, COMMAND_ACTOR, { ...picture, photoGuid: newGuid() }),
    ).rejects.toMatchObject({
      reason: 'picture_not_found',
    })
    await requestPictureOfCase(test.pod, COMMAND_ACTOR, picture)
    await requestPictureOfCase(test.pod, COMMAND_ACTOR, picture)
    expect(await test.pod.db('audit_entries').where({ action: 'case.picture_shown' }).select('caseId')).toEqual([
      { caseId: found.id },
    ])
    await work(Buffer.from('no picture'))
    expect(await stateOf()).toBe('failed')
    await requestPictureOfCase(test.pod, COMMAND_ACTOR, picture)
    await work(await twoColours().png().toBuffer())
    expect([await stateOf(), requested.at(-1)]).toEqual(['ready', 'https://r.example/uploads/x.png'])
    const [clear, blurred] = await Promise.all(
      (['clear', 'blurred'] as const).map((look) => readPictureOfCase(test.pod, COMMAND_ACTOR, picture, look)),
    )
    const coloursOf = async (bytes: Buffer | undefined) =>
      (await sharp(bytes).stats()).channels.map(({ stdev }) => stdev)
    expect((await sharp(clear).metadata()).format).toBe('webp')
    expect((await coloursOf(blurred))[0]).toBeLessThan((await coloursOf(clear))[0] ?? 0)
    await test.pod.db('case_pictures').update({ requestedAt: new Date(Date.now() - 25 * 3_600_000) })
    await prune(test.pod)
    expect(await stateOf()).toBeUndefined()
  })
})
