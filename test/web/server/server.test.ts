import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { administer, createTestDatabase } from '../../support/databases/test-database.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'
import { programOf } from '../../support/processes/pod-process.js'

interface Ready {
  readonly ready: true
  readonly address: string
  readonly admin: string | null
}

describe('the web process', () => {
  let pod: TestPod
  let folder: string
  const children: ChildProcess[] = []
  beforeAll(async () => {
    pod = await buildPod()
    folder = await mkdtemp(join(tmpdir(), 'pod-server-'))
  })
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  })
  afterAll(async () => {
    await pod.close()
    await rm(folder, { recursive: true })
  })

  function start(settings: Record<string, string> = {}) {
    const env = {
      PATH: process.env['PATH'],
      DATABASE_URL: pod.pod.config.databaseUrl,
      SECRET_KEY: pod.pod.config.secretKey,
      DATA_DIR: folder,
      PORT: '0',
      ADMIN_LISTEN: '127.0.0.1:0',
      ...settings,
    }
    const { entry, loaders } = programOf('web')
    const execArgv = loaders.flatMap((module) => ['--import', module])
    const child = fork(entry, { cwd: folder, env, execArgv, silent: true })
    children.push(child)
    const ended = once(child, 'exit')
    let errors = ''
    child.stderr?.on('data', (chunk) => {
      errors += chunk
    })
    // The parent process receives the message once.
    child.on('message', ({ refused = '' }: { refused?: string }) => {
      errors += refused
    })
    child.stdout?.resume()
    return {
      child,
      ready: async () => {
        const [message] = await Promise.race([
          once(child, 'message'),
          ended.then(() => Promise.reject(new Error(errors))),
        ])
        return message as Ready // by contract
      },
      exit: async () => {
        const [code] = await ended
        return { code, errors }
      },
    }
  }

  /** Locks the profiles, so that a request for one waits. */
  async function holdUp(): Promise<Client> {
    const client = new Client({ connectionString: pod.pod.config.databaseUrl })
    await client.connect()
    await client.query('begin; lock table profiles in access exclusive mode')
    return client
  }

  async function untilRequestWaits(client: Client): Promise<void> {
    await vi.waitFor(
      async () => {
        const { rows } = await client.query(
          'select from pg_locks join pg_database on pg_database.oid = database where datname = current_database() and not granted',
        )
        expect(rows).toHaveLength(1)
      },
      { interval: 10 },
    )
  }

  it('logs its address, and stops cleanly on a signal', async () => {
    const web = start()
    const { address, admin } = await web.ready()

    expect((await fetch(address)).status).toBe(200)
    expect((await fetch(`${address}/health/ready`)).status).toBe(200)
    expect((await fetch(`${address}/metrics`)).status).toBe(404)
    expect((await fetch(`${admin}/metrics`)).status).toBe(200)

    web.child.kill('SIGTERM')
    expect(await web.exit()).toEqual({ code: 0, errors: '' })
  })

  it('finishes a running request before it ends, and accepts no new one', async () => {
    const { alice } = await pod.people('alice')
    const web = start()
    const { address } = await web.ready()
    const lock = await holdUp()
    const underWay = fetch(`${address}/api/v1/user`, { headers: { authorization: `Bearer ${alice.token}` } })
    await untilRequestWaits(lock)

    web.child.kill('SIGTERM')
    await vi.waitFor(() => expect(fetch(address)).rejects.toThrow(), { interval: 10 })
    await lock.end()

    const response = await underWay
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ guid: alice.account.guid })
    expect((await web.exit()).code).toBe(0)
  })

  it('still serves for SHUTDOWN_DELAY seconds, and /health/ready answers 503 in the meantime', async () => {
    const web = start({ SHUTDOWN_DELAY: '2' })
    const { address } = await web.ready()

    web.child.kill('SIGTERM')
    await vi.waitFor(async () => expect((await fetch(`${address}/health/ready`)).status).toBe(503), {
      interval: 10,
    })
    expect((await fetch(address)).status).toBe(200)
    expect(await web.exit()).toEqual({ code: 0, errors: '' })
  })

  it('ends at once on the second signal', async () => {
    const { alice } = await pod.people('alice')
    const web = start()
    const { address } = await web.ready()
    const lock = await holdUp()
    const underWay = fetch(`${address}/api/v1/user`, { headers: { authorization: `Bearer ${alice.token}` } })
    await untilRequestWaits(lock)

    web.child.kill('SIGTERM')
    await vi.waitFor(() => expect(fetch(address)).rejects.toThrow(), { interval: 10 })
    web.child.kill('SIGTERM')

    await expect(underWay).rejects.toThrow()
    expect((await web.exit()).code).toBe(1)
    await lock.end()
  })

  it('logs one line when it starts, however many addresses it listens on', async () => {
    const web = start({ HOST: '0.0.0.0', LOG_LEVEL: 'info' })
    const lines: string[] = []
    const output = createInterface(web.child.stdout ?? Readable.from([]))
    output.on('line', (line) => lines.push(JSON.parse(line).msg))
    const ended = once(output, 'close')
    await web.ready()
    web.child.kill('SIGTERM')
    await ended

    expect(lines).toEqual(['web process started', 'web process stopping: finishing running requests'])
  })

  it('explains that its port is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const address = other.address()
    const port = typeof address === 'object' && address ? address.port : 0

    const { code, errors } = await start({ PORT: String(port) }).exit()
    other.close()

    expect(code).toBe(1)
    expect(errors).toBe(
      `The pod cannot listen on port ${port} of 127.0.0.1: another process uses this address. Set PORT or HOST to another address, or stop the process that uses it.`,
    )
  })

  it('explains which settings are wrong', async () => {
    const { code, errors } = await start({ POD_URL: 'nonsense', PORT: '99999', TRUST_PROXY: 'everybody' }).exit()

    expect(code).toBe(1)
    expect(errors).toContain('POD_URL must be')
    expect(errors).toContain('PORT must be')
    expect(errors).toContain('TRUST_PROXY must be')
    expect(errors).not.toContain('    at ')
  })

  it('explains that it cannot store pictures', async () => {
    const { code, errors } = await start({ UPLOADS_DIR: '/proc/uploads' }).exit()

    expect(code).toBe(1)
    expect(errors).toMatch(/^Pictures cannot be stored in \/proc\/uploads \(.+\): make it a folder/)
    expect(errors).not.toContain('    at ')
  })

  it('explains that the database is not migrated', async () => {
    const database = await createTestDatabase()
    await administer(database.url, (client) => client.query('truncate knex_migrations'))

    const { code, errors } = await start({ DATABASE_URL: database.url }).exit()
    await database.drop()

    expect(code).toBe(1)
    expect(errors).toContain('db migrate')
    expect(errors).not.toContain('    at ')
  })
})
