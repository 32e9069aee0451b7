import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { endTemporaryActions, undoActionsOnTarget } from '../../../src/domain/moderation/actions.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { Comment } from '../../../src/persistence/models/comment.js'
import {
  Conversation,
  ConversationMessage,
  ConversationVisibility,
} from '../../../src/persistence/models/conversation.js'
import type { Person } from '../../../src/persistence/models/person.js'
import { addPost } from '../../support/databases/rows.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { aspectOf, publish, type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
let mod: StaffClient
let rita: Person
beforeAll(async () => {
  api = await startSampleApiPod()
  mod = await makeStaff(api, 'mod', 'moderator')
  await makeStaff(api, 'adm', 'admin')
  rita = await addRemotePerson(api.pod, 'rita@r.example')
  await share(api, api.bob, rita)
})
afterAll(() => api.close())

const reason = 'Spam'
const guidsOf = (posts: readonly { readonly guid: string }[]) => posts.map(({ guid }) => guid)

async function act(guid: string, action: string, body: object = {}): Promise<number> {
  const { body: answer } = await mod.post(`/people/${guid}/${action}`, { reason, ...body })
  expect(answer).toMatchObject({ changed: true, action: { kind: action } })
  return answer.action.id
}

async function undo(id: number): Promise<void> {
  expect((await mod.post(`/actions/${id}/undo`, { reason })).body).toMatchObject({ changed: true })
}

async function postTagged(author: Person, text: string): Promise<string> {
  const { guid } = await addPost(api.pod, author, { public: true, text })
  await api.pod.db.raw(
    `with tag as (insert into tags (name) values ('tea') on conflict (name) do update set name = excluded.name returning id)
     insert into taggings (tag_id, post_id, created_at) select tag.id, posts.id, posts.created_at from tag, posts where guid = ?`,
    [guid],
  )
  return guid
}

/** A conversation that others have not read, with a message of each author; null: of the person who has begun it. */
async function addConversation(
  by: { readonly personId: number } | Person,
  others: readonly number[],
  authors: readonly (number | null)[],
): Promise<string> {
  const authorId = 'personId' in by ? by.personId : by.id
  const guid = newGuid()
  const { id: conversationId } = await Conversation.query(api.pod.db).insert({ guid, authorId, subject: 'Tea' })
  for (const personId of [authorId, ...others]) {
    const unread = personId === authorId ? 0 : 1
    const visible = { conversationId, personId, unread, createdAt: new Date(), updatedAt: new Date() }
    await ConversationVisibility.query(api.pod.db).insert(visible)
  }
  for (const author of authors) {
    const message = { guid: newGuid(), conversationId, authorId: author ?? authorId, text: `By ${author}` }
    await ConversationMessage.query(api.pod.db).insert({ ...message, createdAt: new Date(), arrivedAt: new Date() })
  }
  return guid
}

describe('a restriction of a person', () => {
  it.each(['silence', 'block', 'lock'] as const)('cannot end before it begins (%s)', async (action) => {
    const { guid } = action === 'lock' ? api.dan : rita
    const until = api.pod.now().toISOString()
    expect((await mod.post(`/people/${guid}/${action}`, { reason, until, confirm: rita.address })).body).toMatchObject({
      code: 422,
      reason: 'until_invalid',
      field: 'until',
    })
    expect((await mod.get(`/people/${guid}`)).body.restrictions).toEqual([])
  })
})

describe('a silenced person', () => {
  it('is in the streams and searches of followers only, and is read directly by everyone', async () => {
    const guid = await postTagged(rita, 'Green #tea')
    const comment = newGuid()
    const post = await api.pod.db('posts').where({ guid: api.alicePost }).first('id')
    await Comment.query(api.pod.db).insert({ guid: comment, authorId: rita.id, postId: post.id, text: 'Hello' })
    const lists = ['/search/posts?tag=tea', '/streams/tags']
    for (const user of [api.alice, api.bob]) await user.post('/tag_followings', { name: 'tea' })
    for (const path of lists) expect([path, guidsOf((await api.alice.get(path)).body)]).toEqual([path, [guid]])

    const action = await act(rita.guid, 'silence')

    for (const path of lists) {
      expect([path, guidsOf((await api.alice.get(path)).body)]).toEqual([path, []])
      expect([path, guidsOf((await api.bob.get(path)).body)]).toEqual([path, [guid]])
    }
    expect(guidsOf((await api.alice.get('/search/users?name_or_handle=rit')).body)).not.toContain(rita.guid)
    expect(guidsOf((await api.bob.get('/search/users?name_or_handle=rit')).body)).toContain(rita.guid)
    expect(guidsOf((await api.alice.get('/search/users?name_or_handle=rita@r.example')).body)).toContain(rita.guid)
    expect((await api.alice.get(`/posts/${guid}`)).status).toBe(200)
    expect(guidsOf((await api.alice.get(`/posts/${api.alicePost}/comments`)).body)).toContain(comment)
    expect((await mod.get(`/people/${rita.guid}`)).body).toMatchObject({
      state: 'silenced',
      restrictions: [{ action_id: action, kind: 'silence', by: 'person', until: null }],
    })
    expect((await mod.post(`/people/${rita.guid}/silence`, { reason })).body).toMatchObject({
      changed: false,
      guid: rita.guid,
      state: 'silenced',
    })

    await undo(action)
    for (const path of lists) expect(guidsOf((await api.alice.get(path)).body)).toEqual([guid])
  })

  it('may be local, reads the own posts, and is released at the end of the time', async () => {
    const guid = await publish(api, api.eve, { text: 'My #opinion', public: true })
    const until = new Date(api.pod.now().getTime() + 60_000)
    await act(api.eve.guid, 'silence', { until: until.toISOString() })

    expect(guidsOf((await api.alice.get('/search/posts?tag=opinion')).body)).toEqual([])
    expect(guidsOf((await api.eve.get('/search/posts?tag=opinion')).body)).toEqual([guid])

    expect(await endTemporaryActions({ ...api.pod, now: () => until })).toBe(1)
    expect(guidsOf((await api.alice.get('/search/posts?tag=opinion')).body)).toEqual([guid])
  })
})

describe('a blocked person', () => {
  it('is absent with everything, needs a confirmation, and is back with contacts after the undo', async () => {
    const guid = await postTagged(rita, 'Black #tea')
    const comment = newGuid()
    const post = await api.pod.db('posts').where({ guid: api.bobPost }).first('id')
    await Comment.query(api.pod.db).insert({ guid: comment, authorId: rita.id, postId: post.id, text: 'Hello' })
    await api.pod.db('posts').where({ id: post.id }).update({ commentsCount: 1 })
    const contactsPath = `/aspects/${await aspectOf(api, api.bob, 'Friends')}/contacts`
    const contacts = (await api.bob.get(contactsPath)).body
    expect((await mod.post(`/people/${rita.guid}/block`, { reason })).body).toMatchObject({
      code: 409,
      reason: 'confirmation_needed',
      preview: { people: 1, local_followers: 1, contacts: 1 },
    })
    expect((await mod.get(`/people/${rita.guid}`)).body.state).toBe('open')

    const action = await act(rita.guid, 'block', { confirm: rita.address })

    expect((await api.bob.get(`/users/${rita.guid}`)).status).toBe(404)
    expect((await api.bob.get(`/users/${rita.guid}/posts`)).status).toBe(404)
    expect((await api.bob.get(`/posts/${guid}`)).status).toBe(404)
    expect(guidsOf((await api.bob.get('/streams/main')).body)).not.toContain(guid)
    expect(guidsOf((await api.bob.get('/search/users?name_or_handle=rita@r.example')).body)).toEqual([])
    expect((await api.alice.get(`/posts/${api.bobPost}/comments`)).body).toEqual([])
    expect((await api.alice.get(`/posts/${api.bobPost}`)).body.interaction_counters.comments).toBe(0)
    expect(guidsOf((await api.bob.get(contactsPath)).body)).not.toContain(rita.guid)
    expect((await mod.get('/people?state=blocked')).body).toMatchObject([{ guid: rita.guid, local: false }])

    const silence = await act(rita.guid, 'silence')
    await undo(action)
    expect((await api.alice.get(`/posts/${guid}`)).status).toBe(200)
    expect((await mod.get(`/people/${rita.guid}`)).body.state).toBe('silenced')
    await undo(silence)
    expect((await api.bob.get(contactsPath)).body).toEqual(contacts)
    expect(guidsOf((await api.bob.get('/streams/main')).body)).toContain(guid)
    expect((await api.alice.get(`/posts/${api.bobPost}`)).body.interaction_counters.comments).toBe(1)
  })

  it.each(['block', 'silence'])(
    'is no actor of a notification, and has none alone, until the undo (%s)',
    async (kind) => {
      const mia = await addRemotePerson(api.pod, `mia-${kind}@m.example`)
      const userId = api.carol.viewer.userId
      const notify = async (guid: string, ...actors: readonly number[]) => {
        const post = await api.pod.db('posts').where({ guid }).first('id')
        const row = { guid: newGuid(), userId, type: 'liked', postId: post.id }
        const [{ id }] = await api.pod.db('notifications').insert(row).returning('id')
        await api.pod.db('notification_actors').insert(actors.map((personId) => ({ notificationId: id, personId })))
      }
      await notify(api.alicePost, mia.id, api.bob.viewer.personId)
      await notify(api.bobPost, mia.id)
      const shown = async () => {
        const { body } = await api.carol.get('/notifications?only_unread=true')
        const counts = (await api.carol.get('/user')).body.unread_notifications
        return [counts, ...body.map((each: { event_creators: { guid: string }[] }) => guidsOf(each.event_creators))]
      }
      expect(await shown()).toEqual([2, [mia.guid], [mia.guid, api.bob.guid]])

      const action = await act(mia.guid, kind, kind === 'block' ? { confirm: mia.address } : {})

      expect(await shown()).toEqual([1, [api.bob.guid]])
      if (kind === 'silence') {
        await share(api, api.carol, mia)
        expect(await shown()).toEqual([2, [mia.guid], [mia.guid, api.bob.guid]])
      }
      await undo(action)
      expect(await shown()).toEqual([2, [mia.guid], [mia.guid, api.bob.guid]])
      await api.pod.db('notifications').where({ userId }).delete()
    },
  )

  it('is absent with conversations and messages too, until the undo', async () => {
    const quin = await addRemotePerson(api.pod, 'quin@quin.example')
    const begun = await addConversation(quin, [api.alice.viewer.personId], [quin.id])
    const shared = await addConversation(api.bob.viewer, [api.alice.viewer.personId, quin.id], [quin.id, null])
    const path = `/conversations/${shared}/messages`
    const listed = async () => guidsOf((await api.alice.get('/conversations')).body)
    const unread = async () => (await api.alice.get('/user')).body.unread_conversations
    expect([await listed(), await unread()]).toEqual([[shared, begun], 2])

    const action = await act(quin.guid, 'block', { confirm: quin.address })

    expect([await listed(), await unread()]).toEqual([[shared], 1])
    for (const below of ['', '/messages']) {
      expect((await api.alice.get(`/conversations/${begun}${below}`)).status).toBe(404)
    }
    expect((await api.alice.post(`/conversations/${begun}/messages`, { body: 'Who are you?' })).status).toBe(404)
    expect((await api.alice.get(path)).body).toMatchObject([{ body: 'By null' }])
    await undo(action)
    expect([await listed(), (await api.alice.get(path)).body.length]).toEqual([[shared, begun], 2])
  })

  it('is remote, and moderators do not act on staff or on themselves', async () => {
    const [staff] = (await mod.get('/people?role=admin')).body
    expect((await mod.post(`/people/${api.dan.guid}/block`, { reason })).body).toMatchObject({ reason: 'not_remote' })
    expect((await mod.post(`/people/${rita.guid}/lock`, { reason })).body).toMatchObject({ reason: 'not_local' })
    expect((await mod.post(`/people/${staff.guid}/lock`, { reason })).body).toMatchObject({ reason: 'target_outranks' })
    expect((await mod.post(`/people/${mod.person.guid}/silence`, { reason })).body).toMatchObject({
      reason: 'own_account',
    })
    expect((await mod.post(`/people/${newGuid()}/silence`, { reason })).body).toMatchObject({
      reason: 'person_not_found',
    })
  })
})

describe('a locked account', () => {
  it('has no access until the undo; its posts stay', async () => {
    const guid = await publish(api, api.dan, { text: 'Here', public: true })

    const action = await act(api.dan.guid, 'lock')

    expect((await api.dan.get('/user')).status).toBe(401)
    expect((await api.alice.get(`/posts/${guid}`)).status).toBe(200)
    expect((await mod.get(`/people/${api.dan.guid}`)).body).toMatchObject({
      state: 'locked',
      restrictions: [{ kind: 'lock', action_id: action }],
    })
    await undo(action)
    expect((await api.dan.get('/user')).status).toBe(200)
  })

  it.each(['lock', 'silence'])('has a later end beside an earlier one, and each has an own undo (%s)', async (kind) => {
    const { guid } = api.dan
    const until = new Date(api.pod.now().getTime() + 60_000)
    const later = new Date(until.getTime() + 60_000)
    const state = kind === 'lock' ? 'locked' : 'silenced'
    const stateNow = async () => (await mod.get(`/people/${guid}`)).body.state
    await act(guid, kind, { until: later.toISOString() })
    const earlier = await mod.post(`/people/${guid}/${kind}`, { reason, until: until.toISOString() })
    expect(earlier.body).toMatchObject({ changed: false })

    const permanent = await act(guid, kind)

    expect((await mod.post(`/people/${guid}/${kind}`, { reason })).body).toMatchObject({ changed: false, state })
    expect(await endTemporaryActions({ ...api.pod, now: () => later })).toBe(1)
    expect(await stateNow()).toBe(state)
    await undo(permanent)
    expect(await stateNow()).toBe('open')
  })

  it('and a silence are undone together, or not at all', async () => {
    const { guid } = api.dan
    const target = { type: 'person', guid, kinds: ['silence', 'lock'] }
    await act(guid, 'silence')
    await act(guid, 'lock')
    const actions = () =>
      api.pod.db('moderation_actions').where({ targetGuid: guid, kind: 'silence', undoneById: null })
    await actions().update({ power: 'administration' })

    const actor = { ...COMMAND_ACTOR, role: 'moderator' } as const
    await expect(undoActionsOnTarget(api.pod, actor, target, { reason })).rejects.toMatchObject({
      reason: 'role_needed',
    })
    expect((await mod.get(`/people/${guid}`)).body.state).toBe('locked')
    expect(await undoActionsOnTarget(api.pod, COMMAND_ACTOR, target, { reason })).toEqual({ changed: true })
    expect((await mod.get(`/people/${guid}`)).body.state).toBe('open')
  })

  it('without an action is locked after the undo of all actions', async () => {
    await api.pod.db('users').where({ username: 'dan' }).update({ lockedAt: new Date() })
    const until = new Date(api.pod.now().getTime() + 60_000).toISOString()

    for (const id of [await act(api.dan.guid, 'lock', { until }), await act(api.dan.guid, 'lock')]) await undo(id)

    expect((await api.dan.get('/user')).status).toBe(401)
    await api.pod.db('users').where({ username: 'dan' }).update({ lockedAt: null })
  })

  it('differs from the end of all sessions', async () => {
    await act(api.carol.guid, 'end_sessions')

    expect((await api.carol.get('/user')).status).toBe(401)
    expect((await mod.get(`/people/${api.carol.guid}`)).body.state).toBe('open')
  })
})

it('the reports of a user are muted, with an entry in the audit log', async () => {
  const path = `/people/${api.eve.guid}`
  expect((await mod.call('PATCH', path, { reports_muted: true, reason })).body).toMatchObject({
    changed: true,
    reports_muted: true,
  })
  expect((await mod.call('PATCH', path, { reports_muted: true, reason })).body).toMatchObject({ changed: false })
  expect((await mod.get(path)).body.reports_muted).toBe(true)
  expect((await mod.get('/audit?action=person.reports_muted')).body).toHaveLength(1)
})

it('a hidden comment by a person stays hidden after the undo of their block', async () => {
  const remote = await addRemotePerson(api.pod, 'quin@q.example')
  const post = await addPost(api.pod, remote, { public: true, text: 'QP' })
  const { guid } = await createComment(api.pod, api.alice.viewer, { postGuid: post.guid, text: 'Nice' })
  const hidden = (await mod.post(`/posts/${post.guid}/hide`, { reason })).body.action.id
  const action = await act(remote.guid, 'block', { confirm: remote.address })

  await undo(action)
  expect((await api.alice.get(`/posts/${post.guid}`)).status).toBe(404)
  await undo(hidden)
  expect(guidsOf((await api.alice.get(`/posts/${post.guid}/comments`)).body)).toEqual([guid])
})
