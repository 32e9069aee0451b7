import { describe, expect, it, vi } from 'vitest'
import { borrowDatabase } from '../../bin/borrow-database.js'
import { ServerOwnedError, startEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import { readConfig } from '../../src/config/config.js'
import { makePreparedFolder } from './program.js'

vi.mock(import('../../embedded-postgres/embedded-postgres.js'), async (original) => {
  const real = await original()
  return { ...real, startEmbeddedPostgres: vi.fn(real.startEmbeddedPostgres) }
})

describe('a command that starts beside another one', () => {
  it('starts its own server if the other one has just stopped the server it owned', async () => {
    const folder = await makePreparedFolder()
    vi.mocked(startEmbeddedPostgres).mockRejectedValueOnce(new ServerOwnedError('A pod is running.'))

    const database = await borrowDatabase(readConfig({ DATA_DIR: folder.path }))

    expect(database.url).toMatch(/^postgres:/)
    expect(startEmbeddedPostgres).toHaveBeenCalledTimes(2)
    await database.release()
    await folder.remove()
  })
})
