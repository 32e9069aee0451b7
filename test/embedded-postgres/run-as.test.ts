import { spawnSync } from 'node:child_process'
import { chmod, mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { findBinaries } from '../../embedded-postgres/binaries.js'
import { startEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import { chooseRunAs, isRoot } from '../../embedded-postgres/run-as.js'
import { makeFolder, NAMELESS, query, startElsewhere, UNSHARE } from './data-dirs.js'

/** A home folder with mode 0700. */
async function makeClosedHome(): Promise<string> {
  const folder = await makeFolder()
  await chmod(folder, 0o700)
  const home = join(folder, 'var')
  await mkdir(home, { mode: 0o711 })
  return home
}

it('PostgreSQL runs as the current user, unless that is root', async () => {
  const runAs = await chooseRunAs(await findBinaries(), await makeFolder())

  expect(runAs).toMatchObject(isRoot() ? { uid: expect.any(Number) } : { kind: 'myself' })
})

it('PostgreSQL runs in a home folder without access for others', async () => {
  const home = await makeClosedHome()

  const server = await startEmbeddedPostgres(home, { fast: true })

  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
  // No permissions were changed for it.
  expect((await stat(join(home, '..'))).mode & 0o777).toBe(0o700)
  await server.stop()
})

it('PostgreSQL runs for a user without a name if user namespaces exist, and otherwise reports that they are missing', async () => {
  const { outcome } = startElsewhere(join(await makeFolder(), 'var'), { nameless: true })

  const inNamespace = spawnSync(UNSHARE, [...NAMELESS, UNSHARE, '-U', 'true']).status === 0
  expect(await outcome).toMatchObject(
    inNamespace ? { startedHere: true } : { refusal: expect.stringContaining('user ID 54321') },
  )
})

it('PostgreSQL starts again after such a home folder was opened', async () => {
  const home = await makeClosedHome()
  const closed = await startEmbeddedPostgres(home, { fast: true })
  await query(closed.url, 'create table kept as select 42 as answer')
  await closed.stop()

  await chmod(join(home, '..'), 0o755)
  const opened = await startEmbeddedPostgres(home, { fast: true })

  expect(await query(opened.url, 'select answer from kept')).toEqual([{ answer: 42 }])
  await opened.stop()
})
