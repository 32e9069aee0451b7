import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { findRunningEmbeddedPostgres, startEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import { makeFolder, query } from './data-dirs.js'

/** Created by the first test, and used by those that do not need an empty folder. */
let dataDir: string
beforeAll(async () => {
  dataDir = join(await makeFolder(), 'var')
})

describe('startEmbeddedPostgres', () => {
  it('creates a database in an empty folder and serves it', async () => {
    const server = await startEmbeddedPostgres(dataDir)

    expect(server.startedHere).toBe(true)
    expect(
      await query(
        server.url,
        `select current_database() as database, current_setting('max_connections') as connections,
                current_setting('data_checksums') as checksums, current_setting('fsync') as fsync,
                current_setting('server_encoding') as encoding, current_setting('listen_addresses') as listens,
                (select datlocale from pg_database where datname = 'pod') as locale, upper('käse') as upper`,
      ),
    ).toEqual([
      {
        database: 'pod',
        connections: '200',
        checksums: 'on',
        fsync: 'on',
        encoding: 'UTF8',
        listens: '127.0.0.1',
        locale: 'C.UTF-8',
        upper: 'KÄSE',
      },
    ])
    await server.stop()
  })

  it('keeps the data, the address and the password from one start to the next', async () => {
    const first = await startEmbeddedPostgres(dataDir, { fast: true })
    await query(first.url, 'create table kept as select 42 as answer')
    await first.stop()

    const second = await startEmbeddedPostgres(dataDir, { fast: true })

    expect(second.url).toBe(first.url)
    expect(second.pid).not.toBe(first.pid)
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }])
    await second.stop()
  })

  it('accepts a folder relative to the working directory', async () => {
    const server = await startEmbeddedPostgres(relative(process.cwd(), dataDir), { fast: true })

    expect(await query(server.superuserUrl, `select current_setting('data_directory') as folder`)).toEqual([
      { folder: join(dataDir, 'postgres') },
    ])
    await server.stop()
  })

  it('requires the password, which only the owner may read', async () => {
    const server = await startEmbeddedPostgres(dataDir, { fast: true })
    const wrong = new URL(server.url)
    wrong.password = 'guess'

    await expect(query(wrong.href, 'select 1')).rejects.toMatchObject({ code: '28P01' })

    expect((await stat(join(dataDir, 'postgres'))).mode & 0o777).toBe(0o700)
    expect((await stat(join(dataDir, 'postgres/pod.password'))).mode & 0o777).toBe(0o600)
    expect((await stat(join(dataDir, 'postgres.log'))).mode & 0o777).toBe(0o600)
    expect((await stat(dataDir)).mode & 0o066).toBe(0)
    await server.stop()
  })

  it('stops cleanly and leaves no processes', async () => {
    const server = await startEmbeddedPostgres(dataDir, { fast: true })

    await Promise.all([server.stop(), server.stop()])

    expect(await findRunningEmbeddedPostgres(dataDir)).toBeUndefined()
    expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).toContain('database system is shut down')
    expect(await readdir(join(dataDir, 'postgres'))).not.toContain('postmaster.pid')
    // The server is a child of this process, which gets its exit event a moment later.
    await vi.waitFor(() => expect(() => process.kill(server.pid, 0)).toThrow('ESRCH'))
  })

  it('starts over when an earlier start was interrupted during initdb', async () => {
    const fresh = join(await makeFolder(), 'var')
    await mkdir(join(fresh, 'postgres.new-0badcafe/data'), { recursive: true })
    await writeFile(join(fresh, 'postgres.new-0badcafe/data/PG_VERSION'), '18\n')

    const server = await startEmbeddedPostgres(fresh, { fast: true })

    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(await readdir(fresh)).toEqual(['postgres', 'postgres.log'])
    await server.stop()
  })

  it('creates the database of the pod when an earlier start ended just before that', async () => {
    const first = await startEmbeddedPostgres(dataDir, { fast: true })
    await query(first.url.replace(/pod$/, 'postgres'), 'drop database pod')
    await first.stop()

    const second = await startEmbeddedPostgres(dataDir, { fast: true })

    expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await second.stop()
  })
})

describe('findRunningEmbeddedPostgres', () => {
  it('finds the running server, and leaves it running', async () => {
    expect(await findRunningEmbeddedPostgres(dataDir)).toBeUndefined()
    const server = await startEmbeddedPostgres(dataDir, { fast: true })

    const found = await findRunningEmbeddedPostgres(dataDir)

    expect(found).toEqual({ url: server.url, pid: server.pid })
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await server.stop()
    expect(await findRunningEmbeddedPostgres(dataDir)).toBeUndefined()
  })
})
