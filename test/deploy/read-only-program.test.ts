import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { plain } from '../support/files/pictures.js'
import { lastStage, readDockerfile, valuesOf } from './dockerfile.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** `nobody`, on a machine where the tests run as root. */
const OTHER_USER = 65_534
const isRoot = process.getuid?.() === 0

let folder: string
let data: string
let program: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'image-'))
  program = join(folder, 'app')
  data = join(folder, 'data')
  await mkdir(program)
  for (const value of valuesOf(lastStage(await readDockerfile()), 'COPY')) {
    const paths = value
      .replace(/^--from=\S+ /, '')
      .replaceAll('/app/', '')
      .split(' ')
      .slice(0, -1)
    for (const path of paths.filter((path) => path !== 'node_modules')) {
      await cp(join(root, path), join(program, path), { recursive: true })
    }
  }
  await symlink(join(root, 'node_modules'), join(program, 'node_modules'))
  await mkdir(data, { mode: 0o700 })
  await chmod(folder, 0o755)
  if (isRoot) await chown(data, OTHER_USER, OTHER_USER)
  await makeReadOnly(program)
}, 240_000)
const started: ChildProcess[] = []
afterAll(async () => {
  for (const child of started) child.kill('SIGTERM')
  await chmod(program, 0o755)
  await rm(folder, { recursive: true, force: true })
})

async function makeReadOnly(path: string): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await makeReadOnly(join(path, entry.name))
  }
  await chmod(path, 0o555)
}

/** Starts the program as the image does: as a user who may write to the data folder only. */
function startAsImage(words: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, ['dist/bin/pod.js', ...words], {
    cwd: program,
    env: {
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: '0',
      ADMIN_LISTEN: '127.0.0.1:0',
      DATA_DIR: data,
      LOG_FORMAT: 'json',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(isRoot && { uid: OTHER_USER, gid: OTHER_USER }),
  })
  started.push(child)
  return child
}

async function readOutput(child: ChildProcess): Promise<string> {
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const [code] = await once(child, 'exit')
  expect(code).toBe(0)
  return text
}

it('a program folder that cannot be written runs a complete pod, which stops cleanly on SIGTERM', {
  timeout: 120_000,
}, async () => {
  const pod = startAsImage(['start', '--json'])
  const ended = once(pod, 'exit')
  const summary = await new Promise<{ address: string }>((resolve, reject) => {
    if (pod.stdout === null) throw new Error('The process has no output.')
    createInterface(pod.stdout).on('line', (line) => {
      const value = JSON.parse(line)
      if (value.ready === true) resolve(value)
    })
    void ended.then(() => reject(new Error('The pod ended before it was ready.')))
  })

  await readOutput(startAsImage(['user', 'create', 'alice', '--password', 'correct horse battery']))
  const token = JSON.parse(
    await readOutput(startAsImage(['token', 'alice', '--scopes', 'public:read public:modify', '--json'])),
  )
  const response = await fetch(`${summary.address}/api/v1/posts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token.access_token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ public: true, body: 'From a read-only folder' }),
  })
  expect(response.status).toBe(200)
  const form = new FormData()
  form.set('image', new Blob([new Uint8Array(await plain(300, 200).jpeg().toBuffer())]), 'picture.jpg')
  const photo = await fetch(`${summary.address}/api/v1/photos?pending=true`, {
    method: 'POST',
    body: form,
    headers: { authorization: `Bearer ${token.access_token}` },
  })
  expect(photo.status).toBe(200)

  pod.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  expect(await readFile(join(data, 'postgres.log'), 'utf8')).toMatch(/database system is shut down\s*$/)
})
