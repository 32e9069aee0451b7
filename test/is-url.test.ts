import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { isUrl } from '../src/protocol/is-url.js'

it('isUrl accepts a URL with non-ASCII letters on every call', () => {
  let refused = 0
  for (let times = 0; times < 50_000; times += 1) if (!isUrl('https://example.org/bücher')) refused += 1

  expect(refused).toBe(0)
  expect([isUrl('nothing'), isUrl('/path'), isUrl('/path', 'https://example.org')]).toEqual([false, false, true])
})

it('isUrl replaces URL.canParse, which is wrong on Node 20', () => {
  const root = join(import.meta.dirname, '..')
  const users = ['src', 'workers', 'bin'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map((path) => join(folder, path))
      .filter((path) => path.endsWith('.ts') && readFileSync(join(root, path), 'utf8').includes('URL.canParse(')),
  )
  expect(users).toEqual([])
})
