import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text as streamText } from 'node:stream/consumers'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requirePictureStores } from '../../../bin/require-picture-stores.js'
import { readConfig } from '../../../src/config/config.js'
import { checkPictures, movePictures } from '../../../src/domain/photos/move-pictures.js'
import { removeOrphanedFiles } from '../../../src/domain/photos/orphaned-files.js'
import { listPhotoFiles } from '../../../src/domain/photos/photos.js'
import { uploadPhoto } from '../../../src/domain/photos/uploads.js'
import { photoEntity } from '../../../src/federation/outbound/post-entities.js'
import { startHeartbeat } from '../../../src/jobs/operations/heartbeat.js'
import { registerStorageMetrics } from '../../../src/operations/storage-metrics.js'
import { checkPicturesAtStart } from '../../../src/persistence/photos/check-pictures.js'
import { openFolderPictures } from '../../../src/persistence/photos/folder-pictures.js'
import { openMovingPictures } from '../../../src/persistence/photos/moving-pictures.js'
import { openPictureStorage, openPictureStorageOfKind } from '../../../src/persistence/photos/open-pictures.js'
import type { PictureStorage } from '../../../src/persistence/photos/picture-storage.js'
import { StorageUnavailable } from '../../../src/persistence/s3/storage-unavailable.js'
import { photoHandlers, startUploadSweeper } from '../../../workers/handlers/photos.js'
import { plain } from '../../support/files/pictures.js'
import { viewerOf } from '../../support/people/local-users.js'
import { type PhotoPod, pictureField, startPhotoPod } from '../../support/pods/photo-pod.js'
import { type S3Store, startS3Store } from '../../support/s3/s3-store.js'

/** Members of the answers about a user and a post. */
interface CdnAnswer {
  readonly guid: string
  readonly avatar: { readonly large: string }
  readonly author: { readonly guid: string; readonly avatar: string }
  readonly photos: readonly { readonly sizes: { readonly raw: string; readonly small: string } }[]
}

const signal = new AbortController().signal
const work = { dryRun: false, shouldDeleteSource: false, signal, report: () => undefined }

let store: S3Store
let api: PhotoPod
beforeAll(async () => {
  store = await startS3Store()
  api = await startPhotoPod({ environment: store.environment })
  api.startWorkers()
})
afterAll(async () => {
  await api.close()
  await store.close()
})

const keys = async (prefix: string) => (await store.client.list(prefix)).map(({ key }) => key)

async function upload(): Promise<string> {
  const answer = await api.upload(api.alice, await plain(800, 400).png().toBuffer())
  expect(answer.status).toBe(200)
  await expect.poll(() => keys('spool/')).toEqual([]) // the job ends after the response
  const { name } = await api.pod.db('photos').orderBy('id', 'desc').first('name')
  return name
}

async function metric(name: string) {
  const registry = new Registry()
  registerStorageMetrics(registry, api.pod.pictures)
  return (await registry.getMetricsAsJSON()).find((each) => each.name === name)?.values
}

const get = (name: string, headers = {}, method: 'GET' | 'HEAD' = 'GET') =>
  api.app.inject({ method, url: `/uploads/images/${name}`, headers })

describe('pictures in an S3 store', () => {
  it('are stored in all sizes, served by the pod, and deleted; no local folder is used', async () => {
    const name = await upload()

    expect(await keys('images/')).toEqual(
      listPhotoFiles(name)
        .map((file) => `images/${file}`)
        .sort(),
    )
    expect(readdirSync(api.uploadsDir)).toEqual([])
    for (const file of listPhotoFiles(name)) expect((await get(file)).statusCode).toBe(200)

    const { headers, rawPayload } = await get(name)
    expect(headers).toMatchObject({
      'content-type': 'image/png',
      'content-length': String(rawPayload.length),
      'cache-control': 'public, max-age=31536000, immutable',
      'content-security-policy': "default-src 'none';sandbox",
    })
    expect(Object.keys(headers).filter((header) => /^x-amz|^set-cookie/.test(header))).toEqual([])
    expect((await get(name, { 'if-none-match': headers.etag })).statusCode).toBe(304)
    const head = await get(name, {}, 'HEAD')
    expect([head.statusCode, head.headers['content-length'], head.body]).toEqual([200, headers['content-length'], ''])
    const part = await get(name, { range: 'bytes=2-5' })
    expect([part.statusCode, part.headers['content-range']]).toEqual([206, `bytes 2-5/${rawPayload.length}`])
    expect(part.rawPayload).toEqual(rawPayload.subarray(2, 6))
    expect((await get(name, { range: `bytes=${rawPayload.length}-` })).statusCode).toBe(416)
    expect((await get('aaaa.png')).statusCode).toBe(404)

    await photoHandlers['remove-photo-files'](api.pod, { data: { names: [name] } } as never, signal)
    expect(await keys('images/')).toEqual([])
  })

  it('are redirected to the store on demand, with an address that expires after the answer', async () => {
    const name = await upload()
    await using other = await startPhotoPod({ environment: { ...store.environment, S3_DELIVERY: 'redirect' } })

    const { statusCode, headers } = await other.app.inject(`/uploads/images/${name}`)

    expect([statusCode, headers['cache-control']]).toEqual([302, 'private, max-age=600'])
    expect(headers['referrer-policy']).toBe('no-referrer')
    expect(headers.location).toContain('X-Amz-Expires=900')
    const picture = await fetch(String(headers.location))
    expect([picture.status, (await picture.arrayBuffer()).byteLength]).toEqual([
      200,
      (await get(name)).rawPayload.length,
    ])

    // The store accepts an address with the method only for which it was signed.
    const head = await other.app.inject({ method: 'HEAD', url: `/uploads/images/${name}` })
    const described = await fetch(String(head.headers.location), { method: 'HEAD' })
    expect([head.statusCode, described.status, described.headers.get('content-length')]).toEqual([
      302,
      200,
      String((await get(name)).rawPayload.length),
    ])

    expect((await other.app.inject('/uploads/images/aaaa.png')).statusCode).toBe(404)
    store.fail(503)
    expect((await other.app.inject(`/uploads/images/${name}`)).statusCode).toBe(503)
    store.fail(undefined)
  })

  it('are sent in their original size, with a redirect of all others, until a missing size is made', async () => {
    const name = await upload()
    await using other = await startPhotoPod({ environment: { ...store.environment, S3_DELIVERY: 'redirect' } })
    await api.pod.pictures.delete([`thumb_small_${name}`])

    const { statusCode, headers } = await other.app.inject(`/uploads/images/thumb_small_${name}`)

    expect([statusCode, headers['cache-control']]).toEqual([200, 'no-store'])
  })

  it('are named at the CDN in API responses and on pages, and at the pod for other pods', async () => {
    const environment = {
      ...store.environment,
      ...{ S3_PREFIX: 'cdn/', S3_DELIVERY: 'redirect', UPLOADS_BASE_URL: 'https://cdn.example/pod' },
    }
    await using other = await startPhotoPod({ environment })
    other.startWorkers()
    const { alice } = other
    const call = async (method: 'GET' | 'POST', path: string, body?: object) =>
      (await other.call({ method, path, token: alice.token, ...(body && { body }) })).body as never as CdnAnswer
    const picture = await plain(40, 20).png().toBuffer()
    const parts = (use: string) => [pictureField(picture), { name: use, value: 'true' }]
    const { guid: photo } = (await other.post(alice, parts('pending'))).body as never as CdnAnswer
    await other.post(alice, parts('set_profile_photo'))

    const post = await call('POST', '/posts', { body: 'A picture', public: true, photos: [photo] })

    const name = String(post.photos[0]?.sizes.raw).replace('https://cdn.example/pod/', '')
    expect(post.photos[0]?.sizes.small).toBe(`https://cdn.example/pod/thumb_small_${name}`)
    const { avatar } = await call('GET', '/user')
    expect([avatar.large, post.author.avatar].map((url) => url.slice(0, 36))).toEqual([
      'https://cdn.example/pod/thumb_large_',
      'https://cdn.example/pod/thumb_medium',
    ])
    const page = await other.app.inject(`/posts/${post.guid}`)
    expect(page.body).toContain(`<img src="https://cdn.example/pod/scaled_full_${name}"`)
    expect(page.body).toContain(`<img class="face" src="${post.author.avatar}"`)
    expect(page.headers['content-security-policy']).toContain(`img-src 'self' https://cdn.example;`)
    const redirect = await other.app.inject(`/uploads/images/${name}`)
    expect([redirect.statusCode, redirect.headers.location, redirect.headers['cache-control']]).toEqual([
      302,
      `https://cdn.example/pod/${name}`,
      'public, max-age=86400',
    ])

    const { url } = other.pod.config
    expect((await other.app.inject(`/hcard/users/${post.author.guid}`)).body).toContain(`${url}/uploads/images/thumb_`)
    expect(await photoEntity(other.pod, photo)).toMatchObject({ remote_photo_path: `${url}/uploads/images/` })
    const withBase = (address: string) => readConfig({ UPLOADS_BASE_URL: address }).uploadsBaseUrl
    expect(withBase('https://cdn.example')).toBe('https://cdn.example/uploads/images/')
    expect(() => withBase('cdn.example')).toThrow('UPLOADS_BASE_URL must be an address')
  })

  it('are a 503 while the store is unavailable, and everything else works', async () => {
    const name = await upload()
    store.takeRequests()
    store.fail(503)

    expect((await get(name)).statusCode).toBe(503)
    expect(store.takeRequests()).toEqual(['HEAD', 'HEAD', 'HEAD'])
    expect(await metric('pod_storage_errors_total')).toContainEqual({ labels: { operation: 'read' }, value: 1 })
    store.fail('break')
    const refused = await api.upload(api.alice, await plain(20, 20).png().toBuffer())
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, expect.any(String)])
    const post = { body: 'Without a picture', public: true }
    expect((await api.call({ method: 'POST', path: '/posts', token: api.alice.token, body: post })).status).toBe(200)
    expect((await api.app.inject('/health/ready')).statusCode).toBe(200)

    store.fail(undefined)
    expect((await get(name)).statusCode).toBe(200)
  })

  it('are refused at the start with wrong keys, without a bucket, and without settings', async () => {
    const check = (more: NodeJS.ProcessEnv) => openPictureStorage(readConfig({ ...store.environment, ...more })).check()

    await expect(check({ S3_SECRET_ACCESS_KEY: 'wrong' })).rejects.toThrow(/SignatureDoesNotMatch.*check S3_ENDPOINT/)
    await expect(check({ S3_BUCKET: 'other-bucket' })).rejects.toThrow('Pictures cannot be stored')
    await check({})
    expect(() => readConfig({ STORAGE: 's3' })).toThrow('An S3 store needs S3_BUCKET')
    expect(() => readConfig({ ...store.environment, S3_ENDPOINT: 'ftp://x' })).toThrow('S3_ENDPOINT')
    const prefixOf = (prefix: string) => readConfig({ ...store.environment, S3_PREFIX: prefix }).s3?.prefix
    expect(['', 'pod', 'pod/', 'a/b'].map(prefixOf)).toEqual(['', 'pod/', 'pod/', 'a/b/'])
    expect(() => prefixOf('/pod')).toThrow('S3_PREFIX')
  })

  it('do not stop a start while the store does not answer', async () => {
    const check = (more: NodeJS.ProcessEnv) => checkPicturesAtStart(readConfig({ ...store.environment, ...more }))

    expect(await check({})).toBeUndefined()
    for (const failure of ['break', 503] as const) {
      store.fail(failure)
      expect(await check({})).toBeInstanceOf(StorageUnavailable)
    }
    store.fail(undefined)
    await expect(check({ S3_SECRET_ACCESS_KEY: 'wrong' })).rejects.toThrow('check S3_ENDPOINT')
    await expect(check({ S3_BUCKET: 'other-bucket' })).rejects.toThrow('check S3_ENDPOINT')
  })

  it('are not deleted by an isolated copy, whose bucket may be that of the original', async () => {
    const copied = readConfig({ ...store.environment, ISOLATED: 'true' })
    const copy = openPictureStorage(copied)
    const name = await upload()
    const file = await api.pod.pictures.storeUpload(Readable.from([Buffer.from('x')]), signal)
    const before = [await keys('images/'), await keys('spool/')]

    await copy.delete([name])
    await openPictureStorageOfKind(copied, 's3').delete([name])
    await copy.deleteUploads([file])
    expect(await copy.deleteOldUploads(new Date(Date.now() + 60_000))).toBe(0)
    await copy.deleteExports(['any.zip'])

    expect([await keys('images/'), await keys('spool/')]).toEqual(before)
    await api.pod.pictures.deleteUploads([file])
  })

  it('in the folder of the original are not deleted by an isolated copy', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pod-original-'))
    const original = openPictureStorage(readConfig({ DATA_DIR: folder }))
    const copy = openPictureStorage(readConfig({ DATA_DIR: folder, ISOLATED: 'true' }))
    await original.write('aaaa.png', Buffer.from('picture'))
    const file = await original.storeUpload(Readable.from([Buffer.from('upload')]), signal)

    await copy.delete(['aaaa.png'])
    await copy.deleteUploads([file])
    await copy.deleteOldUploads(new Date(Date.now() + 60_000))

    expect([await original.read('aaaa.png'), await original.readUpload(file)].map(String)).toEqual([
      'picture',
      'upload',
    ])
    await rm(folder, { recursive: true })
  })

  it('are uploaded without being in memory, again after a failure', async () => {
    const picture = Buffer.alloc(3 * 2 ** 20, 'content')
    store.takeRequests()
    store.fail(503, 1)

    const file = await api.pod.pictures.storeUpload(
      Readable.from([picture.subarray(0, 9), picture.subarray(9)]),
      signal,
    )

    expect(store.takeRequests()).toEqual(['PUT', 'PUT'])
    expect((await api.pod.pictures.readUpload(file)).equals(picture)).toBe(true)
    expect((await store.client.head(`spool/${file}`))?.sha256).toBe(createHash('sha256').update(picture).digest('hex'))
    expect(readdirSync(tmpdir()).filter((name) => name.includes(file))).toEqual([])
    await api.pod.pictures.deleteUploads([file])
  })

  it('of a withdrawn upload are deleted after its worker was killed', async () => {
    const environment = { ...store.environment, S3_PREFIX: 'killed/' }
    await using other = await startPhotoPod({ environment })
    const pictures = openPictureStorage(readConfig(environment))
    const file = await pictures.storeUpload(Readable.from([await plain(20, 20).png().toBuffer()]), signal)
    const uploading = uploadPhoto(other.pod, await viewerOf(other.pod, other.alice), { file, use: 'pending' }, 100)
    await expect(uploading).rejects.toThrow()
    const { data } = await other.pod.db('outbox').where({ name: 'remove-photo-files' }).first('data')
    const [name] = data.names
    await pictures.prepare(new Map(listPhotoFiles(name).map((each) => [each, Buffer.from('half')])))

    other.startWorkers()

    await expect.poll(() => pictures.list('')).toEqual([])
    expect(await other.pod.db('photos').where({ name })).toEqual([])
  })

  it('have no uploads in the spool that are older than the limit', async () => {
    await api.pod.pictures.storeUpload(Readable.from([Buffer.from('left')]), signal)

    expect(await api.pod.pictures.deleteOldUploads(new Date(Date.now() - 60_000))).toBe(0)
    expect(await api.pod.pictures.deleteOldUploads(new Date(Date.now() + 60_000))).toBe(1)
    expect(await keys('spool/')).toEqual([])
  })
})

describe('a temporary file of an S3 store', () => {
  const contentOf = (path: string) => writeFile(path, 'with a private key').then(() => path)
  const exist = (paths: readonly string[]) => paths.map((path) => existsSync(path))

  it('of an export is deleted with it, whichever process wrote it', async () => {
    const draft = await contentOf(await api.pod.pictures.exportDraft('left.gz'))
    const other = await contentOf(draft.replace(`-${process.pid}-`, `-${process.ppid}-`))
    const earlier = await contentOf(draft.replace(`-${process.pid}-`, '-'))
    expect(new Set([draft, other, earlier]).size).toBe(3)
    await api.pod.pictures.deleteExports(['other.gz'])
    expect(exist([draft, other, earlier])).toEqual([true, true, true])
    await api.pod.pictures.deleteExports(['left.gz'])
    expect(exist([draft, other, earlier])).toEqual([false, false, false])
  })

  it('is deleted by the next worker if its process has died', async () => {
    const { pid } = spawnSync('true')
    const draft = await contentOf(await api.pod.pictures.exportDraft('swept.gz'))
    const ofProcess = (id: number) => contentOf(draft.replace(`-${process.pid}-`, `-${id}-`))
    const [dead, running] = [await ofProcess(pid), await ofProcess(process.ppid)]
    const upload = await contentOf(dead.replace('-export-', '-upload-'))
    const before = new Date(Date.now() - process.uptime() * 1_000 - 1_000)
    const restarted = await contentOf(draft.replace('swept', 'restarted'))
    await utimes(restarted, before, before)
    const earlier = await contentOf(draft.replace(`-${process.pid}-`, '-'))
    const old = new Date(Date.now() - 25 * 3_600_000)
    await utimes(earlier, old, old)

    const sweeper = startUploadSweeper(api.pod)
    await sweeper.stop()
    expect(exist([draft, running])).toEqual([true, true])
    expect(exist([dead, upload, restarted, earlier])).toEqual([false, false, false, false])
    await api.pod.pictures.deleteExports(['swept.gz'])
  })
})

describe('the move of pictures from a folder to S3', () => {
  let folder: string
  let source: PictureStorage
  let target: PictureStorage
  let moving: PictureStorage
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pod-move-'))
    source = openFolderPictures(folder)
    const settings = { ...store.environment, S3_PREFIX: 'moved/', UPLOADS_DIR: folder }
    target = openPictureStorage(readConfig(settings))
    moving = openPictureStorage(readConfig({ ...settings, UPLOADS_FALLBACK: 'folder' }))
    await source.check()
  })
  afterAll(() => rm(folder, { recursive: true }))

  const text = async (storage: PictureStorage, name: string) => (await storage.read(name))?.toString()

  it('can be read at each moment, copies once, and does not restore deleted pictures', async () => {
    for (const name of ['a.png', 'b.png', 'c.png']) await source.write(name, Buffer.from(`content of ${name}`))
    await moving.write('d.png', Buffer.from('written meanwhile'))
    expect(await Promise.all(['a.png', 'd.png'].map((name) => text(moving, name)))).toEqual([
      'content of a.png',
      'written meanwhile',
    ])
    expect(existsSync(join(folder, 'images/d.png'))).toBe(false)

    expect(await movePictures(api.pod.db, { ...work, from: source, to: target, dryRun: true })).toMatchObject({
      copied: 3,
    })
    expect(await target.list('')).toMatchObject([{ name: 'd.png', bytes: 17 }])
    // Deleted between the read and the write of its copy.
    const deleting = {
      ...target,
      async write(name: string, bytes: Buffer) {
        if (name === 'b.png') await moving.delete([name])
        await target.write(name, bytes)
      },
    }
    expect(await movePictures(api.pod.db, { ...work, from: source, to: deleting })).toEqual({
      copied: 2,
      present: 0,
      gone: 1,
    })
    expect((await target.list('')).map(({ name }) => name)).toEqual(['a.png', 'c.png', 'd.png'])
    expect(await text(moving, 'b.png')).toBeUndefined()

    expect(await movePictures(api.pod.db, { ...work, from: source, to: target })).toEqual({
      copied: 0,
      present: 2,
      gone: 0,
    })
    await movePictures(api.pod.db, { ...work, from: source, to: target, shouldDeleteSource: true })
    expect(await source.list('')).toEqual([])
    expect(await text(moving, 'c.png')).toBe('content of c.png')
  })

  it('serves and deletes archives that were made before it', async () => {
    const draft = await source.exportDraft('one.zip')
    await writeFile(draft, 'an archive')
    await source.storeExport('one.zip', { path: draft, bytes: 10, sha256: '' })
    const read = async (storage: PictureStorage) => {
      const stream = await storage.openExport('one.zip')
      return stream && streamText(stream)
    }

    expect(await read(moving)).toBe('an archive')
    await moving.deleteExports(['one.zip'])
    expect([await read(moving), await read(source)]).toEqual([undefined, undefined])
  })

  it('finds a picture that moves between the reads of both stores, and copies one with other bytes of the same size', async () => {
    await source.write('e.png', Buffer.from('right'))
    await target.write('e.png', Buffer.from('wrong'))
    expect(await movePictures(api.pod.db, { ...work, from: source, to: target })).toMatchObject({ copied: 1 })
    expect(await text(target, 'e.png')).toBe('right')

    await source.write('f.png', Buffer.from('moving'))
    const emptied = {
      ...source,
      async read(name: string) {
        await movePictures(api.pod.db, { ...work, from: source, to: target, shouldDeleteSource: true })
        return source.read(name)
      },
    }
    expect(await text(openMovingPictures(target, emptied), 'f.png')).toBe('moving')
  })

  it('runs once at a time: a second move would delete the moved pictures of the first', async () => {
    await source.write('g.png', Buffer.from('moved once'))
    let second: Promise<unknown> | undefined
    const first = {
      ...target,
      async write(name: string, bytes: Buffer) {
        second = movePictures(api.pod.db, { ...work, from: source, to: target, shouldDeleteSource: true })
        second.catch(() => undefined)
        await expect(second).rejects.toThrow('Another command is moving pictures')
        await target.write(name, bytes)
      },
    }

    await movePictures(api.pod.db, { ...work, from: source, to: first, shouldDeleteSource: true })

    expect(second).toBeDefined()
    expect(await text(moving, 'g.png')).toBe('moved once')
  })

  it('is refused with other settings than those of a running process', async () => {
    const running = startHeartbeat(api.pod, { kind: 'worker' })
    await running.beatNow()
    const { db } = api.pod
    const other = readConfig({ ...store.environment, S3_BUCKET: 'another', POD_URL: api.pod.config.url })

    await expect(requirePictureStores({ db, config: other })).rejects.toThrow(
      /^The worker process \d+ .*bucket .*\/another\//,
    )
    await requirePictureStores(api.pod)

    await running.close()
    await requirePictureStores({ db, config: other })
  })

  it('is checked against the database', async () => {
    const name = await upload()
    await api.pod.pictures.delete([name])
    await api.pod.pictures.write('thumb_small_unknown.png', Buffer.from('x'))

    await api.pod.pictures.write(`thumb_medium_${name}`, Buffer.alloc(0))

    const { missing, orphaned, empty, sizes } = await checkPictures(api.pod.db, api.pod.pictures, signal)

    expect(missing).toContain(name)
    expect(orphaned).toEqual(['thumb_small_unknown.png'])
    expect(empty).toEqual([`thumb_medium_${name}`])
    expect(Object.keys(sizes)).toEqual(expect.arrayContaining(['scaled_full_', 'thumb_medium_', 'thumb_small_']))
    const listed = await api.pod.pictures.list('')
    const counted = Object.values(sizes)
    expect(counted.reduce((sum, { files }) => sum + files, 0)).toBe(listed.length - 1)
    expect(counted.reduce((sum, { bytes }) => sum + bytes, 1)).toBe(listed.reduce((sum, { bytes }) => sum + bytes, 0))

    const remove = (days: number, dryRun = false) =>
      removeOrphanedFiles(api.pod.db, api.pod.pictures, {
        ...work,
        dryRun,
        now: new Date(Date.now() + days * 86_400_000),
      })
    expect(await remove(6)).toMatchObject({ rows: 0 })
    const stored = (await api.pod.pictures.list('')).length
    expect(await remove(8, true)).toMatchObject({ rows: 1, bytes: 1 })
    expect(await api.pod.pictures.list('')).toHaveLength(stored)
    expect(await remove(8)).toMatchObject({ rows: 1 })
    expect(await remove(8)).toMatchObject({ rows: 0 })
    expect(await api.pod.pictures.list('')).toHaveLength(stored - 1)
  })
})
