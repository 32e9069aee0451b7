import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { Comment } from '../../../src/persistence/models/comment.js'
import type { Person } from '../../../src/persistence/models/person.js'
import { addPost } from '../../support/databases/rows.js'
import { sentAbout } from '../../support/federation/outbound-messages.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { aspectOf, publish, type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
let mod: StaffClient
let rita: Person
beforeAll(async () => {
  api = await startSampleApiPod()
  mod = await makeStaff(api, 'mod', 'moderator')
  rita = await addRemotePerson(api.pod, 'rita@r.example')
})
afterAll(() => api.close())

const reason = 'Spam'

async function tombstonesOf(guid: string): Promise<readonly string[]> {
  const { db } = api.pod
  const found = await db('tombstones').join('people', 'people.id', 'deletedById').where('tombstones.guid', guid)
  return found.map(({ targetType, address }) => `${targetType} ${address}`).sort()
}

describe('removing content', () => {
  it('of a local author retracts it in the name of the author', async () => {
    const guid = await publish(api, api.bob, { text: 'Cheap watches', public: true })
    await api.alice.post(`/posts/${guid}/report`, { reason })

    expect((await mod.post(`/posts/${guid}/remove`, {})).body).toMatchObject({ code: 422, reason: 'reason_needed' })
    const answer = await mod.post(`/posts/${guid}/remove`, { reason })
    expect(answer.body).toMatchObject({
      changed: true,
      retracted: true,
      action: { kind: 'remove', undo: { possible: false } },
    })

    expect((await api.bob.get(`/posts/${guid}`)).status).toBe(404)
    expect(await tombstonesOf(guid)).toEqual([`Post ${api.bob.address}`])
    const [{ id }] = (await mod.get(`/cases?author=${api.bob.guid}`)).body
    const { body: found } = await mod.get(`/cases/${id}`)
    expect(found.target).toMatchObject({ text: 'Cheap watches', deleted: 'moderator' })
    expect(found.history).toMatchObject([{ event: 'reported' }, { event: 'action', actor: 'mod', text: reason }])
    expect((await mod.post(`/cases/${id}/resolve`, { reason })).body).toMatchObject({
      changed: true,
      state: 'resolved',
    })
    expect((await mod.post(`/posts/${guid}/remove`, { reason })).body).toEqual({ changed: false, retracted: false })
    expect((await mod.get(`/audit?action=remove&target=${guid}`)).body).toHaveLength(1)
  })

  it('of a remote comment on a local post retracts it in the name of the author of the post', async () => {
    const postGuid = await publish(api, api.alice, { text: 'Good morning', public: true })
    const post = await api.pod.db('posts').where({ guid: postGuid }).first('id')
    const guid = newGuid()
    await Comment.query(api.pod.db).insert({ guid, authorId: rita.id, postId: post.id, text: 'Buy' })
    await api.pod.db('posts').where({ id: post.id }).update({ commentsCount: 1 })

    expect((await mod.post(`/comments/${guid}/remove`, { reason })).body).toMatchObject({ retracted: true })

    expect(await tombstonesOf(guid)).toEqual([`Comment ${api.alice.address}`])
    expect((await api.alice.get(`/posts/${postGuid}`)).body.interaction_counters.comments).toBe(0)
    expect(await sentAbout(api.pod, guid)).not.toEqual([])
  })

  it('of a remote author sends nothing, leaves tombstones, and takes it from all lists, pages and notifications', async () => {
    const { guid, id } = await addPost(api.pod, rita, { public: true, text: 'Rare #watches' })
    const [tag] = await api.pod.db('tags').insert({ name: 'watches' }).returning('id')
    await api.pod.db('taggings').insert({ tagId: tag.id, postId: id, createdAt: new Date() })
    await share(api, api.carol, rita)
    await api.alice.post('/tag_followings', { name: 'watches' })
    await createComment(api.pod, api.alice.viewer, { postGuid: guid, text: 'Really rare' })
    await createComment(api.pod, api.carol.viewer, { postGuid: guid, text: 'Yes' })
    const lists = [
      ...['/search/posts?tag=watches', '/streams/tags', '/streams/activity', '/notifications'],
      `/users/${rita.guid}/posts`,
    ]
    const listsWith = async () => {
      const found = await Promise.all(lists.map(async (path) => (await api.alice.get(path)).text.includes(guid)))
      return lists.filter((_, index) => found[index])
    }
    const pages = async () =>
      Promise.all(
        [`/posts/${guid}`, `/fetch/post/${guid}`].map(async (path) => (await api.app.inject(path)).statusCode),
      )
    expect(await listsWith()).toEqual(lists)
    expect((await api.carol.get('/streams/main')).text).toContain(guid)
    expect((await api.alice.get(`/posts/${guid}`)).status).toBe(200)

    expect((await mod.post(`/posts/${guid}/remove`, { reason })).body).toMatchObject({
      changed: true,
      retracted: false,
    })

    expect((await api.alice.get(`/posts/${guid}`)).status).toBe(404)
    expect(await listsWith()).toEqual([])
    expect((await api.carol.get('/streams/main')).text).not.toContain(guid)
    expect(await pages()).toEqual([404, 404])
    expect(await sentAbout(api.pod, guid)).toEqual([])
    expect(await tombstonesOf(guid)).toEqual([`Post ${mod.person.address}`, 'Post rita@r.example'])
  })

  it('of staff needs an admin; private content must have been reported', async () => {
    await makeStaff(api, 'other-mod', 'moderator')
    const { 'other-mod': colleague } = await api.people('other-mod')
    const ofColleague = await publish(api, colleague, { text: 'My opinion', public: true })
    const own = await publish(api, mod.person, { text: 'My opinion', public: true })
    const aspectIds = [await aspectOf(api, api.bob, 'Friends')]
    const secret = await publish(api, api.bob, { text: 'Between us', public: false, aspectIds })

    expect((await mod.post(`/posts/${ofColleague}/remove`, { reason })).body).toMatchObject({
      reason: 'target_outranks',
    })
    expect((await mod.post(`/posts/${own}/remove`, { reason })).body).toMatchObject({ reason: 'own_account' })
    expect((await mod.post(`/posts/${secret}/remove`, { reason })).body).toMatchObject({ reason: 'post_not_found' })
    expect((await mod.post(`/comments/${newGuid()}/remove`, { reason })).body).toMatchObject({
      reason: 'comment_not_found',
    })
    await api.alice.post(`/posts/${secret}/report`, { reason })
    expect((await mod.post(`/posts/${secret}/remove`, { reason })).body).toMatchObject({ changed: true })
  })

  it('of a local author under a local post corrects the counter', async () => {
    const postGuid = await publish(api, api.alice, { text: 'Good morning', public: true })
    const { guid } = await createComment(api.pod, api.bob.viewer, { postGuid, text: 'Buy' })

    expect((await mod.post(`/comments/${guid}/remove`, { reason })).body).toMatchObject({ retracted: true })
    expect((await api.alice.get(`/posts/${postGuid}`)).body.interaction_counters.comments).toBe(0)
    expect(await tombstonesOf(guid)).toEqual([`Comment ${api.bob.address}`])
  })
})
