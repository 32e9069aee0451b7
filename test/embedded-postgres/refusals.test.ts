import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { findBinaries } from '../../embedded-postgres/binaries.js'
import { createCluster } from '../../embedded-postgres/cluster.js'
import {
  EmbeddedPostgresError,
  findRunningEmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../embedded-postgres/embedded-postgres.js'
import { copyPreparedData } from '../support/databases/prepared-data.js'
import { makeFolder } from './data-dirs.js'

/** One sentence, with the remedy after a colon. */
async function refusalOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof EmbeddedPostgresError)) throw new Error(`not refused, or not by us: ${error}`)
  expect(error.message).toMatch(/^[^\n]+: [^\n]+\.$/)
  return error.message
}

describe('the embedded PostgreSQL reports in one sentence', () => {
  it('an unsupported platform is reported in one sentence', async () => {
    expect(await refusalOf(findBinaries('plan9', 'm68k'))).toMatch(/^No PostgreSQL for plan9-m68k .* set DATABASE_URL /)
  })

  it('an unusable data folder is reported in one sentence', async () => {
    const file = join(await makeFolder(), 'var')
    await writeFile(file, 'not a folder')

    expect(await refusalOf(startEmbeddedPostgres(file))).toMatch(/^The data folder .*var cannot be used .* DATA_DIR\.$/)
  })

  it('data of another major version are reported in one sentence', async () => {
    const dataDir = join(await makeFolder(), 'var')
    await copyPreparedData(dataDir)
    await writeFile(join(dataDir, 'postgres/PG_VERSION'), '17\n')

    expect(await refusalOf(startEmbeddedPostgres(dataDir))).toMatch(/ made by PostgreSQL 17, .* brings PostgreSQL 18: /)
  })

  it('why the database cannot be created, and leaves no files', async () => {
    const home = join(await makeFolder(), 'var')
    const folder = join(await makeFolder(), 'native')
    await mkdir(home)
    await mkdir(join(folder, 'bin'), { recursive: true })
    await writeFile(join(folder, 'bin/initdb'), '#!/bin/sh\necho "initdb: could not look up you" >&2; exit 1', {
      mode: 0o755,
    })

    const made = createCluster({ dataDir: home, home }, { folder, version: '18.4' }, { kind: 'myself' }, { fast: true })

    expect(await refusalOf(made)).toContain(
      `cannot be created in ${home} (could not look up you): set another DATA_DIR`,
    )
    expect(await readdir(home)).toEqual([])
  })

  it('a folder without a database is reported in one sentence', async () => {
    const dataDir = join(await makeFolder(), 'var')
    await mkdir(join(dataDir, 'postgres'), { recursive: true })
    await writeFile(join(dataDir, 'postgres/notes.txt'), 'my own notes')

    expect(await refusalOf(startEmbeddedPostgres(dataDir))).toContain('is not a database of this pod')
    expect(await refusalOf(findRunningEmbeddedPostgres(dataDir))).toContain('is not a database of this pod')
  })

  it('why the server does not start, and where to read more', async () => {
    const dataDir = join(await makeFolder(), 'var')
    await copyPreparedData(dataDir)
    const squatter = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => {
      squatter.close()
    })
    await new Promise((resolve) => squatter.once('listening', resolve))
    const address = squatter.address()
    const port = typeof address === 'object' && address ? address.port : 0

    const refusal = await refusalOf(startEmbeddedPostgres(dataDir, { fast: true, port }))

    expect(refusal).toMatch(/^PostgreSQL does not start on .*: could not create any TCP\/IP sockets/)
    expect(refusal).toContain(join(dataDir, 'postgres.log'))
  })
})
