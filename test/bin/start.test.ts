import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findRunningEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import { QUEUES } from '../../src/jobs/queues/queue-names.js'
import { administer } from '../support/databases/test-database.js'
import { isAlive, makeFolder, pod, type Settings, type StartedPod, startPod, statusOf, until } from './program.js'

const PASSWORD = 'correct horse battery'

interface Finding {
  readonly check: string
  readonly state: string
}

/** One pod, from its first start on an empty folder to its end; each test continues with the state of the previous one. */
describe('pod start', { timeout: 180_000 }, () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>
  let settings: Settings
  let started: StartedPod
  let authorization: string

  beforeAll(async () => {
    folder = await makeFolder()
    settings = { DATA_DIR: folder.path }
    started = await startPod(settings)
  })
  afterAll(async () => {
    started.child.kill('SIGKILL')
    await folder.remove()
  })

  const askForMe = () => statusOf(`${started.address}/api/v1/user`, { headers: { authorization } })

  it('responds when it has logged that it is ready', async () => {
    expect(await statusOf(`${started.address}/health/ready`)).toBe(200)
    expect(await statusOf(`${started.admin.web}/metrics`)).toBe(200)
    expect(await statusOf(`${started.admin.worker}/health/ready`)).toBe(200)
  })

  it('serves an account and a token created by other commands', async () => {
    const created = await pod(['user', 'create', 'alice', '--password', PASSWORD, '--json'], settings)
    const account = JSON.parse(created.stdout)
    expect(account).toEqual({
      guid: expect.stringMatching(/^[0-9a-f]{32}$/),
      address: 'alice@localhost:3000',
      username: 'alice',
    })

    const minted = await pod(['token', 'alice', '--scopes', 'profile public:read', '--json'], settings)
    authorization = `Bearer ${JSON.parse(minted.stdout).access_token}`
    const response = await fetch(`${started.address}/api/v1/user`, { headers: { authorization } })

    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ guid: account.guid, network_id: account.address, tags: [] })
    expect(await statusOf(`${started.address}/api/v1/user`)).toBe(401)
  })

  it('is found healthy by the doctor, with a worker on every queue', async () => {
    const { code, stdout } = await pod(['doctor', '--json'], settings)

    const { healthy, findings } = JSON.parse(stdout)
    expect(findings).toContainEqual(expect.objectContaining({ check: 'workers', state: 'ok' }))
    expect({ code, healthy }).toEqual({ code: 0, healthy: true })
  })

  it('has no process that uses the database as its superuser', async () => {
    const database = await findRunningEmbeddedPostgres(folder.path)

    const { rows } = await administer(database?.url ?? '', (client) =>
      client.query(
        `select application_name as process, rolsuper as superuser
           from pg_stat_activity join pg_roles on rolname = usename
           where backend_type = 'client backend' and datname = current_database()`,
      ),
    )

    expect(rows).toEqual(
      expect.arrayContaining([
        { process: 'pod web', superuser: false },
        { process: 'pod worker', superuser: false },
      ]),
    )
    expect(rows.filter(({ superuser }) => superuser)).toEqual([])
  })

  it('has no work left after that', async () => {
    const { code, stdout } = await pod(['wait-idle', '--timeout', '20', '--json'], settings)

    expect({ code, stdout }).toEqual({ code: 0, stdout: '{"idle":true}\n' })
  })

  it('shows the workers of each queue in its status', async () => {
    const { stdout } = await pod(['status', '--json'], settings)

    const { queues } = JSON.parse(stdout)
    for (const queue of QUEUES) expect(queues[queue], queue).toMatchObject({ workers: 1 })
  })

  it('refuses a second pod in the same data folder', async () => {
    const { code, stderr } = await pod(['start'], settings)

    expect(code).toBe(1)
    expect(stderr).toMatch(/^A pod is running on .* already/)
    expect(await askForMe()).toBe(200)
  })

  it('starts the web process again, at the same address, when that is killed', async () => {
    const again = started.logged((line) => line.process === 'web' && line.msg === 'process restarted')
    process.kill(started.pids.web, 'SIGKILL')
    await again

    // On a busy machine it answers 503 for a moment.
    await until(async () => (await askForMe()) === 200)
  })

  it('starts the worker again when that is killed', async () => {
    const again = started.logged((line) => line.process === 'worker' && line.msg === 'process restarted')
    process.kill(started.pids.worker, 'SIGKILL')
    await again

    const doctor = async () => JSON.parse((await pod(['doctor', '--json'], settings)).stdout).findings
    await until(async () => (await doctor()).some(({ check, state }: Finding) => check === 'workers' && state === 'ok'))
  })

  it('starts the database again when that is killed, and answers as before', async () => {
    const again = started.logged((line) => line.process === 'database' && line.msg === 'database restarted')
    process.kill(started.pids.database, 'SIGKILL')
    await again

    await until(async () => (await askForMe()) === 200)
  }, 150_000)

  it('stops on a signal and leaves no processes', async () => {
    started.child.kill('SIGTERM')
    started.child.kill('SIGTERM') // as from a supervisor that signals a process and its whole group

    expect(await started.ended).toBe(0)
    expect(started.output.stdout).not.toContain('did not exit cleanly')
    expect(await statusOf(started.address)).toBe(0)
    expect(Object.values(started.pids).filter(isAlive)).toEqual([])
    const { stdout } = await pod(['user', 'list', '--json'], settings)
    expect(JSON.parse(stdout)).toMatchObject([{ username: 'alice' }])
  })

  it('warns when its address differs from that of its accounts', async () => {
    const warnings = () => started.warnings.filter((text) => !text.startsWith('The pod runs as root'))
    expect(started.warnings.length - warnings().length).toBe(process.geteuid?.() === 0 ? 1 : 0)
    expect(warnings()).toEqual([])

    started = await startPod({ ...settings, POD_URL: 'https://pod.example' })

    expect(warnings()).toEqual([
      'This database belongs to localhost:3000, but POD_URL and PORT say pod.example. Restore the original POD_URL or PORT.',
    ])
    started.child.kill('SIGTERM')
    expect(await started.ended).toBe(0)
  })
})
