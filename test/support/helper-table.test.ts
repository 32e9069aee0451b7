import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const folder = new URL('./', import.meta.url)
const page = readFileSync(new URL('../../docs/testing.md', import.meta.url), 'utf8')

/** The rows say "`name`, `name` (`path`)". */
const rows = Array.from(
  page.matchAll(/((?:`\w+`(?:, )?)+) \(`([\w-]+\/[\w-]+\.ts)`\)/g),
  ([, names = '', path = '']) => ({
    path,
    names: Array.from(names.matchAll(/\w+/g), ([name]) => name),
  }),
)

it('names helpers that exist in the named files', () => {
  const missing = rows.flatMap(({ path, names }) => {
    const source = readFileSync(new URL(path, folder), 'utf8')
    return names.filter((name) => !new RegExp(`^export (async )?(function|const) ${name}\\b`, 'm').test(source))
  })

  expect(rows.length).toBeGreaterThan(50)
  expect(missing).toEqual([])
})

it('names every file with helpers', () => {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !/\.(test|d)\.ts$/.test(path) && !path.startsWith('vitest/'))
    .toSorted()

  expect([...new Set(rows.map(({ path }) => path))].toSorted()).toEqual(files)
})
