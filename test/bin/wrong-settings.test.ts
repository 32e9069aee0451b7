import { writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder, makePreparedFolder, type Outcome, pod } from './program.js'

/** Refused before the command starts anything, so that it can share the process of others. */
const TOGETHER = { ownProcess: false }

/** A few sentences with the remedy; no stack trace; exit code 1. */
function expectSentence({ code, stderr }: Outcome, sentence: RegExp): void {
  expect(stderr).toMatch(sentence)
  expect(stderr).not.toMatch(/^\s+at /m)
  expect(stderr.trimEnd().split('\n').length).toBeLessThan(5)
  expect(code).toBe(1)
}

describe('a pod with wrong settings', { timeout: 180_000 }, () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>
  let occupant: Server
  let takenPort: string

  beforeAll(async () => {
    folder = await makeFolder()
    occupant = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => occupant.once('listening', resolve))
    const address = occupant.address()
    takenPort = String(typeof address === 'object' ? address?.port : '')
  })
  afterAll(async () => {
    occupant.close()
    await folder.remove()
  })

  it('reports an invalid POD_URL', async () => {
    const outcome = await pod(['start'], { POD_URL: 'pod.example' }, TOGETHER)

    expectSentence(outcome, /POD_URL must be a complete address/)
  })

  it('reports every wrong setting at once', async () => {
    const outcome = await pod(['start'], { PORT: 'many', REDIS_URL: 'localhost' }, TOGETHER)

    expectSentence(outcome, /PORT must be a port number/)
    expectSentence(outcome, /REDIS_URL must be an address/)
  })

  it('reports an unreachable database within seconds, without the password', async () => {
    const outcome = await pod(['start'], {
      DATABASE_URL: 'postgres://pod:very-secret@127.0.0.1:1/pod',
      DATA_DIR: folder.path,
    })

    expectSentence(outcome, /^The database pod on 127\.0\.0\.1:1 does not answer \(.*ECONNREFUSED.*check DATABASE_URL/)
    expect(outcome.stdout + outcome.stderr).not.toContain('very-secret')
  })

  it('reports the same for a single command', async () => {
    const DATABASE_URL = 'postgres://pod:very-secret@localhost:1/pod'
    for (const words of [
      ['db', 'migrate'],
      ['user', 'list'],
    ]) {
      const outcome = await pod(words, { DATABASE_URL, DATA_DIR: folder.path })

      expectSentence(outcome, /The database .*localhost:1 .*ECONNREFUSED/)
      expect(outcome.stderr).not.toContain('very-secret')
    }
  })

  it('reports an unusable folder for pictures before it starts other processes', async () => {
    const settings = { UPLOADS_DIR: '/proc/uploads', DATA_DIR: folder.path, LOG_LEVEL: 'silent' }
    const outcome = await pod(['start'], settings, TOGETHER)

    expectSentence(outcome, /^Pictures cannot be stored in \/proc\/uploads .* or set another UPLOADS_DIR\.\n$/)
  })

  it('reports the port that is in use', async () => {
    const prepared = await makePreparedFolder()
    const outcome = await pod(['start'], { PORT: takenPort, DATA_DIR: prepared.path, LOG_LEVEL: 'silent' })
    await prepared.remove()

    expectSentence(outcome, new RegExp(`^The pod cannot listen on port ${takenPort}.*Set PORT.*\n$`))
  })

  it('reports that DATA_DIR cannot be created', async () => {
    expectSentence(await pod(['start'], { DATA_DIR: '/proc/pod' }, TOGETHER), /\/proc\/pod.*DATA_DIR/)
  })

  it('reports the folder that cannot be written', async () => {
    const file = join(folder.path, 'a-file')
    await writeFile(file, '')

    for (const words of [['start'], ['user', 'list']]) {
      expectSentence(await pod(words, { DATA_DIR: join(file, 'var') }, TOGETHER), /a-file\/var.*DATA_DIR/)
    }
  })

  it('reports a data folder without a valid embedded database', async () => {
    const other = await makeFolder()
    await writeFile(join(other.path, 'postgres'), 'not a folder')

    expectSentence(await pod(['start'], { DATA_DIR: other.path }, TOGETHER), /is not a database of this pod/)
    await other.remove()
  })

  it.each(['web', 'worker'])('reports that %s alone needs a database', async (command) => {
    const outcome = await pod([command], { DATA_DIR: join(folder.path, 'empty'), LOG_LEVEL: 'silent' })

    expectSentence(outcome, /There is no database: DATABASE_URL is not set.*npm start/)
  })

  it('reports the required Node version before anything else', async () => {
    const pretend = 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.18.3" } })'
    const outcome = await pod(['start'], {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(pretend)}`,
    })

    expectSentence(outcome, /^The pod needs Node 20\.19 or newer, and this is 20\.18\.3/)
  })
})
