import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { generateBackupKey } from '../../src/operations/backup/encryption.js'
import { makeDueBackup } from '../../src/operations/backup/scheduled-backups.js'
import { openRecordedLog } from '../support/assertions/recorded-log.js'
import { buildPod, type PodWithoutWeb } from '../support/pods/build-pod.js'

let folder: string
let test: PodWithoutWeb
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scheduled-backups-'))
  const { recipient } = await generateBackupKey()
  const environment = { BACKUP_TO: folder, BACKUP_RECIPIENTS: recipient, BACKUP_AT: '00:00' }
  test = await buildPod({ web: false, environment })
})
afterAll(async () => {
  await test.close()
  await rm(folder, { recursive: true })
})
afterEach(async () => {
  await test.pod.db('periodic').where({ name: 'daily-backup' }).delete()
})

/** A program instead of the pod, which notes its words in a file. */
async function writeProgram(name: string, source: string): Promise<URL> {
  const file = join(folder, `${name}.mjs`)
  const note = `appendFileSync(${JSON.stringify(join(folder, name))}, process.argv.slice(2).join(' ') + '\\n')`
  await writeFile(file, `import { appendFileSync } from 'node:fs'\n${note}\n${source}\n`)
  return pathToFileURL(file)
}

const callsOf = (name: string) => readFile(join(folder, name), 'utf8')

it('the daily backup is made by one of three workers', async () => {
  const program = await writeProgram('once', '')
  const never = new AbortController().signal

  await Promise.all([1, 2, 3].map(() => makeDueBackup(test.pod, program, never)))

  expect(await callsOf('once')).toBe('backup create --forget\n')
})

it('a daily backup that fails is logged with its error', async () => {
  const program = await writeProgram('failing', `process.stderr.write('The disk is full.\\n'); process.exitCode = 1`)
  const { log, entries } = openRecordedLog()

  await makeDueBackup({ ...test.pod, log }, program, new AbortController().signal)

  const failed = entries().find(({ msg }) => msg === 'daily backup failed')
  expect(failed).toMatchObject({ code: 1, output: 'The disk is full.' })
})

it('a daily backup ends with its worker', async () => {
  const program = await writeProgram(
    'waiting',
    `process.on('SIGTERM', () => process.exit(1)); setInterval(() => {}, 1_000)`,
  )
  const stopping = new AbortController()
  const run = makeDueBackup(test.pod, program, stopping.signal)
  await expect.poll(() => callsOf('waiting').catch(() => '')).not.toBe('')
  stopping.abort()

  await run
})

it('no daily backup is made by a pod without a recipient, a target or a time', async () => {
  const program = await writeProgram('never', '')
  const { config } = test.pod
  for (const missing of [{ backupTo: undefined }, { backupRecipients: '' }, { backupAt: undefined }]) {
    await makeDueBackup({ ...test.pod, config: { ...config, ...missing } }, program, new AbortController().signal)
  }

  await expect(callsOf('never')).rejects.toThrow('ENOENT')
})
