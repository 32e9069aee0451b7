import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { exportToFile } from '../../../src/federation/archives/export-archive.js'
import { importFolder } from '../../../src/federation/archives/imports/begin-import.js'
import { IMPORT_LIMITS } from '../../../src/federation/archives/limits.js'
import { checkUploads } from '../../../src/federation/archives/uploads/check-uploads.js'
import { dropUpload } from '../../../src/federation/archives/uploads/receive-upload.js'
import { hidePosts, unhideContentRows } from '../../../src/persistence/moderation/hidden-content.js'
import { OIDC_LIMITS } from '../../../src/web/oidc/limits.js'
import { IMPORT_TASKS, startImports } from '../../../workers/run-imports.js'
import type { TestBrowser } from '../../support/browser/scriptless-browser.js'
import { addPost, showPost } from '../../support/databases/rows.js'
import { archivedContact, archivedPost, archiveOf } from '../../support/federation/archives.js'
import { postBy } from '../../support/federation/entities.js'
import { addLocalUser } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ConsolePod, startConsolePod } from '../../support/pods/console-pod.js'

const never = new AbortController().signal
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const old = { address: 'alice@old.example', privateKey }

let folder: string
let pod: ConsolePod
let dan: TestBrowser
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pod-import-page-'))
  pod = await startConsolePod({ environment: { UPLOADS_DIR: folder } })
  await pod.pod.pictures.check()
})
afterAll(async () => {
  await pod.close()
  await rm(folder, { recursive: true })
})
beforeEach(async () => {
  await pod.pod.db('import_uploads').delete()
  await pod.pod.db('upload_space').delete()
  await pod.pod.db('imports').delete()
  await pod.pod.db('account_migrations').delete()
  await pod.pod.db('posts').delete()
  await pod.pod.db('tag_followings').delete()
  dan = await pod.signedIn('dan')
})

const cookiesOf = (browser: TestBrowser) => [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
const work = async () => {
  for (const task of IMPORT_TASKS) await task(pod.pod, never)
}
const uploads = () => pod.pod.db('import_uploads').orderBy('id')

async function tokenOf(browser: TestBrowser): Promise<string> {
  const { body } = await browser.visit('/settings/import')
  return /name="form" value="([^"]+)"|\?form=([^"&]+)"/.exec(body)?.slice(1).find(Boolean) ?? ''
}

/** Sends the form with its files, as a browser does. */
async function upload(files: Readonly<Record<string, Buffer>>, browser = dan) {
  const boundary = 'x1y2z3'
  const parts = Object.entries(files).flatMap(([name, bytes]) => [
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"; filename="${name}"\r\ncontent-type: application/octet-stream\r\n\r\n`,
    bytes,
    '\r\n',
  ])
  const answer = await pod.inject({
    method: 'POST',
    url: `/settings/import/upload?form=${await tokenOf(browser)}`,
    headers: { cookie: cookiesOf(browser), 'content-type': `multipart/form-data; boundary=${boundary}` },
    payload: Buffer.concat([...parts, `--${boundary}--\r\n`].map((part) => Buffer.from(part))),
  })
  if (answer.statusCode === 303) await browser.visit(String(answer.headers.location))
  return answer
}

const post = postBy(old, { text: 'Public #garden' })
const archive = () =>
  archiveOf(old, {
    user: {
      contact_groups: [{ name: 'Garden people' }],
      contacts: [archivedContact('carl@gone.example')],
      posts: [archivedPost(post)],
      followed_tags: ['soup'],
    },
  })
const zipped = (value: unknown) => gzipSync(JSON.stringify(value))

/** Of an archive whose old pod never answers: three attempts. */
async function check(browser = dan) {
  await work()
  await pod.pod
    .db('import_uploads')
    .where({ state: 'checking' })
    .update({ attempts: 2, check_at: new Date(0) })
  await work()
  return browser.visit('/settings/import')
}

describe('the page of imports', () => {
  it('takes an archive, checks it, and imports it with a move', async () => {
    expect((await upload({ archive: zipped(archive()), photos: Buffer.alloc(0) })).statusCode).toBe(303)
    expect(dan.page.body).toContain('The archive is being checked')
    const { body } = await check()
    expect(body).toContain('This pod does not know the account, and its pod does not answer.')
    expect(body).toContain('<b>Posts</b>: 1 in the archive, 1 can be imported')
    expect(body).toContain('<bdi>carl@gone.example</bdi>')

    await dan.submit(
      { contacts: 'true', content: 'true', move: 'true', old_address: 'bob@old.example' },
      '/settings/import/start',
    )
    expect(dan.page.body).toContain('The archive belongs to another network ID.')
    expect(dan.page.statusCode).toBe(422)
    await dan.submit(
      { contacts: 'true', content: 'true', move: 'true', old_address: 'Alice@old.example ' },
      '/settings/import/start',
    )
    expect(dan.page.body).toContain('The import is running')
    await work()
    await dan.visit('/settings/import')
    expect(dan.page.body).toContain('<bdi>alice@old.example</bdi>: done')
    expect(dan.page.body).toContain('Notified: 0.')
    expect(await pod.pod.db('posts').where({ guid: post.guid })).toHaveLength(1)

    const [{ uid }] = await pod.pod.db('imports')
    const items = await pod.inject({ url: `/settings/import/${uid}/items.csv`, headers: { cookie: cookiesOf(dan) } })
    expect(items.body).toContain(`posts,0,${post.guid},imported,`)
    const lines = await pod.inject({ url: `/settings/import/${uid}/items.ndjson`, headers: { cookie: cookiesOf(dan) } })
    expect(lines.body).toContain('"reason":"not_found"')
    const mod = await pod.signedIn('mod')
    const foreign = await pod.inject({ url: `/settings/import/${uid}/items.csv`, headers: { cookie: cookiesOf(mod) } })
    expect(foreign.statusCode).toBe(404)
  })

  it('keeps the files encrypted, and deletes them in their time', async () => {
    await upload({ archive: zipped(archive()) })
    const [{ uid }] = await uploads()
    const stored = join(folder, 'imports', 'uploads', uid, 'archive')
    const bytes = await readFile(stored)
    expect(bytes.includes(zipped(archive()).subarray(0, 32))).toBe(false)
    pod.later(6.9 * 86_400)
    try {
      await work()
      await expect(readFile(stored)).resolves.toBeDefined()
      pod.later(0.2 * 86_400)
      await work()
      await expect(readFile(stored)).rejects.toThrow('ENOENT')
    } finally {
      pod.later(-7.1 * 86_400)
    }
    expect(await uploads()).toMatchObject([{ state: 'expired', sealedKey: null }])
    expect((await readdir(join(folder, 'imports'))).filter((name) => name === uid)).toEqual([])
  })

  it('changes no file in an isolated copy, which may have the folder of its original', async () => {
    await upload({ archive: zipped(archive()) })
    const token = await tokenOf(dan)
    const [{ uid, state }] = await uploads()
    Object.assign(pod.pod.config, { isolated: true })
    try {
      pod.later(7.1 * 86_400)
      await startImports(pod.pod).stop()
      pod.later(-7.1 * 86_400)
      expect(await uploads()).toMatchObject([{ uid, state }])
      await dan.submit({}, '/settings/import/drop')
      expect(dan.page.statusCode).toBe(422)
      expect(dan.page.body).toContain(
        'This copy of the pod is isolated: it neither makes exports nor imports archives.',
      )
      const url = `/settings/import/parts?form=${token}&file=archive&offset=0`
      const headers = { cookie: cookiesOf(dan), 'content-type': 'application/octet-stream' }
      const part = await pod.inject({ method: 'POST', url, headers, payload: Buffer.from('other') })
      expect([part.statusCode, part.json()]).toEqual([403, { reason: 'isolated_copy' }])
    } finally {
      Object.assign(pod.pod.config, { isolated: false })
    }
    expect(await uploads()).toMatchObject([{ uid, state }])
    expect(await readdir(join(folder, 'imports', 'uploads', uid))).toContain('archive')
  })

  it('refuses an archive that is none, names the reason, and takes the next one', async () => {
    await upload({ archive: Buffer.from('no archive') })
    await work()
    await dan.visit('/settings/import')
    expect(dan.page.body).toContain('The file is damaged or is not an archive.')
    expect(dan.page.body).toContain('Upload and check')
    expect((await upload({})).statusCode).toBe(422)
    expect((await uploads()).map(({ state }) => state)).toEqual(['failed'])
  })

  it('has one archive of an account at a time, and five checks a day', async () => {
    await upload({ archive: zipped(archive()) })
    const second = await upload({ archive: zipped(archive()) })
    expect([second.statusCode, second.body.includes('You have already uploaded an archive.')]).toEqual([429, true])
    for (let count = 1; count <= 4; count += 1) {
      await dan.visit('/settings/import')
      await dan.submit({}, '/settings/import/drop')
      expect((await upload({ archive: zipped(archive()) })).statusCode).toBe(303)
    }
    await dan.submit({}, '/settings/import/drop')
    const sixth = await upload({ archive: zipped(archive()) })
    expect([sixth.statusCode, sixth.body.includes('daily limit of archive checks')]).toEqual([429, true])
  })

  it('needs a recent authentication for upload and start, and the token of the session', async () => {
    const token = await tokenOf(dan)
    await upload({ archive: zipped(archive()) })
    await check()
    pod.later(660)
    try {
      await dan.submit({ contacts: 'true' }, '/settings/import/start')
      expect(dan.url.pathname).toBe('/users/confirm_access')
      await dan.visit('/settings/import')
      await dan.submit({}, '/settings/import/drop')
      expect(dan.page.body).toContain('Confirm your password')
      const answer = await pod.inject({
        method: 'POST',
        url: `/settings/import/upload?form=${token}`,
        headers: { cookie: cookiesOf(dan), 'content-type': 'multipart/form-data; boundary=x' },
        payload: '--x--\r\n',
      })
      expect([answer.statusCode, answer.headers.location]).toEqual([
        303,
        '/users/confirm_access?return_to=%2Fsettings%2Fimport',
      ])
    } finally {
      pod.later(-660)
    }
    expect(await pod.pod.db('imports')).toEqual([])
    const forged = await pod.inject({
      method: 'POST',
      url: '/settings/import/upload?form=other',
      headers: { cookie: cookiesOf(dan), 'content-type': 'multipart/form-data; boundary=x' },
      payload: '--x--\r\n',
    })
    expect(forged.statusCode).toBe(403)
    expect((await pod.inject('/settings/import')).statusCode).toBe(303)
  })

  /** Sends the bytes of an archive from `offset` to `end`. */
  const sendPart = (token: string, bytes: Buffer, offset: number, end: number) =>
    pod.inject({
      method: 'POST',
      url: `/settings/import/parts?form=${token}&file=archive&offset=${offset}`,
      headers: { cookie: cookiesOf(dan), 'content-type': 'application/octet-stream' },
      payload: bytes.subarray(offset, end),
    })

  it('takes files in parts, each at the offset that the last one has reached', async () => {
    const bytes = zipped(archive())
    const token = await tokenOf(dan)
    const part = (offset: number, end: number) => sendPart(token, bytes, offset, end)
    expect((await part(0, 100)).json()).toEqual({ offset: 100 })
    const wrong = await part(90, 120)
    expect([wrong.statusCode, wrong.json()]).toEqual([409, { reason: 'upload_offset', offset: 100 }])
    const known = await pod.inject({ url: '/settings/import/parts?file=archive', headers: { cookie: cookiesOf(dan) } })
    expect(known.json()).toEqual({ offset: 100 })
    expect((await part(100, bytes.length)).json()).toEqual({ offset: bytes.length })
    const complete = await pod.inject({
      method: 'POST',
      url: '/settings/import/check',
      headers: { cookie: cookiesOf(dan), 'content-type': 'application/x-www-form-urlencoded' },
      payload: `form=${token}`,
    })
    expect(complete.statusCode).toBe(303)
    expect((await check()).body).toContain('<b>Posts</b>: 1 in the archive')
  })

  it('stores a part once if two requests send it at a time', async () => {
    const bytes = zipped(archive())
    const token = await tokenOf(dan)
    const part = (offset: number, end: number) => sendPart(token, bytes, offset, end)
    expect((await part(0, 100)).json()).toEqual({ offset: 100 })
    const twice = await Promise.all([part(100, 200), part(100, 200)])
    expect(twice.map(({ statusCode }) => statusCode).sort()).toEqual([200, 409])
    expect((await part(200, bytes.length)).json()).toEqual({ offset: bytes.length })
    expect(await pod.pod.db('upload_space')).toMatchObject([{ reservedBytes: bytes.length, writingUntil: null }])
  })

  it('does not read a part while another one is being received', async () => {
    const bytes = zipped(archive())
    const token = await tokenOf(dan)
    expect((await sendPart(token, bytes, 0, 100)).json()).toEqual({ offset: 100 })
    const sendSlowly = (body: PassThrough) =>
      pod.inject({
        method: 'POST',
        url: `/settings/import/parts?form=${token}&file=archive&offset=100`,
        headers: {
          cookie: cookiesOf(dan),
          'content-type': 'application/octet-stream',
          'content-length': String(bytes.length - 100),
        },
        payload: body,
      })
    const [first, second] = [new PassThrough(), new PassThrough()]
    first.write(bytes.subarray(100, 150))
    const received = sendSlowly(first)
    await vi.waitFor(async () =>
      expect(await pod.pod.db('upload_space')).toMatchObject([{ writingUntil: expect.any(Date) }]),
    )

    const refused = await sendSlowly(second)

    expect([refused.statusCode, refused.json()]).toEqual([409, { reason: 'upload_offset', offset: 100 }])
    first.end(bytes.subarray(150))
    expect((await received).json()).toEqual({ offset: bytes.length })
  })

  it('refuses a part without a length, and a longer one than 8 MiB', async () => {
    const token = await tokenOf(dan)
    const send = (headers: Readonly<Record<string, string>>) =>
      pod.inject({
        method: 'POST',
        url: `/settings/import/parts?form=${token}&file=archive&offset=0`,
        headers: { cookie: cookiesOf(dan), 'content-type': 'application/octet-stream', ...headers },
        payload: Readable.from(['x']),
      })
    const statuses = [await send({}), await send({ 'content-length': String(IMPORT_LIMITS.partBytes + 1) })]
    expect(statuses.map(({ statusCode }) => statusCode)).toEqual([413, 413])
    expect(await uploads()).toEqual([])
  })

  it('answers 503 while the uploads of all accounts use all of the space, and accepts the next one when it is free', async () => {
    const mod = await pod.signedIn('mod')
    expect((await upload({ archive: zipped(archive()) }, mod)).statusCode).toBe(303)
    const { importTotalBytes } = pod.pod.config
    Object.assign(pod.pod.config, { importTotalBytes: 9 * 1024 ** 2 })
    try {
      await pod.pod.db('upload_space').update({ reservedBytes: 9 * 1024 ** 2 })
      const refused = await upload({ archive: zipped(archive()) })
      expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '3600'])
      expect(refused.body).toContain('Other archives use all the space for uploads.')
      await pod.pod.db('upload_space').update({ reservedBytes: 512 * 1024 })
      expect((await upload({ archive: zipped(archive()) })).statusCode).toBe(303)
    } finally {
      Object.assign(pod.pod.config, { importTotalBytes })
    }
  })

  it('counts the lists into which archives are split, and refuses an archive whose lists do not fit', async () => {
    const mod = await pod.signedIn('mod')
    await upload({ archive: zipped(archive()) }, mod)
    await work()
    const [checked] = await pod.pod.db('upload_space')
    const { importTotalBytes } = pod.pod.config
    Object.assign(pod.pod.config, { importTotalBytes: 40 * 1024 ** 2 })
    try {
      const folder = importFolder(pod.pod, { uid: checked.uid })
      const files = await Promise.all((await readdir(folder)).map((name) => stat(join(folder, name))))
      expect(Number(checked.splitBytes)).toBe(files.reduce((sum, { size }) => sum + size, 0))

      await pod.pod.db('upload_space').update({ splitBytes: 39 * 1024 ** 2 })
      const refused = await upload({ archive: zipped(archive()) })
      expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '3600'])

      // The file fits, its lists do not.
      await pod.pod.db('upload_space').update({ splitBytes: 30 * 1024 ** 2 })
      expect((await upload({ archive: zipped(archive()) })).statusCode).toBe(303)
      await pod.pod
        .db('upload_space')
        .where({ uid: checked.uid })
        .update({ splitBytes: 39 * 1024 ** 2 })
      await work()
      expect((await uploads()).map(({ state, error }) => [state, error]).sort()).toEqual([
        ['checking', null], // its old pod is asked again later
        ['failed', 'no_space'],
      ])
      expect(await readdir(dirname(folder))).not.toContain(
        (await uploads()).find(({ state }) => state === 'failed')?.uid,
      )
    } finally {
      Object.assign(pod.pod.config, { importTotalBytes })
    }
  })

  it('moves another account of this pod only with the password of that account', async () => {
    const { pod: opened } = pod
    const account = await addLocalUser(opened, 'moving')
    const { guid } = await addPost(opened, account)
    const other = await addLocalUser(opened, 'sharing')
    const shared = await addPost(opened, other, { public: false })
    const hidden = await addPost(opened, other, { public: false })
    for (const each of [shared, hidden]) await showPost(opened, each, account)
    const [{ id: photoId }] = await opened
      .db('photos')
      .insert({ authorId: other.id, postId: hidden.id, guid: newGuid(), name: 'hidden.jpg', public: false })
      .returning('id')
    await opened.db('photo_visibilities').insert({ userId: account.userId, photoId })
    await opened.db.transaction((transaction) => hidePosts(transaction, [hidden.id]))
    const [{ id: conversationId }] = await opened
      .db('conversations')
      .insert({ guid: newGuid(), authorId: account.id, subject: 'Soup' })
      .returning('id')
    const at = new Date()
    await opened
      .db('conversationVisibilities')
      .insert([account, other].map(({ id }) => ({ conversationId, personId: id, createdAt: at, updatedAt: at })))
    await opened.db('messages').insert({ guid: newGuid(), conversationId, authorId: account.id, text: 'Hot soup' })
    const { file } = await exportToFile(opened, { username: 'moving', kind: 'archive', file: join(folder, newGuid()) })
    await upload({ archive: await readFile(file) })
    await work()
    await dan.visit('/settings/import')
    expect((await uploads())[0].report.sections.conversations).toMatchObject({ skipped: 1, refused: 0 })
    const choices = { contacts: 'true', content: 'true', move: 'true', old_address: account.address }
    await dan.submit({ ...choices, old_password: 'a wrong password' }, '/settings/import/start')
    expect(dan.page.body).toContain('The password or the code of the old account is wrong.')
    await dan.submit(choices, '/settings/import/start')
    expect(dan.page.statusCode).toBe(422)
    const guess = new URLSearchParams({ ...choices, old_password: 'a guess', form: await tokenOf(dan) }).toString()
    const guesses = Array.from({ length: OIDC_LIMITS.wrongPasswords + 3 }, () =>
      pod.inject({
        method: 'POST',
        url: '/settings/import/start',
        remoteAddress: '203.0.113.9',
        headers: { cookie: cookiesOf(dan), 'content-type': 'application/x-www-form-urlencoded' },
        payload: guess,
      }),
    )
    const statuses = (await Promise.all(guesses)).map(({ statusCode }) => statusCode)
    expect(statuses.filter((status) => status === 422)).toHaveLength(OIDC_LIMITS.wrongPasswords)
    expect(statuses.filter((status) => status === 429)).toHaveLength(3)
    expect(await opened.db('imports')).toEqual([])

    await dan.submit({ ...choices, old_password: 'the password of moving' }, '/settings/import/start')
    await work()
    const [{ userId }] = await opened.db('imports')
    const { personId } = await opened.db('users').where({ id: userId }).first()
    expect(await opened.db('posts').where({ guid }).first()).toMatchObject({ authorId: personId })
    expect(await opened.db('post_visibilities').where({ postId: shared.id })).toMatchObject([{ userId }])
    const shown = { postIds: [hidden.id], commentIds: [] }
    await opened.db.transaction((transaction) => unhideContentRows(transaction, shown))
    expect(await opened.db('post_visibilities').where({ postId: hidden.id, userId })).toHaveLength(1)
    expect(await opened.db('photo_visibilities').where({ photoId, userId })).toHaveLength(1)
    expect(await opened.db('users').where({ id: account.userId }).first()).toMatchObject({ lockedAt: expect.any(Date) })
    expect(await opened.db('people').where({ id: account.id }).first()).toMatchObject({ closedAt: expect.any(Date) })
  })

  it('waits for the old pod while somebody else holds an unproven move of the account', async () => {
    const { pod: opened } = pod
    const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const owner = { address: 'vera@old.example', privateKey: keys.privateKey }
    const other = await addLocalUser(opened, 'claiming')
    const move = { oldAddress: owner.address, newPersonId: other.id, signature: 'x', envelope: 'x' }
    await opened.db('account_migrations').insert({ ...move, announceUntil: new Date() })
    for (const end of ['failed', 'checked'] as const) {
      expect((await upload({ archive: zipped(archiveOf(owner)) })).statusCode).toBe(303)
      await work()
      expect((await dan.visit('/settings/import')).body).toContain('The old pod does not answer.')
      const [{ id }] = await uploads().where({ state: 'checking' })
      if (end === 'checked') {
        const publicKey = keys.publicKey.export({ type: 'spki', format: 'pem' }).toString()
        await addRemotePerson(opened, owner.address, { publicKey })
      }
      await check()
      expect(await uploads().where({ id }).first('state', 'error')).toEqual({
        state: end,
        error: end === 'failed' ? 'moved_elsewhere' : null,
      })
    }
    expect((await uploads().where({ state: 'checked' }))[0].report.identity).toBe('proven')
  })

  it('keeps the check of the worker that has claimed the upload last, and no check of a deleted upload', async () => {
    const checkWhile = async (act: () => Promise<unknown>) => {
      let isLookingUp = false
      const remotePods = new Proxy(pod.pod.remotePods, {
        get(target, key) {
          const method = Reflect.get(target, key)
          if (key !== 'get' || isLookingUp) return method
          return async (...args: readonly unknown[]) => {
            isLookingUp = true
            await act()
            return Reflect.apply(method, target, args)
          }
        },
      })
      await upload({ archive: zipped(archive()) })
      await checkUploads({ ...pod.pod, remotePods }, never)
      expect(isLookingUp).toBe(true)
      const [last] = await uploads().orderBy('id', 'desc')
      return { ...last, lists: (await readdir(join(folder, 'imports'))).filter((name) => name === last.uid) }
    }
    const claimedTwice = await checkWhile(async () => {
      await uploads().update({ aliveAt: new Date(0) })
      await checkUploads(pod.pod, never)
      await uploads().update({ state: 'checked' })
    })
    expect(claimedTwice).toMatchObject({ state: 'checked', attempts: 2, lists: [claimedTwice.uid] })
    await dropUpload(pod.pod, { userId: claimedTwice.userId } as never)

    const dropped = await checkWhile(async () => {
      const [{ userId }] = await uploads()
      await dropUpload(pod.pod, { userId } as never)
    })
    expect(dropped).toMatchObject({ state: 'expired', lists: [] })
  })

  it('imports content only with a move', async () => {
    await upload({ archive: zipped(archive()) })
    await check()
    await dan.submit({ content: 'true' }, '/settings/import/start')
    expect(dan.page.body).toContain('imported only with a move')
    await dan.submit({ contacts: 'true' }, '/settings/import/start')
    await work()
    const [found] = await pod.pod.db('imports')
    expect(found).toMatchObject({ state: 'done', options: { contacts: true, content: false, move: false } })
    expect(found.counts.tags).toMatchObject({ imported: 1 })
    expect(found.counts.posts).toMatchObject({ imported: 0 })
  })

  it('reports that only the operator imports, or that imports are off', async () => {
    for (const [mode, text] of [
      ['operator', 'Only the operator of this pod can import'],
      ['off', 'does not import archives'],
    ] as const) {
      const other = await startConsolePod({ environment: { UPLOADS_DIR: folder, IMPORTS: mode } })
      try {
        const browser = await other.signedIn('dan')
        expect((await browser.visit('/settings/import')).body).toContain(text)
      } finally {
        await other.close()
      }
    }
  })
})
