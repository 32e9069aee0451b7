import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'pod-vectors-test-'))
afterAll(() => rmSync(folder, { recursive: true }))

const bundled = readFileSync(new URL('../vectors/federation.json', import.meta.url), 'utf8')

/** Runs a file as `npm run test:vectors` does. */
function run(content: string): { readonly status: number | null; readonly lines: readonly string[] } {
  const file = join(folder, 'vectors.json')
  writeFileSync(file, content)
  const runner = fileURLToPath(new URL('run-vectors.ts', import.meta.url))
  const { status, stdout } = spawnSync(process.execPath, ['--import', 'tsx', runner], {
    env: { ...process.env, VECTORS: file },
    encoding: 'utf8',
  })
  return { status, lines: stdout.trimEnd().split('\n') }
}

it('passes a file that is right, and counts', () => {
  expect(run(bundled)).toEqual({ status: 0, lines: ['450 passed, 0 failed'] })
})

it('each failed vector is reported on its own line, and the others pass', () => {
  const vectors = JSON.parse(bundled)
  vectors.people = vectors.people.filter(({ id }: { readonly id: string }) => id === 'alma@meadow.example')
  vectors.receive = [
    {
      name: 'no such kind',
      kind: 'receive_all',
      input: '',
      expect: { ok: false, error: 'InvalidEnvelope', retry: false },
    },
    {
      name: 'no\nenvelope',
      kind: 'receive_public',
      input: '',
      expect: { ok: false, error: 'NotPublic', retry: false },
    },
  ]
  vectors.relay = vectors.relay.slice(0, 1)
  const { status, lines } = run(JSON.stringify({ ...vectors, send: [], types: {}, links: [], schema: [] }))

  expect(status).toBe(1)
  expect(lines).toEqual([
    'failed  receive: no such kind  there is no kind receive_all',
    'failed  receive: no envelope  expected NotPublic, got InvalidEnvelope',
    expect.stringMatching(/^failed {2}relay: .*nobody is called/),
    '18 passed, 3 failed',
  ])
})

it.each([
  ['nothing', ''],
  ['no JSON', '{'],
  ['another format', '{"format":2}'],
  ['null', 'null'],
  ['a section of another shape', '{"format":1,"people":{}}'],
])('fails a file with %s in so many words', (_what, content) => {
  const { status, lines } = run(content)

  expect(status).toBe(1)
  expect(lines).toEqual([expect.stringMatching(/^unreadable {2}/), '0 passed, 0 failed'])
})

it('fails a file without vectors, which shows nothing', () => {
  expect(run('{"format":1}')).toEqual({ status: 1, lines: ['0 passed, 0 failed'] })
})
