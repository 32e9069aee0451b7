import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'

const run = promisify(execFile)
const command = fileURLToPath(new URL('../../deploy/pod', import.meta.url))

/** Runs deploy/pod with these settings; the program prints its arguments and its environment. */
async function runCommand(settings: string, environment: NodeJS.ProcessEnv = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'pod command '))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await mkdir(join(folder, 'dist/bin'), { recursive: true })
  await writeFile(
    join(folder, 'dist/bin/pod.js'),
    'console.log(JSON.stringify({ arguments: process.argv.slice(2), environment: process.env }))',
  )
  await writeFile(join(folder, 'runuser'), '#!/bin/sh\n[ "$1 $2 $3" = "-u pod --" ] && shift 3 && exec "$@"\n', {
    mode: 0o755,
  })
  await writeFile(join(folder, 'pod.env'), settings)
  const { stdout } = await run(command, ['user', 'create', 'a b'], {
    env: {
      PATH: `${folder}:${process.env['PATH']}`,
      POD_PROGRAM: folder,
      POD_SETTINGS: join(folder, 'pod.env'),
      ...environment,
    },
  })
  return JSON.parse(stdout)
}

it('the command of an installation has the settings as systemd reads them', async () => {
  const settings = `# a comment with NAME=value
; another
POD_URL=https://pod.example
SMTP_URL=smtps://pod:se#cret%2F$x@mail.example

  POD_NAME = The "good" pod #1 
MAIL_FROM="Pod \\"one\\" \\$5" 
PODMIN_CONTACT='a "quoted" \\ text'
S3_SECRET_ACCESS_KEY=a\\#b=c/d+
BACKUP_TO=
no setting
1X=2
REGISTRATIONS=closed`

  const { arguments: args, environment } = await runCommand(settings)

  expect(args).toEqual(['user', 'create', 'a b'])
  expect(environment).toMatchObject({
    POD_URL: 'https://pod.example',
    SMTP_URL: 'smtps://pod:se#cret%2F$x@mail.example',
    POD_NAME: 'The "good" pod #1',
    MAIL_FROM: 'Pod "one" $5',
    PODMIN_CONTACT: 'a "quoted" \\ text',
    S3_SECRET_ACCESS_KEY: 'a#b=c/d+',
    BACKUP_TO: '',
    REGISTRATIONS: 'closed',
    DATA_DIR: '/var/lib/pod',
  })
})

it('the command of an installation uses the data folder of its settings; the environment of the caller overrides it', async () => {
  const settings = 'DATA_DIR=/srv/pod\nPORT=3000\n'

  expect((await runCommand(settings)).environment).toMatchObject({ DATA_DIR: '/srv/pod', PORT: '3000' })
  expect((await runCommand(settings, { DATA_DIR: '/var/lib/pod-copy', PORT: '3100' })).environment).toMatchObject({
    DATA_DIR: '/var/lib/pod-copy',
    PORT: '3100',
  })
})

it('the command of an installation is refused without access to its settings', async () => {
  await expect(runCommand('', { POD_SETTINGS: '/nowhere/pod.env' })).rejects.toThrow(
    '/nowhere/pod.env cannot be read: run this command as root.',
  )
})
