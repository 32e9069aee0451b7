import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { cleaningTaskHandlers } from '../../../src/domain/moderation/clusters/cleaning-work.js'
import { findClusters } from '../../../src/domain/moderation/clusters/find-clusters.js'
import { addPost } from '../../support/databases/rows.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { finishBackgroundTasks } from '../../support/pods/finish-background-tasks.js'
import { type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

const reason = 'Spam wave'

let api: SampleApiPod
let mod: StaffClient
beforeAll(async () => {
  api = await startSampleApiPod({ environment: { WRITE_LIMIT: '0' } })
  mod = await makeStaff(api, 'mod', 'moderator')
})
afterAll(() => api.close())

let guids: readonly string[]
let id: number
let page: string
beforeEach(async () => {
  await findClusters(api.pod)
  page = `spam.example/${Math.random()
    .toString(36)
    .replace(/[^a-z]/g, '')}`
  const people = await Promise.all(
    ['a', 'b', 'c'].map((name) => addRemotePerson(api.pod, `${name}${Math.random().toString(36).slice(2)}@s.example`)),
  )
  const posts = [...people, ...people].map((person) => addPost(api.pod, person, { text: `https://${page}` }))
  guids = (await Promise.all(posts)).map(({ guid }) => guid)
  await findClusters(api.pod)
  ;[{ id }] = (await mod.get('/clusters?state=open')).body
})

describe('a cluster', () => {
  it('is listed, and shown with its items and authors', async () => {
    expect((await mod.get('/clusters?state=open')).body).toMatchObject([
      { id, kind: 'link', label: page, items: 6, authors: 3, pods: 1 },
    ])
    const { body } = await mod.get(`/clusters/${id}`)
    expect(body.newest_items.map(({ guid }: { guid: string }) => guid).sort()).toEqual([...guids].sort())
    expect(body.busiest_authors).toMatchObject(Array.from({ length: 3 }, () => ({ items: 2, ticked: true })))
    expect((await mod.get(`/cases/${body.case_id}`)).body).toMatchObject({
      kind: 'cluster',
      target: { type: 'cluster' },
    })
    expect((await mod.get('/clusters/999999')).body).toMatchObject({ code: 404, reason: 'cluster_not_found' })
    await mod.post(`/clusters/${id}/dismiss`, { reason })
  })

  it('is cleaned after a preview, and the undo of the action shows the items again', async () => {
    const [guid] = guids
    expect((await api.alice.get(`/posts/${guid}`)).status).toBe(200)
    expect((await mod.post(`/clusters/${id}/preview`, { hide: true })).body).toEqual({
      hide: 6,
      remove: 0,
      people: 3,
      filter: null,
      authors: 0,
      pods: [],
    })
    expect((await mod.post(`/clusters/${id}/clean`, { hide: true })).body).toMatchObject({
      code: 422,
      reason: 'reason_needed',
    })

    const { body } = await mod.post(`/clusters/${id}/clean`, { hide: true, filter: true, reason })

    expect(body).toMatchObject({
      changed: true,
      done: { hide: 6, filter: { kind: 'link_prefix', value: page } },
    })
    expect((await api.alice.get(`/posts/${guid}`)).status).toBe(404)
    expect((await mod.post(`/clusters/${id}/clean`, { hide: true, reason })).body).toMatchObject({ code: 409 })
    expect((await mod.post(`/actions/${body.action.id}/undo`, { reason })).body).toMatchObject({ changed: true })
    expect((await api.alice.get(`/posts/${guid}`)).status).toBe(200)
    await mod.post(`/clusters/${id}/dismiss`, { reason })
  })

  it('is cleaned by an operation if it is large, and shows the progress', async () => {
    const author = await addRemotePerson(api.pod, `d${Math.random().toString(36).slice(2)}@s.example`)
    await Promise.all(Array.from({ length: 200 }, () => addPost(api.pod, author, { text: `https://${page}` })))
    await findClusters(api.pod)

    const { status, headers, body } = await mod.post(`/clusters/${id}/clean`, { hide: true, reason })

    expect([status, headers['location']]).toEqual([202, `/api/admin/v1/operations/${body.id}`])
    expect(body).toMatchObject({ changed: true, state: 'queued', total: 206, preview: { hide: 206 } })
    const inProgress = { state: 'cleaning', operation: { id: body.id, done: 0, total: 206 } }
    expect((await mod.get(`/clusters/${id}`)).body).toMatchObject(inProgress)
    await finishBackgroundTasks(api.pod, cleaningTaskHandlers)
    expect((await mod.get(`/clusters/${id}`)).body).toMatchObject({ state: 'cleaned', operation: null })
  })

  it('is dismissed with its case', async () => {
    const { body } = await mod.get(`/clusters/${id}`)

    expect((await mod.post(`/clusters/${id}/dismiss`, { reason })).body).toMatchObject({ changed: true })

    expect((await mod.get(`/clusters/${id}`)).body).toMatchObject({ state: 'dismissed' })
    expect((await mod.get(`/cases/${body.case_id}`)).body).toMatchObject({ state: 'dismissed' })
  })
})
