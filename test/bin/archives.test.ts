import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createUser } from '../../src/domain/accounts/accounts.js'
import { loadPrivateKey } from '../../src/domain/accounts/private-keys.js'
import { newGuid } from '../../src/domain/new-guid.js'
import type { OpenServices } from '../../src/services/open-services.js'
import { openPodBySettings } from '../support/pods/pod-by-settings.js'
import { KNOWN_POD, makePlace, type Place } from './place.js'
import { pod, type RunningProgram, start, until } from './program.js'

const PASSWORD = 'correct horse battery'

describe('a stopped command', { timeout: 180_000 }, () => {
  let place: Place
  let open: OpenServices
  let out: string
  let aliceId: number

  beforeAll(async () => {
    place = await makePlace(KNOWN_POD)
    open = await openPodBySettings(place.settings)
    for (const username of ['alice', 'bob']) await createUser(open, { username, password: PASSWORD })
    ;({ id: aliceId } = await open.db('people').where({ address: 'alice@pod.example' }).first('id'))
    await open
      .db('posts')
      .insert({ guid: newGuid(), authorId: aliceId, type: 'StatusMessage', text: 'Hi', public: true })
  })
  afterAll(async () => {
    await open.close()
    await place.remove()
  })
  beforeEach(() => {
    out = join(place.folder, `${newGuid()}.json.gz`)
  })

  /** Stops a command while it waits for a table, which is free again afterwards. Returns the exit code. */
  async function stopAtTable(table: string, words: readonly string[], signal: 'SIGINT' | 'SIGKILL') {
    const lock: Knex.Transaction = await open.db.transaction()
    let command: RunningProgram
    try {
      await lock.raw(`lock table ${table} in access exclusive mode`)
      command = start(words, place.settings)
      await until(() => isWaitedFor(table))
      command.child.kill(signal)
      if (signal === 'SIGKILL') await command.ended
    } finally {
      await lock.rollback()
    }
    return { code: await command.ended, stderr: command.output.stderr }
  }

  async function isWaitedFor(table: string): Promise<boolean> {
    const waiting = await open
      .db('pg_locks')
      .whereRaw(
        'relation = ?::regclass and not granted and database = (select oid from pg_database where datname = current_database())',
        [table],
      )
    return waiting.length > 0
  }

  const files = async () => (await readdir(place.folder)).filter((name) => name.includes('.json.gz'))

  it('archive export that Ctrl-C stops leaves no file, and reports this', async () => {
    const { code, stderr } = await stopAtTable('posts', ['archive', 'export', 'alice', '--out', out], 'SIGINT')
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('The unfinished file is removed.') })
    expect(await files()).toEqual([])
  })

  it('archive export that is killed leaves no file under its name; the partial one is not overwritten', async () => {
    const words = ['archive', 'export', 'alice', '--out', out]
    await stopAtTable('posts', words, 'SIGKILL')
    const partial = `${out}.partial`
    expect((await files()).map((name) => join(place.folder, name))).toEqual([partial])

    expect(await pod(words, place.settings)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`The file ${partial} exists already.`),
    })
    await rm(partial)
    expect(await pod(words, place.settings)).toMatchObject({ code: 0 })
    expect((await files()).map((name) => join(place.folder, name))).toEqual([out])
    await rm(out)
  })

  it('archive import --restore-key gives an account that was made anew its old key and guid, unless it is in use', async () => {
    await createUser(open, { username: 'carol', password: PASSWORD })
    const carol = () => open.db('people').where({ address: 'carol@pod.example' }).first('id', 'guid', 'publicKey')
    const old = await carol()
    expect(await pod(['archive', 'export', 'carol', '--out', out], place.settings)).toMatchObject({ code: 0 })
    await open.db('people').where({ id: old.id }).update({ address: 'gone@pod.example', guid: newGuid() })
    await open.db('users').where({ username: 'carol' }).update({ username: 'gone' })
    await createUser(open, { username: 'carol', password: PASSWORD })
    const made = await carol()
    const words = ['archive', 'import', out, '--as', 'carol', '--restore-key']
    expect(await pod([...words.slice(0, 4), 'alice', '--restore-key'], place.settings)).toMatchObject({ code: 1 })

    await open
      .db('posts')
      .insert({ guid: newGuid(), authorId: made.id, type: 'StatusMessage', text: 'Hi', public: true })
    expect(await pod(words, place.settings)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('The account has a post, contact or delivery'),
    })
    expect(await carol()).toEqual(made)

    await open.db('posts').where({ authorId: made.id }).delete()
    expect(await pod(words, place.settings)).toMatchObject({ code: 0 })
    expect(await carol()).toEqual({ ...old, id: made.id })
    const pem = (await loadPrivateKey(open, made.id)).export({ type: 'pkcs1', format: 'pem' })
    expect(pem).toEqual((await loadPrivateKey(open, old.id)).export({ type: 'pkcs1', format: 'pem' }))
    expect(await open.db('audit_entries').where({ action: 'archive.restore_key' })).toHaveLength(1)
  })

  it('archive import that Ctrl-C stops continues when it is repeated', async () => {
    expect(await pod(['archive', 'export', 'alice', '--out', out], place.settings)).toMatchObject({ code: 0 })
    const words = ['archive', 'import', out, '--as', 'bob', '--move', 'alice@pod.example']
    const { code, stderr } = await stopAtTable('posts', words, 'SIGINT')
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('run the same command again') })
    expect(await open.db('imports').select('state')).toEqual([{ state: 'running' }])

    const { code: again, stdout } = await pod([...words, '--json'], place.settings)
    expect(again).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ state: 'done' })
    expect(await open.db('imports').select('state')).toEqual([{ state: 'done' }])
    const moved = await open.db('posts').join('people', 'people.id', 'authorId').pluck('address')
    expect(moved).toEqual(['bob@pod.example'])
  })
})
