import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { expect, it } from 'vitest'
import { startEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import { copyPreparedData } from '../support/databases/prepared-data.js'
import { makeFolder, query, startElsewhere } from './data-dirs.js'

it('of two pods that start on one folder at once, one starts and the other is refused', async () => {
  const dataDir = join(await makeFolder(), 'var')

  const outcomes = await Promise.all([startElsewhere(dataDir).outcome, startElsewhere(dataDir).outcome])

  const served = outcomes.filter((outcome) => 'url' in outcome)
  const refused = outcomes.filter((outcome) => 'refusal' in outcome)
  expect([served.length, refused.length]).toEqual([1, 1])
  expect(refused[0]?.refusal).toMatch(/^A pod is running on .* already \(process \d+\): stop it first, or give/)
  expect(await query(served[0]?.url ?? '', 'select 1 as one')).toEqual([{ one: 1 }])
  expect((await readdir(dataDir)).filter((name) => name !== 'postgres.log')).toEqual(['postgres'])
})

it('a pod waits for a command that is stopping the server, and starts it again', async () => {
  const dataDir = join(await makeFolder(), 'var')
  await copyPreparedData(dataDir)
  const command = await startEmbeddedPostgres(dataDir, { fast: true })

  const pod = startElsewhere(dataDir)
  const waiting = `select count(*)::int as waiting from pg_locks where locktype = 'advisory' and not granted`
  while ((await query<{ waiting: number }>(command.url, waiting))[0]?.waiting === 0);
  await command.stop()

  expect(await pod.outcome).toMatchObject({ url: command.url, startedHere: true })
})

it('a pod does not take over a server that is shutting down', async () => {
  const dataDir = join(await makeFolder(), 'var')
  await copyPreparedData(dataDir)
  const { url, superuserUrl, pid, stop } = await startEmbeddedPostgres(dataDir, { fast: true })
  const owner = new Client({ connectionString: superuserUrl })
  await owner.connect()
  const pod = startElsewhere(dataDir)
  const locks = `select pid, granted from pg_locks where locktype = 'advisory' order by granted`
  const lockRows = async () => (await owner.query<{ pid: number; granted: boolean }>(locks)).rows
  while ((await lockRows()).length < 2);
  const [, first] = await lockRows()

  process.kill(pid, 'SIGTERM') // smart shutdown: open sessions stay, new ones are refused
  while (
    await query(url, 'select 1').then(
      () => true,
      () => false,
    )
  );
  await owner.query('select pg_terminate_backend($1)', [first?.pid])
  while ((await lockRows()).some(({ granted }) => !granted));
  await owner.end()
  await stop()

  expect(await pod.outcome).toMatchObject({ url, startedHere: true })
})
