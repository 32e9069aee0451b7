import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { databasePid, isAlive, makePreparedFolder, start, startPod, statusOf, until } from '../../bin/program.js'

describe('pod start, ended in other ways', { timeout: 180_000 }, () => {
  let folder: Awaited<ReturnType<typeof makePreparedFolder>>
  beforeEach(async () => {
    folder = await makePreparedFolder()
  })
  afterEach(() => folder.remove())

  it('leaves no web and worker processes when it is killed, and the next start takes over the database', async () => {
    const first = await startPod({ DATA_DIR: folder.path })
    first.child.kill('SIGKILL')
    await until(() => !isAlive(first.pids.web) && !isAlive(first.pids.worker))
    expect(isAlive(first.pids.database)).toBe(true)

    const second = await startPod({ DATA_DIR: folder.path })
    expect(second.pids.database).toBe(first.pids.database)
    expect(await statusOf(`${second.address}/health/ready`)).toBe(200)

    second.child.kill('SIGTERM')
    expect(await second.ended).toBe(0)
    expect(databasePid(folder.path)).toBeUndefined()
  })

  it('gives web and worker an admin address each, where one is set, and counts Ctrl-C and its repetition by npm once', async () => {
    const ADMIN_LISTEN = join(folder.path, 'admin')
    const pod = await startPod({ DATA_DIR: folder.path, ADMIN_LISTEN, npm_lifecycle_event: 'start' })
    expect(pod.admin).toEqual({ web: `unix:${ADMIN_LISTEN}`, worker: `unix:${ADMIN_LISTEN}.worker` })

    process.kill(-(pod.child.pid ?? 0), 'SIGINT')
    pod.child.kill('SIGTERM')

    expect(await pod.ended).toBe(0)
    expect(pod.output.stdout).not.toContain('did not exit cleanly')
    expect([pod.pids.web, pod.pids.worker].filter(isAlive)).toEqual([])
    await until(() => !isAlive(pod.pids.database)) // it ends right after it has deleted its pid file
  })

  it('ends at once, with exit code 1, on a second stop signal', async () => {
    const pod = await startPod({ DATA_DIR: folder.path })

    pod.child.kill('SIGTERM')
    pod.child.kill('SIGINT')

    expect(await pod.ended).toBe(1)
    await until(() => !Object.values(pod.pids).some(isAlive))
  })

  it('stops in order while it is still starting', async () => {
    const { child, ended } = start(['start', '--json'], { DATA_DIR: folder.path })
    await until(() => databasePid(folder.path) !== undefined)

    child.kill('SIGTERM')

    expect(await ended).toBe(0)
    expect(databasePid(folder.path)).toBeUndefined()
  })

  it('runs beside another pod that has its own data folder', async () => {
    const other = await makePreparedFolder()
    const pods = await Promise.all([startPod({ DATA_DIR: folder.path }), startPod({ DATA_DIR: other.path })])

    const statuses = await Promise.all(pods.map(({ address }) => statusOf(`${address}/health/ready`)))
    expect(statuses).toEqual([200, 200])

    for (const { child } of pods) child.kill('SIGTERM')
    expect(await Promise.all(pods.map(({ ended }) => ended))).toEqual([0, 0])
    await other.remove()
  })
})
