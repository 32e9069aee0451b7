import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { personContentTaskHandlers } from '../../../src/domain/moderation/people/content-of-person.js'
import { purgeTaskHandlers } from '../../../src/domain/moderation/people/purge-person.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { runBackgroundTask } from '../../../src/domain/operations/background-tasks.js'
import type { Person } from '../../../src/persistence/models/person.js'
import { addPost } from '../../support/databases/rows.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { publish, type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
let mod: StaffClient
let adm: StaffClient
beforeAll(async () => {
  api = await startSampleApiPod({ environment: { WRITE_LIMIT: '0' } })
  mod = await makeStaff(api, 'mod', 'moderator')
  adm = await makeStaff(api, 'adm', 'admin')
})
afterAll(() => api.close())

let rita: Person
let post: string
let comment: string
beforeEach(async () => {
  rita = await addRemotePerson(api.pod, `rita${newGuid().slice(0, 6)}@r.example`)
  post = (await addPost(api.pod, rita, { public: true, text: 'Buy' })).guid
  comment = newGuid()
  const { id } = await api.pod.db('posts').where({ guid: api.alicePost }).first('id')
  await api.pod.db('comments').insert({ guid: comment, authorId: rita.id, postId: id, text: 'Buy' })
  await api.pod.db('outbox').delete()
  const row = { kind: 'filter', public: true, authorId: rita.id }
  const targets = Object.entries({ post, comment, person: rita.guid })
  await api.pod
    .db('moderation_cases')
    .insert(targets.map(([targetType, targetGuid]) => ({ ...row, targetType, targetGuid })))
})

/** By whom the post, the comment and the person are deleted, as their cases say. */
const deletedBy = (guids = [post, comment, rita.guid]) =>
  api.pod.db('moderation_cases').whereIn('targetGuid', guids).orderBy('id').pluck('target_deleted')

const reason = 'Spam'

async function run(): Promise<void> {
  const { data } = await api.pod.db('outbox').where({ name: 'run-operation' }).first('data')
  const works = { ...personContentTaskHandlers, ...purgeTaskHandlers }
  await runBackgroundTask(api.pod, { data, finish: async () => {} }, works, new AbortController().signal)
  await api.pod.db('outbox').where({ name: 'run-operation' }).delete()
}

const statuses = async () => [
  (await api.alice.get(`/posts/${post}`)).status,
  (await api.alice.get(`/posts/${api.alicePost}/comments`)).body.some(({ guid }: { guid: string }) => guid === comment),
]

describe('the content of a person', () => {
  it('is hidden by an operation as one action, and shown by one undo', async () => {
    const { status, headers, body } = await mod.post(`/people/${rita.guid}/hide_content`, { reason })

    expect([status, headers['location']]).toEqual([202, `/api/admin/v1/operations/${body.id}`])
    expect(body).toMatchObject({ changed: true, state: 'queued', total: 2, action: { kind: 'hide_content' } })
    const again = await mod.post(`/people/${rita.guid}/hide_content`, { reason })
    expect([again.status, again.body]).toEqual([200, { changed: false }])
    await run()
    expect(await statuses()).toEqual([404, false])
    expect((await mod.get(`/operations/${body.id}`)).body).toMatchObject({ state: 'done', done: 2 })

    await mod.post(`/actions/${body.action.id}/undo`, { reason })
    expect(await statuses()).toEqual([200, true])
  })

  it('is removed after a confirmation: retracted where a local person may, else hidden and kept away', async () => {
    expect((await mod.post(`/people/${rita.guid}/remove_content`, { reason })).body).toMatchObject({
      code: 409,
      reason: 'confirmation_needed',
      preview: { posts_and_comments: 2 },
    })
    const { body } = await mod.post(`/people/${rita.guid}/remove_content`, { reason, confirm: rita.address })
    await run()

    expect(await statuses()).toEqual([404, false])
    expect(await deletedBy()).toEqual(['moderator', 'moderator', null])
    const tombstones = () => api.pod.db('tombstones').whereIn('guid', [post, comment]).orderBy('targetType')
    expect(await tombstones()).toMatchObject([
      { targetType: 'Comment', permanent: false },
      { targetType: 'Post', permanent: true },
      { targetType: 'Post', permanent: true },
    ])
    await mod.post(`/actions/${body.action.id}/undo`, { reason })
    expect(await statuses()).toEqual([200, false])
    expect(await deletedBy()).toEqual([null, 'moderator', null])
    expect(await tombstones()).toMatchObject([{ targetType: 'Comment' }])
  })

  it('hidden content of a local person is retracted, and the person gets one notice', async () => {
    const { jim } = await api.people('jim')
    const own = await publish(api, jim, { text: 'Buy', public: true })
    await createComment(api.pod, jim.viewer, { postGuid: api.bobPost, text: 'Buy' })
    await api.pod.db('outbox').delete()

    await mod.post(`/people/${jim.guid}/remove_content`, { reason, confirm: 'jim' })
    await run()

    expect((await api.alice.get(`/posts/${own}`)).status).toBe(404)
    expect((await api.alice.get(`/posts/${api.bobPost}/comments`)).body).toEqual([])
    expect((await jim.get('/user/notices')).body).toMatchObject([{ kind: 'content_removed', target: null }])
    expect((await mod.post(`/people/${jim.guid}/remove_content`, { reason })).body).toEqual({ changed: false })
    expect((await mod.post(`/people/${adm.person.guid}/hide_content`, { reason })).status).toBe(403)
  })
})

describe('the purge of a person', () => {
  it('needs a block and a confirmation, ends contacts and deletes the content; the person stays blocked', async () => {
    await share(api, api.bob, rita)
    const confirm = rita.address
    expect((await adm.post(`/people/${rita.guid}/purge`, { reason, confirm })).body).toMatchObject({
      reason: 'bad_transition',
    })
    const action = (await mod.post(`/people/${rita.guid}/block`, { reason, confirm })).body.action.id
    expect((await adm.post(`/people/${rita.guid}/purge`, { reason })).body.reason).toBe('confirmation_needed')
    await api.pod.db('outbox').delete()

    expect((await adm.post(`/people/${rita.guid}/purge`, { reason, confirm })).status).toBe(202)

    expect(await api.pod.db('outbox').where({ name: 'dispatch' }).pluck('data')).toEqual([
      { record: 'contact', userId: api.bob.viewer.userId, personId: rita.id, sharing: false, blocking: false },
    ])
    await run()
    const left = async (table: string) => (await api.pod.db(table).where({ authorId: rita.id })).length
    expect([await left('posts'), await left('comments')]).toEqual([0, 0])
    expect(await deletedBy()).toEqual(['purge', 'purge', null])
    expect(await api.pod.db('tombstones').where({ deletedById: rita.id, permanent: true }).pluck('guid')).toEqual(
      expect.arrayContaining([post, comment]),
    )
    expect((await mod.get(`/people/${rita.guid}`)).body).toMatchObject({ state: 'blocked', counts: { contacts: 0 } })
    expect((await adm.post(`/people/${rita.guid}/forget`, { reason, confirm })).body).toMatchObject({
      code: 409,
      reason: 'person_in_use',
      preview: { posts: 0, tombstones: 2 },
    })
    expect((await mod.post(`/actions/${action}/undo`, { reason })).body).toMatchObject({ changed: true })
  })

  it('is not for local people; a person without remaining rows is deleted', async () => {
    expect((await adm.post(`/people/${api.dan.guid}/purge`, { reason })).body).toMatchObject({ reason: 'not_remote' })
    const { guid, address } = await addRemotePerson(api.pod, 'nina@n.example')
    const { id: authorId } = await api.pod.db('people').where({ guid }).first('id')
    const person = { targetType: 'person', targetGuid: guid, public: true, authorId }
    await api.pod.db('moderation_cases').insert(person)

    expect((await adm.post(`/people/${guid}/forget`, { reason })).body).toMatchObject({ reason: 'confirmation_needed' })
    expect((await adm.post(`/people/${guid}/forget`, { reason, confirm: address })).body).toMatchObject({
      changed: true,
    })
    expect(await api.pod.db('people').where({ guid })).toEqual([])
    expect(await deletedBy([guid])).toEqual(['purge'])
    expect((await adm.get('/audit?action=forget')).body).toMatchObject([{ target: { label: address } }])
  })

  it('that cannot be deleted is not in the audit log as forgotten', async () => {
    const { guid, address } = await addRemotePerson(api.pod, 'nell@n.example')
    await api.pod.db.raw('create table keeps_people (person_id bigint references people)')
    await api.pod.db.raw('insert into keeps_people select id from people where guid = ?', [guid])

    expect((await adm.post(`/people/${guid}/forget`, { reason, confirm: address })).status).not.toBe(200)

    expect((await adm.get(`/audit?action=forget&target=${guid}`)).body).toEqual([])
    await api.pod.db.raw('drop table keeps_people')
  })
})
