import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { streamPage } from '../../scripts/stream-page.js'

it('docs/main-stream.md shows the statements of the code', () => {
  expect(readFileSync(new URL('../../docs/main-stream.md', import.meta.url), 'utf8')).toBe(streamPage())
})
