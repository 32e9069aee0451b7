import { once } from 'node:events'
import { readdir, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config/config.js'
import { copyOldPod, examineOldPod, rehearse, verifyBuilt } from '../../src/take-over/take-over.js'
import { startS3Store } from '../support/s3/s3-store.js'
import { createOldPod, OLD_HOST, type OldPod } from '../support/take-over/old-pod.js'
import { openTestTarget } from '../support/take-over/take-over-target.js'

describe('pictures of an old pod that stores them on another server', () => {
  let old: OldPod
  let server: Server
  let base: string
  const requested: string[] = []
  const pictures = new Map([
    ['/uploads/images/x.JPG', 'original of x'],
    ['/uploads/images/thumb_large_x.JPG', 'large x'],
    ['/uploads/images/old.png', 'original of old'],
  ])
  beforeAll(async () => {
    old = await createOldPod()
    server = createServer((request, response) => {
      requested.push(request.url ?? '')
      const bytes = pictures.get(request.url ?? '')
      response.writeHead(bytes === undefined ? 403 : 200).end(bytes)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/uploads`
    await old
      .db('photos')
      .where({ id: 1 })
      .update({ remote_photo_path: `${base}/images/` })
  })
  afterAll(async () => {
    server.close()
    await old.close()
  })

  it('are fetched by their addresses, each once, and become pictures of this pod', async () => {
    const taken = await openTestTarget(old.url, `https://${OLD_HOST}`)
    try {
      const options = { ...taken.options, uploads: base }
      expect(await copyOldPod(taken.target, options)).toMatchObject({ files: { files: 3, added: 3 } })
      const folder = join(taken.folder, 'uploads', 'images')
      expect((await readdir(folder)).sort()).toEqual(['old.png', 'thumb_large_x.JPG', 'x.JPG'])
      expect(await readFile(join(folder, 'x.JPG'), 'utf8')).toBe('original of x')
      expect(requested).not.toContain('/uploads/images/z.jpg') // of another pod

      requested.length = 0
      const { files, verification } = await rehearse(taken.target, options)
      expect(files).toEqual({ files: 3, added: 0 })
      expect(requested).not.toContain('/uploads/images/x.JPG')
      expect(verification.differences).toEqual([])
      expect(await taken.rowsOf('select remote_path from photos where id = 1')).toEqual([{ remote_path: null }])
    } finally {
      await taken.close()
    }
  }, 120_000)

  it('must be found: an address that refuses every request is a fault, and missing originals are a warning', async () => {
    const taken = await openTestTarget(old.url, `https://${OLD_HOST}`)
    try {
      const refused = { ...taken.options, uploads: base.replace('/uploads', '/private') }
      const { blocks } = await examineOldPod(taken.target, refused)
      expect(blocks).toEqual([
        { code: 'F7', message: expect.stringContaining(`No photo was found at ${refused.uploads}`) },
      ])
      await expect(copyOldPod(taken.target, refused)).rejects.toThrow('F7: No photo was found')

      const options = { ...taken.options, uploads: base }
      expect((await examineOldPod(taken.target, options)).blocks).toEqual([])
      const { verification, warnings } = await rehearse(taken.target, options)
      const { photos = 0, missing = 0 } = verification.originals ?? {}
      expect(photos - missing).toBe(2)
      expect(warnings).toContain(`${missing} of ${photos} photos of users have no original at ${base}.`)

      for (const name of ['old.png', 'x.JPG']) await rm(join(taken.folder, 'uploads', 'images', name))
      const { differences } = await verifyBuilt(taken.target, options)
      expect(differences).toEqual([
        { check: 'pictures', detail: `no original of ${photos} photos was found`, examples: [] },
      ])
    } finally {
      await taken.close()
    }
  }, 120_000)

  it('are read from a bucket with the key of the settings', async () => {
    await using store = await startS3Store()
    await store.client.put('uploads/images/x.JPG', Buffer.from('original of x'))
    await store.client.put('uploads/images/thumb_small_x.JPG', Buffer.from('small x'))
    await store.client.put('uploads/images/not a name', Buffer.from('left out'))
    const taken = await openTestTarget(old.url, `https://${OLD_HOST}`)
    try {
      const { STORAGE: _, ...bucket } = store.environment
      const { s3 } = readConfig({ ...taken.environment, ...bucket, STORAGE: 's3' })
      const target = { ...taken.target, config: { ...taken.target.config, s3 } }
      const options = { ...taken.options, uploads: 's3://pictures/pod/uploads' }
      expect(await copyOldPod(target, options)).toMatchObject({ files: { files: 2, added: 2 } })
      expect(await readFile(join(taken.folder, 'uploads', 'images', 'x.JPG'), 'utf8')).toBe('original of x')
      expect(await copyOldPod(target, options)).toMatchObject({ files: { files: 2, added: 0 } })
      await expect(copyOldPod(taken.target, options)).rejects.toThrow('S3_ACCESS_KEY_ID')
    } finally {
      await taken.close()
    }
  }, 120_000)
})
