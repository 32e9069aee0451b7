import { execFile } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findProgram } from './find-program.js'

const run = promisify(execFile)
const units = fileURLToPath(new URL('../../deploy/systemd', import.meta.url))
const services = ['pod.service', 'pod-web@.service', 'pod-worker@.service', 'pod-migrate.service']

describe('each systemd service', () => {
  it.each(services)('%s runs as its own user, in its own folder', async (name) => {
    const unit = await readFile(join(units, name), 'utf8')

    for (const line of ['User=pod', 'StateDirectory=pod', 'EnvironmentFile=/etc/pod/pod.env', 'NoNewPrivileges=yes']) {
      expect(unit.split('\n')).toContain(line)
    }
    expect(unit).not.toMatch(/^MemoryDenyWriteExecute/m) // V8 compiles at run time
  })

  it.each(['pod.service', 'pod-worker@.service'])('%s may write to the folder of backups', async (name) => {
    expect((await readFile(join(units, name), 'utf8')).split('\n')).toContain('ReadWritePaths=-/mnt/backups')
    const page = await readFile(new URL('../../docs/operating.md', import.meta.url), 'utf8')
    expect(page).toContain('BACKUP_TO=/mnt/backups')
  })

  it.each(['pod-web@.service', 'pod-worker@.service'])('%s is not restarted with the migrations', async (name) => {
    const unit = (await readFile(join(units, name), 'utf8')).split('\n')

    expect(unit).toContain('Wants=pod-migrate.service')
    expect(unit).toContain('After=pod-migrate.service postgresql.service redis-server.service')
    expect(unit.filter((line) => /^(Requires|BindsTo|Requisite|PartOf)=.*pod-migrate/.test(line))).toEqual([])
  })

  it('pod-migrate.service lets the command stop the embedded PostgreSQL', async () => {
    const unit = (await readFile(join(units, 'pod-migrate.service'), 'utf8')).split('\n')

    for (const line of ['KillMode=mixed', 'TimeoutStopSec=40', 'LimitNOFILE=65536']) expect(unit).toContain(line)
  })

  it.each(services.slice(0, 3))('%s gives the pod time to stop by itself', async (name) => {
    const unit = (await readFile(join(units, name), 'utf8')).split('\n')

    for (const line of [
      'Type=exec',
      'KillMode=mixed',
      'TimeoutStopSec=40',
      'Restart=on-failure',
      'LimitNOFILE=65536',
    ]) {
      expect(unit).toContain(line)
    }
  })
})

describe.runIf(await findProgram('systemd-analyze'))('systemd-analyze', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'units-'))
    await cp(units, folder, { recursive: true })
    await cp(join(folder, 'pod-web@.service'), join(folder, 'pod-web@3000.service'))
    await cp(join(folder, 'pod-worker@.service'), join(folder, 'pod-worker@1.service'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  it('exposes little of the system to each service', async () => {
    for (const name of ['pod.service', 'pod-web@3000.service', 'pod-worker@1.service', 'pod-migrate.service']) {
      const { stdout } = await run('systemd-analyze', [
        'security',
        '--offline=true',
        '--threshold=25',
        join(folder, name),
      ])
      const [, level = '10'] = /Overall exposure level for \S+: ([0-9.]+)/.exec(stdout) ?? []
      expect(Number(level), name).toBeLessThanOrEqual(2.5)
    }
  })

  it('finds no fault in the units', async () => {
    const files = (await readdir(folder)).filter((name) => !name.includes('@.')).map((name) => join(folder, name))
    const { stdout, stderr } = await run('systemd-analyze', ['verify', '--man=no', ...files]).catch((error) => error)

    const faults = `${stdout}${stderr}`.split('\n').filter((line) => line !== '')
    // The program and its user exist on the server only.
    expect(faults.filter((line) => !/Command \/usr\/bin\/node is not executable/.test(line))).toEqual([])
  })
})
