import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { findRunningEmbeddedPostgres, startEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import { isRoot } from '../../embedded-postgres/run-as.js'
import { killNow, makeFolder, pidFileLines, query, startElsewhere } from './data-dirs.js'

describe('an embedded PostgreSQL after a crash', () => {
  let dataDir: string
  beforeAll(async () => {
    dataDir = join(await makeFolder(), 'var')
  })

  it('a killed server is detected, and restarts at the same address with all committed data', async () => {
    const first = await startEmbeddedPostgres(dataDir)
    await query(first.url, 'create table kept as select 42 as answer')

    process.kill(first.pid, 'SIGKILL')
    await first.exited
    const second = await startEmbeddedPostgres(dataDir)

    expect(second).toMatchObject({ url: first.url, startedHere: true })
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }])
    await second.stop()
  })

  it('an active backend of the killed server does not prevent the next start', async () => {
    const first = await startEmbeddedPostgres(dataDir, { fast: true })
    const busy = query(
      first.url,
      `do $$ declare till timestamptz := clock_timestamp() + '700ms'; begin while clock_timestamp() < till loop end loop; end $$`,
    ).catch((error: Error) => error.message)
    const waiting = `select count(*)::int as busy from pg_stat_activity where state = 'active' and query like 'do %'`
    while ((await query<{ busy: number }>(first.url, waiting))[0]?.busy === 0);

    process.kill(first.pid, 'SIGKILL')
    const second = await startEmbeddedPostgres(dataDir, { fast: true })

    expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await busy
    await second.stop()
  })

  it('a server that loses one connection to a crash keeps its owner', async () => {
    const server = await startEmbeddedPostgres(dataDir, { fast: true })
    let exited = false
    void server.exited.then(() => {
      exited = true
    })

    const [own] = await query<{ pid: number }>(
      server.url,
      `select pid from pg_locks where locktype = 'advisory' and granted`,
    )
    expect(own).toBeDefined()
    if (own) process.kill(own.pid, 'SIGKILL')
    const other = await startElsewhere(dataDir).outcome

    expect(other).toMatchObject({ refusal: expect.stringContaining('is running') })
    expect(exited).toBe(false)
    await server.stop()
  })

  it('the server of a killed pod is taken over, and stopped with the pod that took it over', async () => {
    const pod = startElsewhere(dataDir)
    const left = await pod.outcome
    await killNow(pod.process)

    const server = await startEmbeddedPostgres(dataDir, { fast: true })

    expect(left).toMatchObject({ url: server.url, pid: server.pid, startedHere: true })
    expect(server.startedHere).toBe(false)
    await server.stop()
    expect(await findRunningEmbeddedPostgres(dataDir)).toBeUndefined()
    expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).toContain('database system is shut down')
  })

  it('a server that was taken over is monitored, and its end is detected', async () => {
    const pod = startElsewhere(dataDir)
    await pod.outcome
    await killNow(pod.process)
    const server = await startEmbeddedPostgres(dataDir, { fast: true })

    process.kill(server.pid, 'SIGKILL')

    await server.exited
  })

  it('a pid file with the pid of an unrelated process does not prevent a start', async () => {
    const first = await startEmbeddedPostgres(dataDir, { fast: true })
    process.kill(first.pid, 'SIGKILL')
    await first.exited
    const bystander = await startBystander(join(dataDir, 'postgres'))
    const [, ...rest] = await pidFileLines(dataDir)
    await writeFile(join(dataDir, 'postgres/postmaster.pid'), [bystander.pid, ...rest].join('\n'))

    const second = await startEmbeddedPostgres(dataDir, { fast: true })

    expect(second.startedHere).toBe(true)
    await second.stop()
    expect(bystander.exitCode ?? bystander.signalCode).toBeNull()
  })

  it('a copy of the folder of a running server is treated as a separate server', async () => {
    const original = await startEmbeddedPostgres(dataDir, { fast: true })
    await query(original.superuserUrl, 'checkpoint')
    const copied = join(await makeFolder(), 'var')
    await cp(dataDir, copied, { recursive: true })

    const copy = await startEmbeddedPostgres(copied, { fast: true })

    expect(copy).toMatchObject({ startedHere: true })
    expect(copy.pid).not.toBe(original.pid)
    expect(copy.url).not.toBe(original.url)
    await copy.stop()
    expect(await query(original.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await original.stop()
  })
})

/** A process that PostgreSQL would treat as its predecessor: it belongs to the same user. */
async function startBystander(cluster: string): Promise<ChildProcess> {
  const { uid, gid } = await stat(cluster)
  const bystander = spawn('sleep', ['60'], { cwd: '/', ...(isRoot() ? { uid, gid } : {}) })
  onTestFinished(() => {
    bystander.kill()
  })
  await once(bystander, 'spawn')
  return bystander
}
