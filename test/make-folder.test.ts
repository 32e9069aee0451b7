import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { makeFolder } from '../src/config/make-folder.js'

async function makePlace(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'pod-folders-'))
  onTestFinished(() => rm(path, { recursive: true }))
  return path
}

it('makeFolder creates a folder with its missing parents, and leaves an existing one unchanged', async () => {
  const path = join(await makePlace(), 'a', 'b')

  await makeFolder(path, 0o700)
  await makeFolder(path, 0o711)

  expect((await stat(path)).mode & 0o777).toBe(0o700)
})

it('makeFolder works concurrently with other calls for the same folder', async () => {
  const place = await makePlace()
  for (let round = 0; round < 20; round += 1) {
    const above = join(place, String(round), 'b')
    const paths = Array.from({ length: 20 }, (_, index) => join(above, String(index % 5)))

    await Promise.all(paths.map((path) => makeFolder(path, 0o700)))
  }
})

it('makeFolder fails when a file has the same path', async () => {
  const file = join(await makePlace(), 'file')
  await writeFile(file, '')

  await expect(makeFolder(file, 0o700)).rejects.toThrow('EEXIST')
  await expect(makeFolder(join(file, 'var'), 0o700)).rejects.toThrow('ENOTDIR')
})

it('makeFolder fails where no folder can be created', async () => {
  await expect(makeFolder('/proc/pod/var', 0o700)).rejects.toThrow(/^E[A-Z]+: /)
})
