import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { expect, it } from 'vitest'
import { startEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import { copyPreparedData } from '../support/databases/prepared-data.js'
import { makeFolder, query, startElsewhere } from './data-dirs.js'

it('a folder serves one pod and refuses the other when two start on it at once', async () => {
  const dataDir = join(await makeFolder(), 'var')

  const answers = await Promise.all([startElsewhere(dataDir).answer, startElsewhere(dataDir).answer])

  const served = answers.filter((answer) => 'url' in answer)
  const refused = answers.filter((answer) => 'refusal' in answer)
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

  expect(await pod.answer).toMatchObject({ url: command.url, startedHere: true })
})

it('a pod does not take over a server that is shutting down', async () => {
  const dataDir = join(await makeFolder(), 'var')
  await copyPreparedData(dataDir)
  const { url, superuserUrl, pid, stop } = await startEmbeddedPostgres(dataDir, { fast: true })
  const owner = new Client({ connectionString: superuserUrl })
  await owner.connect()
  const pod = startElsewhere(dataDir)
  const owners = `select pid, granted from pg_locks where locktype = 'advisory' order by granted`
  const standing = async () => (await owner.query<{ pid: number; granted: boolean }>(owners)).rows
  while ((await standing()).length < 2);
  const [, first] = await standing()

  process.kill(pid, 'SIGTERM') // smart shutdown: open sessions stay, new ones are refused
  while (
    await query(url, 'select 1').then(
      () => true,
      () => false,
    )
  );
  await owner.query('select pg_terminate_backend($1)', [first?.pid])
  while ((await standing()).some(({ granted }) => !granted));
  await owner.end()
  await stop()

  expect(await pod.answer).toMatchObject({ url, startedHere: true })
})
