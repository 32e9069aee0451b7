import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

describe('GET /uploads/images/:name', () => {
  let folder: string
  let pod: TestPod
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pod-uploads-'))
    const images = join(folder, 'uploads/images')
    await mkdir(join(images, 'folder.png'), { recursive: true })
    await writeFile(join(folder, 'secret-key'), 'secret')
    await writeFile(join(folder, 'uploads/other.png'), 'secret')
    await writeFile(join(images, '.hidden.png'), 'secret')
    await writeFile(join(images, 'page.html'), 'secret')
    await writeFile(join(images, 'vector.svg'), 'secret')
    await symlink(join(folder, 'secret-key'), join(images, 'link.png'))
    for (const name of ['a1.png', 'thumb_small_a1.png', 'scaled_full_a1.jpeg'])
      await writeFile(join(images, name), name)
    pod = await buildPod({ environment: { DATA_DIR: folder } })
  })
  afterAll(async () => {
    await pod.close()
    await rm(folder, { recursive: true })
  })

  const get = (path: string, headers = {}) => pod.inject({ url: `/uploads/images/${path}`, headers })

  it.each([
    ['a1.png', 'image/png'],
    ['thumb_small_a1.png', 'image/png'],
    ['scaled_full_a1.jpeg', 'image/jpeg'],
  ])('serves %s publicly, for a year, with the media type of its name', async (name, type) => {
    const { statusCode, headers, body } = await get(name)

    expect([statusCode, body]).toEqual([200, name])
    expect(headers).toMatchObject({
      'content-type': type,
      'content-length': String(name.length),
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'cross-origin',
      'access-control-allow-origin': '*',
      etag: expect.stringMatching(/^"[0-9a-f]+-[0-9a-f]+"$/),
    })
    expect(headers['content-security-policy']).toBe("default-src 'none';sandbox")
  })

  it('answers 304 to who has the picture, and HEAD with the headers alone', async () => {
    const whole = await get('a1.png', { 'accept-encoding': 'gzip, br' })
    const etag = String(whole.headers.etag)
    const known = await get('a1.png', { 'if-none-match': `"other", W/${etag}` })
    const head = await pod.inject({ method: 'HEAD', url: '/uploads/images/a1.png' })
    const knownHead = await pod.inject({
      method: 'HEAD',
      url: '/uploads/images/a1.png',
      headers: { 'if-none-match': etag },
    })

    expect([whole.headers['content-encoding'], whole.headers.vary]).toEqual([undefined, undefined])
    expect([known.statusCode, known.body, known.headers.etag]).toEqual([304, '', etag])
    expect(known.headers['cache-control']).toBe(whole.headers['cache-control'])
    expect((await get('a1.png', { 'if-none-match': '"other"' })).statusCode).toBe(200)
    const { date: _date, 'x-request-id': _id, connection: _connection, ...headers } = whole.headers
    expect([head.statusCode, head.body]).toEqual([200, ''])
    expect(head.headers).toMatchObject(headers)
    expect([knownHead.statusCode, knownHead.headers.etag]).toEqual([304, etag])
    expect((await pod.inject({ method: 'HEAD', url: '/uploads/images/b2.png' })).statusCode).toBe(404)
  })

  it('sends a part to GET alone, and the whole picture if the client has the beginning of another one', async () => {
    const range = 'bytes=1-2'
    const etag = String((await get('a1.png')).headers.etag)
    const head = await pod.inject({ method: 'HEAD', url: '/uploads/images/a1.png', headers: { range } })
    const answers = [
      await get('a1.png', { range, 'if-range': etag }),
      await get('a1.png', { range, 'if-range': '"another"' }),
      await get('a1.png', { range, 'if-range': 'Mon, 30 Nov 2026 00:00:00 GMT' }),
    ]

    expect(answers.map(({ statusCode, body }) => `${statusCode} ${body}`)).toEqual([
      '206 1.',
      '200 a1.png',
      '200 a1.png',
    ])
    expect([head.statusCode, head.headers['content-length'], head.headers['content-range']]).toEqual([
      200,
      '6',
      undefined,
    ])
  })

  it('serves the imported photos of each person under their old names', async () => {
    const guids = ['1', '2'].map((digit) => digit.repeat(32))
    for (const guid of guids) {
      for (const size of ['', 'thumb_small_'])
        await writeFile(join(folder, 'uploads/images', `${size}${guid}-same.png`), `${size}${guid}`)
    }
    for (const guid of guids) {
      for (const size of ['', 'thumb_small_']) {
        const { statusCode, body } = await get(`${guid}/${size}same.png`)
        expect([statusCode, body]).toEqual([200, `${size}${guid}`])
      }
    }
    expect((await get(`${'3'.repeat(32)}/same.png`)).statusCode).toBe(404)
  })

  it.each([
    ['nothing', 'b2.png'],
    ['a folder', 'folder.png'],
    ['a link', 'link.png'],
    ['a hidden file', '.hidden.png'],
    ['a page', 'page.html'],
    ['a drawing that may hold scripts', 'vector.svg'],
    ['a file outside', '..%2fother.png'],
    ['a file outside, written otherwise', '..%5cother.png'],
    ['a key', '..%2f..%2fsecret-key'],
    ['the folder itself', '%2e'],
    ['a name with an end in it', 'a1.png%00.png'],
    ['a name that is too long', `${'a'.repeat(300)}.png`],
  ])('answers 404 for %s', async (_what, path) => {
    const { statusCode, headers, body } = await get(path)

    expect([statusCode, body.includes('secret')]).toEqual([404, false])
    expect(headers['cache-control']).toBe('no-store')
  })

  it('answers the same without a folder', async () => {
    await using other = await buildPod({ environment: { DATA_DIR: join(folder, 'nowhere') } })

    expect((await other.inject('/uploads/images/a1.png')).statusCode).toBe(404)
  })
})
