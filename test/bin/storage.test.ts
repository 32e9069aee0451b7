import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { plain } from '../support/files/pictures.js'
import { type S3Store, startS3Store } from '../support/s3/s3-store.js'
import { KNOWN_POD, makePlace, type Place } from './place.js'
import { pod, type Settings, start, until } from './program.js'

/** The sizes of one photo. */
const FILES = 5

let place: Place
let store: S3Store
beforeAll(async () => {
  place = await makePlace(KNOWN_POD)
  store = await startS3Store()
})
afterAll(async () => {
  await store.close()
  await place.remove()
})

async function run(words: readonly string[], settings: Settings) {
  const { code, stdout, stderr } = await pod([...words, '--json'], settings)
  return { code, stderr, ...(stdout === '' ? {} : JSON.parse(stdout)) }
}

/** Starts a web process and a worker, each with its own folders. */
async function startProcesses(settings: Settings) {
  const folders = ['web', 'worker'].map((name) => join(place.folder, `folder-of-${name}`))
  const [web, worker] = ['web', 'worker'].map((name, index) =>
    start([name, '--json'], { ...settings, DATA_DIR: folders[index] ?? '' }),
  )
  if (web === undefined || worker === undefined) throw new Error('There are two processes.')
  const [{ address = '' }] = await Promise.all([
    web.logged((line) => line.msg === 'web process started'),
    worker.logged((line) => line.msg === 'worker started'),
  ])
  return {
    address,
    folders,
    async stop() {
      for (const { child } of [web, worker]) child.kill('SIGTERM')
      expect([await web.ended, await worker.ended]).toEqual([0, 0])
    },
  }
}

it('web and worker processes without a common folder store, serve and delete pictures in S3', {
  timeout: 180_000,
}, async () => {
  const settings: Settings = { ...place.settings, ...(store.environment as Settings) }
  await run(['user', 'create', 'alice', '--password', 'correct horse battery'], settings)
  const scopes = 'profile profile:modify public:read public:modify private:read private:modify'
  const { access_token: token } = await run(['token', 'alice', '--scopes', scopes], settings)
  const processes = await startProcesses(settings)
  const headers = { authorization: `Bearer ${token}` }
  const upload = async (use: string) => {
    const form = new FormData()
    form.set('image', new Blob([new Uint8Array(await plain(300, 200).jpeg().toBuffer())]), 'picture.jpg')
    form.set(use, 'true')
    const answer = await fetch(`${processes.address}/api/v1/photos`, { method: 'POST', headers, body: form })
    expect(answer.status).toBe(200)
    return (await answer.json()) as { readonly guid: string; readonly sizes: Readonly<Record<string, string>> }
  }
  const images = async () => (await store.client.list('images/')).length

  const photo = await upload('pending')
  expect(await images()).toBe(FILES)
  await upload('set_profile_photo')
  expect(await images()).toBe(2 * FILES)
  for (const url of Object.values(photo.sizes)) {
    expect((await fetch(`${processes.address}${new URL(url).pathname}`)).status).toBe(200)
  }
  const deleted = await fetch(`${processes.address}/api/v1/photos/${photo.guid}`, { method: 'DELETE', headers })
  expect(deleted.status).toBe(204)
  await until(async () => (await images()) === FILES)
  for (const folder of processes.folders) expect(existsSync(join(folder, 'uploads', 'images'))).toBe(false)
  await processes.stop()
})

it('web and worker processes start while the S3 store does not answer, with a warning', {
  timeout: 180_000,
}, async () => {
  const settings: Settings = { ...place.settings, ...(store.environment as Settings) }
  await run(['user', 'create', 'bob', '--password', 'correct horse battery'], settings)
  store.fail('break')
  onTestFinished(() => store.fail(undefined))
  const processes = ['web', 'worker'].map((name) =>
    start([name, '--json'], { ...settings, DATA_DIR: join(place.folder, `outage-of-${name}`) }),
  )

  const lines = [/^S3 store not available/, /^(web process|worker) started$/]
  await Promise.all(processes.flatMap(({ logged }) => lines.map((line) => logged(({ msg }) => line.test(msg ?? '')))))
  for (const { child } of processes) child.kill('SIGTERM')
  expect(await Promise.all(processes.map(({ ended }) => ended))).toEqual([0, 0])
})

it('a check compares with the new store while pictures move to it, and a second move copies nothing', async () => {
  const inS3: Settings = { ...place.settings, ...(store.environment as Settings) }
  const backTo: Settings = { ...inS3, STORAGE: 'folder', UPLOADS_FALLBACK: 's3' }

  const early = await run(['storage', 'check'], backTo)
  expect(early).toMatchObject({ code: 1, photos: 1, missing: [expect.any(String)] })
  expect(early.stderr).toContain('storage move --to folder')
  expect(await run(['storage', 'move', '--to', 's3'], backTo)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('First set STORAGE=s3 and UPLOADS_FALLBACK=folder'),
  })
  expect(await run(['storage', 'move', '--to', 'folder', '--dry-run'], backTo)).toMatchObject({ copied: FILES })
  expect(await run(['storage', 'check'], backTo)).toMatchObject({ code: 1 })
  expect(await run(['storage', 'move', '--to', 'folder'], backTo)).toMatchObject({ code: 0, copied: FILES, present: 0 })

  expect(await run(['storage', 'check'], backTo)).toMatchObject({ code: 0, photos: 1, missing: [], orphaned: [] })
  expect(await run(['storage', 'move', '--to', 'folder'], backTo)).toMatchObject({ copied: 0, present: FILES })
  expect(await run(['storage', 'move', '--to', 'folder', '--delete-source'], backTo)).toMatchObject({ code: 0 })
  expect(await store.client.list('images/')).toEqual([])
  expect(await run(['storage', 'check'], place.settings)).toMatchObject({ code: 0, photos: 1, missing: [] })
})
