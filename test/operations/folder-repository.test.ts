import { chown, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openFolderRepository } from '../../src/operations/backup/repositories/folder-repository.js'

/** `nobody` */
const OTHER_USER = 65_534

it.runIf(process.getuid?.() === 0)('what root writes belongs to the owner of the folder of backups', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'backups-'))
  await chown(folder, OTHER_USER, OTHER_USER)

  await openFolderRepository(folder).write('backups/one/verified', [Buffer.from('now')])

  const owners = ['backups', 'backups/one', 'backups/one/verified'].map(
    async (path) => (await stat(join(folder, path))).uid,
  )
  expect(await Promise.all(owners)).toEqual([OTHER_USER, OTHER_USER, OTHER_USER])
  await rm(folder, { recursive: true })
})
