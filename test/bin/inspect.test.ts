import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import type { StatusMessageEntity } from '../../src/protocol/entities/posts.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import { encryptEnvelopeFor, envelopeOf, signedBy } from '../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { KNOWN_POD, makePlace, type Place } from './place.js'
import { type Outcome, pod, type Settings } from './program.js'

/** Dry runs of messages, in the order of the questions of an operator. */
describe('the command that inspects a message', { timeout: 180_000 }, () => {
  let place: Place
  let db: pg.Client
  let fakePods: FakePods
  let settings: Settings
  let quin: FakePerson
  let post: StatusMessageEntity

  beforeAll(async () => {
    place = await makePlace({ ...KNOWN_POD, ALLOW_PRIVATE_ADDRESSES: 'true' })
    settings = place.settings
    fakePods = await startFakePods()
    quin = fakePods.person(`quin@localhost:${fakePods.server.port}`)
    post = {
      type: 'status_message',
      author: quin.address,
      guid: newGuid(),
      created_at: new Date('2024-05-06T07:08:09Z'),
      public: true,
      text: 'Hello #world, and @{ann@pod.example}',
      photos: [],
    }
    fakePods.serve(quin, post)
    const created = await pod(['user', 'create', 'ann', '--password', 'the password of ann'], settings)
    expect(created).toMatchObject({ code: 0 })
    db = new pg.Client(place.databaseUrl)
    await db.connect()
  })
  afterAll(async () => {
    await db.end()
    await fakePods.close()
    await place.remove()
  })

  async function inspect(message: string, ...options: string[]): Promise<Outcome> {
    const file = join(place.folder, 'message')
    await writeFile(file, message)
    return pod(['inspect', file, ...options], settings)
  }

  async function inspectEntity(entity: Entity, ...options: string[]) {
    const { stdout } = await inspect(envelopeOf(quin, entity), '--json', ...options)
    return JSON.parse(stdout)
  }

  /** All rows that a message could have stored, except people. */
  async function traces(): Promise<number> {
    const tables = ['posts', 'comments', 'tags', 'notifications', 'outbox', 'waiting', 'outbound_messages', 'contacts']
    const { rows } = await db.query(
      `select ${tables.map((table) => `(select count(*) from ${table})`).join(' + ')} as count`,
    )
    return Number(rows[0].count)
  }

  it('prints the entity for which the message would wait, and sends no request', async () => {
    const { code, stdout } = await inspect(envelopeOf(quin, post))

    expect(code).toBe(0)
    expect(stdout).toContain(`It would wait for the person ${quin.address}.`)
    expect(fakePods.requests).toEqual([])
    expect(await traces()).toBe(0)
  })

  it('fetches missing entities with the option for it, and does not store the message', async () => {
    const result = await inspectEntity(post, '--fetch')

    expect(result).toMatchObject({
      end: 'stored',
      sender: quin.address,
      entity: { entity_type: 'status_message', entity_data: { guid: post.guid } },
      notifications: [{ user: 'ann', type: 'mentioned' }],
    })
    expect(result.steps.map(({ step }: { step: string }) => step).slice(0, 5)).toEqual([
      'fetch',
      'open',
      'resolve',
      'authorise',
      'store',
    ])
    expect(result.rows).toContainEqual({ table: 'posts', inserted: 1, updated: 0, deleted: 0 })
    expect(result.jobs).toContainEqual({ name: 'participate', data: { postGuids: [post.guid] } })
    expect(await traces()).toBe(0)
  })

  it('prints the fault of a message that would be rejected, and the step', async () => {
    const forged = envelopeOf({ ...fakePods.person('mallory@m.example'), address: quin.address }, post)
    const { code, stdout, stderr } = await inspect(forged)
    expect(code).toBe(1)
    expect(stdout).toMatch(/^open +InvalidSignature: /)
    expect(stderr).toBe('This pod rejects the message: InvalidSignature.\n')

    expect(await inspectEntity({ ...post, public: false })).toMatchObject({
      end: 'refused',
      fault: 'NotPublic',
      steps: [{ step: 'open' }, { step: 'resolve' }, { step: 'authorise' }],
    })
  })

  it('reports a message that is already stored', async () => {
    expect(await pod(['fetch', post.guid, '--from', quin.address], settings)).toMatchObject({ code: 0 })
    await db.query('delete from outbox')

    expect(await inspectEntity(post)).toMatchObject({ end: 'nothing', rows: [], jobs: [] })
  })

  it('prints the rows that a retraction would delete', async () => {
    const before = await traces()

    const result = await inspectEntity({
      type: 'retraction',
      author: quin.address,
      target_guid: post.guid,
      target_type: 'Post',
    })

    expect(result.end).toBe('stored')
    expect(result.rows).toContainEqual({ table: 'posts', inserted: 0, updated: 0, deleted: 1 })
    expect(await traces()).toBe(before)
  })

  it('fetches the parent post of a comment', async () => {
    const comment = signedBy(quin, {
      type: 'comment',
      author: quin.address,
      guid: newGuid(),
      parent_guid: post.guid,
      text: 'Once more',
      created_at: new Date('2024-05-06T08:08:09Z'),
    })

    const { stdout } = await inspect(envelopeOf(quin, comment))

    expect(stdout).toContain(`It refers to a public post of ${quin.address}, a remote person.`)
    expect(stdout).toContain('comments (1 new)')
    expect(stdout).toContain('It would be stored.')
  })

  it('decrypts a message for a local user', async () => {
    const { rows } = await db.query(`select public_key from people where address = 'ann@pod.example'`)
    const sharing = { following: true, sharing: true, blocking: false }
    const contact = { type: 'contact', author: quin.address, recipient: 'ann@pod.example', ...sharing } as const
    const message = encryptEnvelopeFor(rows[0].public_key, envelopeOf(quin, contact))

    const { code, stdout } = await inspect(message, '--recipient', 'ann')
    expect(code).toBe(0)
    expect(stdout).toContain('A private message for ann@pod.example')
    expect(stdout).toContain('ann is notified: started_sharing.')

    expect(await inspect(message)).toMatchObject({ code: 2 })
    expect(await inspect(message, '--recipient', 'nobody')).toMatchObject({
      code: 1,
      stderr: 'There is no local account named nobody.\n',
    })
  })

  it('names the step of a message that a filter rejects', async () => {
    const rule = ['word', 'casino', '--action', 'reject', '--state', 'active', '--reason', 'A wave of spam']
    expect(await pod(['filters', 'add', ...rule], settings)).toMatchObject({ code: 0 })

    expect(await inspectEntity({ ...post, guid: newGuid(), text: 'Visit our casino' })).toMatchObject({
      end: 'refused',
      fault: 'Filtered',
      steps: [{ step: 'open' }, { step: 'resolve' }, { step: 'authorise' }, { step: 'filter' }],
    })
  })
})
