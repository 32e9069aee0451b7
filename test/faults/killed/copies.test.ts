import { execFileSync } from 'node:child_process'
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { listPhotoFiles } from '../../../src/domain/photos/photos.js'
import { Photo } from '../../../src/persistence/models/photo.js'
import { findUnfinishedRestore } from '../../../src/persistence/operations/restore-target.js'
import { KNOWN_POD, makePlace } from '../../bin/place.js'
import { makeFolder, makePreparedFolder, pod, type Settings, start, startPod, until } from '../../bin/program.js'
import { rowsOf } from '../../operations/backup-fixture.js'
import { addPost } from '../../support/databases/rows.js'
import { openEmptyDatabase } from '../../support/databases/test-database.js'
import { openTcpProxy } from '../../support/http/tcp-proxy.js'
import { openPodBySettings } from '../../support/pods/pod-by-settings.js'

async function json(words: readonly string[], settings: Settings) {
  const { code, stdout, stderr } = await pod([...words, '--json'], settings)
  expect({ words, code, stderr }).toMatchObject({ words, code: 0 })
  return JSON.parse(stdout)
}

/** Replaces a file by a pipe. `isRead` returns true when a process has opened the pipe, which then waits for data. */
function stallReader(file: string) {
  renameSync(file, `${file}.kept`)
  execFileSync('mkfifo', [file])
  let writer: number | undefined
  return {
    isRead() {
      try {
        writer = openSync(file, constants.O_WRONLY | constants.O_NONBLOCK)
        return true
      } catch {
        return false // no process has opened the pipe
      }
    },
    end() {
      if (writer !== undefined) closeSync(writer)
      rmSync(file)
      renameSync(`${file}.kept`, file)
    },
  }
}

function findFile(folder: string, name: RegExp): string {
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((file) => name.test(file))
  if (found === undefined) throw new Error(`There is no ${name} in ${folder}.`)
  return join(folder, found)
}

it('a restore that is killed in any step is complete after the same command with --replace', {
  timeout: 240_000,
}, async () => {
  const place = await makePlace(KNOWN_POD)
  const open = await openPodBySettings(place.settings)
  await json(['user', 'create', 'alice', '--password', 'correct horse battery'], place.settings)
  const { personId } = await open.db('users').first('personId')
  for (let number = 0; number < 20; number += 1) await addPost(open, { id: personId }, { text: `Post ${number}` })
  const name = `${newGuid()}.jpg`
  await Photo.query(open.db).insert({ guid: newGuid(), authorId: personId, name, public: true, pending: false })
  const images = join(place.folder, 'uploads', 'images')
  mkdirSync(images, { recursive: true })
  for (const file of listPhotoFiles(name)) writeFileSync(join(images, file), `content of ${file}`)
  const repository = join(place.folder, 'backups')
  const { id } = await json(['backup', 'create', '--plain', '--yes', '--to', repository], place.settings)

  for (const file of [/^backups\/.*\/posts\.1\./, /^pictures\/.*[0-9a-f]{64}/]) {
    const folder = await makeFolder()
    await using target = await openEmptyDatabase()
    const settings = { ...KNOWN_POD, DATABASE_URL: target.url, DATA_DIR: folder.path }
    const stalled = stallReader(findFile(repository, file))
    const killed = start(['backup', 'restore', repository, id, '--json'], settings)
    await until(stalled.isRead)
    killed.child.kill('SIGKILL')
    await killed.ended
    stalled.end()

    expect(await findUnfinishedRestore(target.db)).toBe(id)
    expect(await pod(['user', 'list'], settings)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`unfinished restore of backup ${id}`),
    })
    const again = ['backup', 'restore', repository, id, '--replace', '--confirm', 'pod.example']
    expect(await json(again, settings)).toMatchObject({ id, lost_pictures: 0, renamed: [] })
    expect(await rowsOf(target.db)).toEqual(await rowsOf(open.db))
    for (const picture of listPhotoFiles(name)) {
      const restored = readFileSync(join(folder.path, 'uploads', 'images', picture), 'utf8')
      expect(restored).toBe(`content of ${picture}`)
    }
    await folder.remove()
  }
  await open.close()
  await place.remove()
})

it('a move of the database that is killed leaves the old pod as before, until --again finishes it', {
  timeout: 240_000,
}, async () => {
  const folder = await makePreparedFolder()
  await using target = await openEmptyDatabase()
  const { port } = new URL(target.url)
  const proxy = await openTcpProxy(Number(port))
  const behindProxy = target.url.replace(`:${port}/`, `:${proxy.port}/`)
  const settings = { DATA_DIR: folder.path }
  const user = await json(['user', 'create', 'alice', '--password', 'correct horse battery'], settings)

  const move = (...more: string[]) => ['db', 'move', '--to', behindProxy, '--json', ...more]
  // While the rows are copied, and while they are compared.
  for (const [request, words] of [
    ['copy "posts"', move()],
    ['from "posts"', move('--again')],
  ] as const) {
    const frozen = proxy.freezeAtRequest(request)
    const killed = start(words, settings)
    await Promise.race([frozen, killed.ended.then(() => Promise.reject(new Error(killed.output.stderr)))])
    killed.child.kill('SIGKILL')
    await killed.ended
    await proxy.recover()

    const running = await startPod(settings)
    expect(await json(['user', 'list'], settings)).toMatchObject([{ guid: user.guid }])
    running.child.kill('SIGTERM')
    expect(await running.ended).toBe(0)
    const stale = await pod(['user', 'list'], { ...settings, DATABASE_URL: target.url })
    expect(stale).toMatchObject({ code: 1, stderr: expect.stringContaining('unfinished move') })
  }

  await json(['db', 'move', '--to', target.url, '--again'], settings)
  await proxy.close()
  const refused = start(['start', '--json'], settings)
  expect(await refused.ended).toBe(1)
  expect(refused.output.stderr).toContain('was moved to another server')
  const moved = await startPod({ ...settings, DATABASE_URL: target.url })
  expect(await json(['user', 'list'], { ...settings, DATABASE_URL: target.url })).toMatchObject([{ guid: user.guid }])
  moved.child.kill('SIGTERM')
  expect(await moved.ended).toBe(0)
  await folder.remove()
})
