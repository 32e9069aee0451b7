import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { applyFilterTaskHandlers } from '../../../src/domain/moderation/filters/apply-filter.js'
import { showContentTaskHandlers } from '../../../src/domain/moderation/hide-content.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { crashInChunk, finishBackgroundTasks, withChunkStep } from '../../support/pods/finish-background-tasks.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
let mod: StaffClient
let adm: StaffClient
beforeAll(async () => {
  api = await startSampleApiPod({ environment: { WRITE_LIMIT: '0' } })
  mod = await makeStaff(api, 'mod', 'moderator')
  adm = await makeStaff(api, 'adm', 'admin')
})
afterAll(() => api.close())
beforeEach(async () => {
  for (const { id } of (await adm.get('/filters')).body) await adm.call('DELETE', `/filters/${id}?reason=Over`)
})

const reason = 'Spam wave'
const word = { kind: 'word', value: 'Casino', action: 'flag', reason }

describe('filters', () => {
  it('are added, listed, changed and removed, and each change is in the audit log', async () => {
    const { status, body } = await mod.post('/filters', word)
    const { id } = body.filter

    expect(status).toBe(201)
    expect(body).toMatchObject({
      changed: true,
      action: { kind: 'filter.add' },
      filter: { kind: 'word', value: 'casino', state: 'trial', origin: 'both', exempt_followed: true, private: false },
    })
    expect((await mod.get('/filters')).body).toEqual([body.filter])
    const change = { state: 'active', reason }
    expect((await mod.call('PATCH', `/filters/${id}`, change)).body).toMatchObject({
      changed: true,
      filter: { state: 'active' },
    })
    expect((await mod.call('PATCH', `/filters/${id}`, change)).body).toMatchObject({ changed: false })
    expect((await mod.get(`/filters/${id}`)).body).toMatchObject({ hits_30_days: 0, days: [], latest: [] })
    expect((await mod.call('DELETE', `/filters/${id}?reason=Over`)).body).toMatchObject({ changed: true })
    expect((await mod.get(`/filters/${id}`)).body).toMatchObject({ code: 404, reason: 'filter_not_found' })
    const entries = (await mod.get(`/audit?target=${id}`)).body
    expect(entries.map(({ action }: { action: string }) => action)).toEqual([
      'filter.remove',
      'filter.change',
      'filter.add',
    ])
    expect(entries[1]).toMatchObject({ before: { state: 'trial' }, after: { state: 'active' } })
  })

  it('need a reason and a value that fits', async () => {
    expect((await mod.post('/filters', { ...word, reason: ' ' })).body).toMatchObject({
      code: 422,
      reason: 'reason_needed',
    })
    expect((await mod.post('/filters', { ...word, kind: 'pattern' })).body).toMatchObject({
      code: 422,
      reason: 'filter_invalid',
      field: 'value',
    })
  })

  it('that reject or see private text are for admins', async () => {
    for (const more of [{ action: 'reject' }, { private: true }]) {
      expect((await mod.post('/filters', { ...word, ...more })).body).toMatchObject({
        code: 403,
        reason: 'role_needed',
      })
      expect((await mod.post('/filters/dry_run', { ...word, reason: undefined, ...more })).body.code).toBe(403)
      const { id } = (await adm.post('/filters', { ...word, ...more })).body.filter
      expect((await mod.call('PATCH', `/filters/${id}`, { state: 'off', reason })).body).toMatchObject({ code: 403 })
      expect((await mod.call('DELETE', `/filters/${id}?reason=x`)).body).toMatchObject({ code: 403 })
    }
    const { id } = (await mod.post('/filters', word)).body.filter
    expect((await mod.call('PATCH', `/filters/${id}`, { action: 'reject', reason })).body.code).toBe(403)
  })
})

describe('a filter that rejects', () => {
  beforeEach(async () => {
    await adm.post('/filters', { ...word, action: 'reject', state: 'active', exempt_followed: false })
  })

  it('refuses texts of local people without naming the word', async () => {
    const { alice, bob } = api
    const guid = await publish(api, bob, { text: 'Good morning', public: true })
    const refused = { code: 422, reason: 'filtered', message: expect.not.stringMatching(/casino/i) }

    expect((await alice.post('/posts', { body: 'My Casino', public: true })).body).toMatchObject(refused)
    expect((await alice.post(`/posts/${guid}/comments`, { body: 'My casino' })).body).toMatchObject(refused)
    expect((await alice.patch('/user', { bio: 'My casino' })).body).toMatchObject(refused)
    const [{ id }] = (await mod.get('/filters')).body
    expect((await mod.get(`/filters/${id}`)).body).toMatchObject({
      hits_30_days: 3,
      latest: [
        { type: 'person', guid: alice.guid, text: 'My casino' },
        { type: 'comment' },
        { type: 'post', effect: 'rejected' },
      ],
    })
  })

  it('exempts moderators and admins', async () => {
    expect((await mod.person.post('/posts', { body: 'About the casino', public: true })).status).toBe(200)
  })
})

describe('a filter that flags', () => {
  it('opens a case about a local post', async () => {
    await mod.post('/filters', { ...word, state: 'active', exempt_followed: false })

    const guid = await publish(api, api.alice, { text: 'Royal casino', public: true })

    const [found] = (await mod.get(`/cases?author=${api.alice.guid}`)).body
    expect(found).toMatchObject({ kind: 'filter', state: 'open', target: { type: 'post', guid } })
  })
})

describe('a dry run', () => {
  it('answers with samples, and changes nothing', async () => {
    await publish(api, api.carol, { text: 'A roulette for sale', public: true })

    const { status, body } = await mod.post('/filters/dry_run', {
      kind: 'word',
      value: 'roulette',
      action: 'flag',
      days: 1,
    })

    expect(status).toBe(200)
    expect(body).toMatchObject({ hits: 1, authors: 1, pods: 1, complete: true })
    expect(body.samples).toMatchObject([{ type: 'post', author: api.carol.address, text: 'A roulette for sale' }])
    expect((await mod.get('/audit?action=filter.private_read')).body).toEqual([])
    await adm.post('/filters/dry_run', { kind: 'word', value: 'roulette', private: true })
    expect((await mod.get('/audit?action=filter.private_read')).body).toMatchObject([{ actor: { name: 'adm' } }])
    expect((await mod.get('/filters')).body).toEqual([])
  })
})

describe('a filter that hides', () => {
  it('hides new posts, and one undo shows all of them', async () => {
    const { id } = (await mod.post('/filters', { ...word, action: 'hide', state: 'active', exempt_followed: false }))
      .body.filter
    const guids = [
      await publish(api, api.alice, { text: 'First casino', public: true }),
      await publish(api, api.alice, { text: 'Second casino', public: true }),
    ]
    for (const guid of guids) expect((await api.carol.get(`/posts/${guid}`)).status).toBe(404)

    const [action, ...others] = (await mod.get(`/actions?target=${id}&kind=hide`)).body
    expect(others).toEqual([])
    await mod.post(`/actions/${action.id}/undo`, { reason })

    for (const guid of guids) expect((await api.carol.get(`/posts/${guid}`)).status).toBe(200)
  })

  it('is applied to stored posts after the number of hits is confirmed, as one action with one undo', async () => {
    const guid = await publish(api, api.alice, { text: 'A lottery', public: true })
    const lottery = { ...word, value: 'lottery', exempt_followed: false }
    const { id } = (await mod.post('/filters', { ...lottery, action: 'hide' })).body.filter
    const { id: counting } = (await mod.post('/filters', { ...lottery, action: 'count' })).body.filter
    const apply = (filter: number, confirm?: string) => mod.post(`/filters/${filter}/apply`, { reason, confirm })

    expect((await apply(counting)).body).toMatchObject({ code: 409, reason: 'bad_transition' })
    expect((await apply(id)).body).toMatchObject({ code: 409, reason: 'confirmation_needed', preview: { hits: 1 } })
    expect((await api.carol.get(`/posts/${guid}`)).status).toBe(200)
    const { body } = await apply(id, '1')
    expect(body).toMatchObject({ changed: true, hits: 1, complete: true, action: { undo: { possible: true } } })
    expect((await api.carol.get(`/posts/${guid}`)).status).toBe(404)
    await mod.post(`/actions/${body.action.id}/undo`, { reason })
    expect((await api.carol.get(`/posts/${guid}`)).status).toBe(200)
  })

  it('is applied again to content that it does not hide yet, with an undo for each application', async () => {
    const bingo = { ...word, value: 'bingo', exempt_followed: false, action: 'hide' }
    const { id } = (await mod.post('/filters', bingo)).body.filter
    const first = await publish(api, api.alice, { text: 'A bingo', public: true })
    const { body } = await api.bob.post(
      `/posts/${await publish(api, api.bob, { text: 'Tea', public: true })}/comments`,
      {
        body: 'More bingo',
      },
    )
    const apply = async (confirm: string) => (await mod.post(`/filters/${id}/apply`, { reason, confirm })).body
    const applied = await apply('2')

    expect(await apply('0')).toMatchObject({ changed: false, hits: 0 })
    const second = await publish(api, api.alice, { text: 'Another bingo', public: true })
    const again = await apply('1')
    expect(again).toMatchObject({ changed: true, hits: 1 })
    await mod.post(`/actions/${applied.action.id}/undo`, { reason })
    expect((await api.carol.get(`/posts/${first}`)).status).toBe(200)
    expect((await api.carol.get(`/posts/${second}`)).status).toBe(404)
    await mod.post(`/actions/${again.action.id}/undo`, { reason })
    expect((await api.carol.get(`/posts/${second}`)).status).toBe(200)
    expect(await api.pod.db('comments').where({ guid: body.guid }).first('hidden')).toEqual({ hidden: false })
  })

  it('requires the same power for the undo as for the action', async () => {
    const guid = await publish(api, api.alice, { text: 'A raffle', public: true })
    const raffle = { ...word, value: 'raffle', exempt_followed: false, action: 'reject' }
    const { id } = (await adm.post('/filters', raffle)).body.filter
    const { action } = (await adm.post(`/filters/${id}/apply`, { reason, confirm: '1' })).body

    expect((await mod.post(`/actions/${action.id}/undo`, { reason })).body).toMatchObject({ reason: 'role_needed' })
    expect((await api.carol.get(`/posts/${guid}`)).status).toBe(404)
    expect((await adm.post(`/actions/${action.id}/undo`, { reason })).body).toMatchObject({ changed: true })
    expect((await api.carol.get(`/posts/${guid}`)).status).toBe(200)
  })
})

describe('a filter with many hits', () => {
  const works = { ...applyFilterTaskHandlers, ...showContentTaskHandlers }
  const chunksOf = async () => {
    const chunks: number[] = []
    await finishBackgroundTasks(
      api.pod,
      withChunkStep(works, ({ done }) => void chunks.push(done)),
    )
    return chunks
  }
  const hiddenPosts = () => api.pod.db('posts').whereLike('text', '%jackpot%').whereNotNull('publicBeforeHiding')

  /** A new filter, and posts that it hits. */
  async function prepare(action: string, count: number): Promise<number> {
    await api.pod.db('posts').whereLike('text', '%jackpot%').delete()
    await api.pod.db('operations').delete()
    const { id: authorId } = await api.pod.db('people').where({ guid: api.alice.guid }).first('id')
    await api.pod.db.raw(
      `insert into posts (guid, author_id, type, public, text)
       select md5(random()::text || n), ?, 'StatusMessage', true, 'The jackpot' from generate_series(1, ?) as n`,
      [authorId, count],
    )
    const jackpot = { ...word, value: 'jackpot', exempt_followed: false, action }
    return (await adm.post('/filters', jackpot)).body.filter.id
  }
  const apply = (id: number, count: number) => adm.post(`/filters/${id}/apply`, { reason, confirm: String(count) })

  it('hides them by an operation in chunks, and the undo shows them in chunks', async () => {
    const id = await prepare('hide', 1_200)
    const { status, headers, body } = await apply(id, 1_200)

    expect([status, headers['location']]).toEqual([202, `/api/admin/v1/operations/${body.id}`])
    expect(body).toMatchObject({ kind: 'filter.apply', state: 'queued', total: 1_200, hits: 1_200, changed: true })
    expect((await apply(id, 1_200)).body).toMatchObject({ code: 409, reason: 'operation_running' })
    expect(await hiddenPosts()).toHaveLength(0)
    const [{ guid }] = await api.pod.db('posts').whereLike('text', '%jackpot%').orderBy('id', 'desc').limit(1)
    await api.pod.db('posts').where({ guid }).delete()
    expect(await chunksOf()).toEqual([500, 500, 199, 0])
    expect((await adm.get(`/operations/${body.id}`)).body).toMatchObject({ state: 'done', done: 1_199, skipped: 1 })
    expect(await hiddenPosts()).toHaveLength(1_199)

    expect((await adm.post(`/actions/${body.action.id}/undo`, { reason })).body).toMatchObject({ changed: true })
    expect(await hiddenPosts()).toHaveLength(699)
    expect(await chunksOf()).toEqual([500, 199, 0])
    expect(await hiddenPosts()).toHaveLength(0)
  })

  it('continues after a crash, and ends when its action is undone', async () => {
    const { body } = await apply(await prepare('hide', 1_200), 1_200)

    await expect(finishBackgroundTasks(api.pod, crashInChunk(works, 2))).rejects.toThrow('the worker dies')
    expect(await hiddenPosts()).toHaveLength(500)
    await adm.post(`/actions/${body.action.id}/undo`, { reason })
    expect(await chunksOf()).toEqual([0, 0])
    expect(await hiddenPosts()).toHaveLength(0)
  })

  it('opens their cases by an operation too', async () => {
    const { body } = await apply(await prepare('flag', 600), 600)

    expect(body).toMatchObject({ total: 600, action: { undo: { possible: false } } })
    expect(await chunksOf()).toEqual([500, 100, 0])
    const cases = api.pod
      .db('moderation_cases')
      .whereIn('targetGuid', api.pod.db('posts').whereLike('text', '%jackpot%').select('guid'))
    expect(await cases).toHaveLength(600)
  })
})
