import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const folder = fileURLToPath(new URL('../../src/protocol', import.meta.url))
const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))

// What is there without an import; layers.test.ts looks at those.
const references =
  /\b(?:process\.|console\.|fetch\(|Date\.now|new Date\(\)|performance\.|Math\.random|setTimeout|globalThis)/

it('the protocol layer uses no global clock, environment or network', () => {
  expect(paths.length).toBeGreaterThan(20)
  for (const path of paths)
    expect([path, references.exec(readFileSync(join(folder, path), 'utf8'))?.[0]]).toEqual([path, undefined])
})
