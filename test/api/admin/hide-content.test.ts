import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { endTemporaryActions } from '../../../src/domain/moderation/actions.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { Comment } from '../../../src/persistence/models/comment.js'
import type { Person } from '../../../src/persistence/models/person.js'
import { NOTIFICATION_COLUMNS } from '../../../src/persistence/moderation/hidden-content.js'
import { imagesFolder } from '../../../src/persistence/photos/picture-files.js'
import { addPost } from '../../support/databases/rows.js'
import { sentAbout } from '../../support/federation/outbound-messages.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
let mod: StaffClient
let adm: StaffClient
let rita: Person
let uploadsDir: string
beforeAll(async () => {
  uploadsDir = await mkdtemp(join(tmpdir(), 'pod-hidden-'))
  await mkdir(imagesFolder(uploadsDir))
  api = await startSampleApiPod({ environment: { UPLOADS_DIR: uploadsDir } })
  mod = await makeStaff(api, 'mod', 'moderator')
  adm = await makeStaff(api, 'adm', 'admin')
  rita = await addRemotePerson(api.pod, 'rita@r.example')
})
afterAll(async () => {
  await api.close()
  await rm(uploadsDir, { recursive: true })
})

const reason = 'Spam'
const moderation = { hidden: true, text: expect.any(String) }

async function hide(path: string): Promise<number> {
  const { body } = await mod.post(`${path}/hide`, { reason })
  expect(body).toMatchObject({ changed: true, action: { kind: 'hide', undo: { possible: true } } })
  return body.action.id
}

async function undo(id: number): Promise<void> {
  expect((await mod.post(`/actions/${id}/undo`, { reason: 'A mistake' })).body).toMatchObject({ changed: true })
}

const guidsOf = (posts: readonly { readonly guid: string }[]) => posts.map(({ guid }) => guid)

describe('a hidden post', () => {
  it('is in no list, has no page, and is shown to its author alone until the undo', async () => {
    const guid = await publish(api, api.bob, { text: 'Cheap #watches for @{alice@pod.example}', public: true })
    const reshare = (await api.carol.post(`/posts/${guid}/reshares`, {})).body.guid
    await createComment(api.pod, api.carol.viewer, { postGuid: guid, text: 'Really cheap' })
    const paths = [
      ...['/streams/main', '/streams/tags', '/streams/mentions', '/search/posts?tag=watches'],
      ...[`/users/${api.bob.guid}/posts`, '/notifications', `/posts/${reshare}`],
    ]
    await api.alice.post('/tag_followings', { name: 'watches' })
    const before = await Promise.all(paths.map(async (path) => (await api.alice.get(path)).body))
    for (const [index, list] of before.entries())
      expect([paths[index], JSON.stringify(list)]).toEqual([paths[index], expect.stringContaining(guid)])
    const post = (await api.alice.get(`/posts/${guid}`)).body
    const notifications = (await api.bob.get('/notifications')).body

    const action = await hide(`/posts/${guid}`)

    const lists = await Promise.all(paths.map(async (path) => JSON.stringify((await api.alice.get(path)).body)))
    for (const list of lists) expect(list).not.toContain(guid)
    expect(
      (await api.bob.get('/notifications')).body.map((each: { target: object }) => each.target),
    ).not.toContainEqual(expect.objectContaining({ guid }))
    for (const path of ['', '/comments', '/likes', '/reshares']) {
      expect((await api.alice.get(`/posts/${guid}${path}`)).status).toBe(404)
    }
    for (const path of [`/posts/${guid}`, `/posts/${guid}.json`, `/fetch/post/${guid}`]) {
      expect([path, (await api.app.inject(path)).statusCode]).toEqual([path, 404])
    }
    expect((await api.app.inject(`/people/${api.bob.guid}/stream`)).body).not.toContain(guid)
    expect((await api.app.inject(`/people/${api.bob.guid}`)).body).not.toContain(guid)
    expect((await api.alice.get(`/posts/${reshare}`)).body.root).toBeUndefined()
    expect((await api.bob.get(`/posts/${guid}`)).body).toMatchObject({ guid, public: true, moderation })
    expect(guidsOf((await api.bob.get(`/users/${api.bob.guid}/posts`)).body)).toContain(guid)
    expect((await mod.get(`/posts/${guid}`)).body).toMatchObject({
      hidden: true,
      text: expect.stringContaining('Cheap'),
    })

    await undo(action)

    expect(await Promise.all(paths.map(async (path) => (await api.alice.get(path)).body))).toEqual(before)
    expect((await api.alice.get(`/posts/${guid}`)).body).toEqual(post)
    expect((await api.bob.get(`/posts/${guid}`)).body.moderation).toBeUndefined()
    expect((await api.bob.get('/notifications')).body).toEqual(notifications)
  })

  it('keeps its readers and its photos for the undo, if it is private', async () => {
    await api.alice.post(`/posts/${api.bobFriendsPost}/report`, { reason })
    const before = (await api.alice.get(`/posts/${api.bobFriendsPost}`)).body

    const action = await hide(`/posts/${api.bobFriendsPost}`)
    expect((await api.alice.get(`/posts/${api.bobFriendsPost}`)).status).toBe(404)
    await undo(action)

    expect((await api.alice.get(`/posts/${api.bobFriendsPost}`)).body).toEqual(before)
    expect((await api.carol.get(`/posts/${api.bobFriendsPost}`)).status).toBe(404)
  })

  it('has no picture files of any size until the undo', async () => {
    const guid = await publish(api, api.bob, { text: 'With a picture', public: true })
    const post = await api.pod.db('posts').where({ guid }).first('id', 'authorId')
    const name = `${newGuid()}.png`
    const photo = { guid: newGuid(), authorId: post.authorId, postId: post.id, public: true, pending: false, name }
    await api.pod.db('photos').insert(photo)
    const names = ['', 'scaled_full_', 'thumb_medium_', 'thumb_small_'].map((prefix) => `${prefix}${name}`)
    for (const each of names) await writeFile(join(imagesFolder(uploadsDir), each), 'picture')
    const statuses = () =>
      Promise.all(names.map(async (each) => (await api.app.inject(`/uploads/images/${each}`)).statusCode))
    expect(await statuses()).toEqual([200, 200, 200, 200])

    const action = await hide(`/posts/${guid}`)
    expect(await statuses()).toEqual([404, 404, 404, 404])

    await undo(action)
    expect(await statuses()).toEqual([200, 200, 200, 200])
  })

  it('gets comments without notifications; they are shown after the undo', async () => {
    const action = await hide(`/posts/${api.bobPost}`)
    const { id } = await api.pod.db('posts').where({ guid: api.bobPost }).first('id')
    await createComment(api.pod, api.bob.viewer, { postGuid: api.bobPost, text: 'My own post' })
    expect(await api.pod.db('notifications').where({ postId: id })).toEqual([])

    await undo(action)
    expect((await api.alice.get(`/posts/${api.bobPost}/comments`)).body).toMatchObject([{ body: 'My own post' }])
  })

  it('can be deleted by its author, which retracts it publicly', async () => {
    const guid = await publish(api, api.bob, { text: 'Soon gone', public: true })
    const action = await hide(`/posts/${guid}`)

    expect((await api.bob.delete(`/posts/${guid}`)).status).toBe(204)
    expect(await api.pod.db('tombstones').where({ guid })).toHaveLength(1)
    await undo(action)
    expect((await api.alice.get(`/posts/${guid}`)).status).toBe(404)
  })

  it('is hidden once: the second action changes nothing', async () => {
    const { guid } = await addPost(api.pod, rita, { public: true, text: 'Rare' })
    const action = await hide(`/posts/${guid}`)

    expect((await mod.post(`/posts/${guid}/hide`, { reason })).body).toMatchObject({
      changed: false,
      guid,
      hidden: true,
    })
    await undo(action)
    expect((await mod.post(`/actions/${action}/undo`, { reason })).body).toEqual({ changed: false })
    const audit = (await mod.get(`/audit?target=${guid}`)).body
    expect(audit).toMatchObject([{ action: 'hide.undo', undoes: action }, { action: 'hide' }])
    expect(await sentAbout(api.pod, guid)).toEqual([])
  })

  it('stays hidden while another action hides it', async () => {
    const { guid } = await addPost(api.pod, rita, { public: true, text: 'Rare' })
    const hidden = await hide(`/posts/${guid}`)
    const removed = (await mod.post(`/posts/${guid}/remove`, { reason })).body.action.id

    await undo(hidden)
    expect((await api.alice.get(`/posts/${guid}`)).status).toBe(404)
    await undo(removed)
    expect((await api.alice.get(`/posts/${guid}`)).status).toBe(200)
    expect(await api.pod.db('tombstones').where({ guid })).toEqual([])
  })

  it('is shown again at the end of a temporary action', async () => {
    const { guid } = await addPost(api.pod, rita, { public: true, text: 'Rare' })
    const until = new Date(api.pod.now().getTime() + 60_000)
    const over = { reason, until: api.pod.now().toISOString() }
    expect((await mod.post(`/posts/${guid}/hide`, over)).body).toMatchObject({ code: 422, reason: 'until_invalid' })
    await mod.post(`/posts/${guid}/hide`, { reason, until: until.toISOString() })

    expect(await endTemporaryActions(api.pod)).toBe(0)
    expect(await endTemporaryActions({ ...api.pod, now: () => until })).toBe(1)

    expect((await api.alice.get(`/posts/${guid}`)).status).toBe(200)
    expect((await mod.get('/audit?actor=system')).body).toMatchObject([{ action: 'hide.undo', via: 'system' }])
  })

  it('whose temporary action has lost its undo does not keep other actions from ending', async () => {
    const until = new Date(api.pod.now().getTime() + 60_000)
    const guids = []
    for (const text of ['Purged', 'Kept']) {
      const { guid } = await addPost(api.pod, rita, { public: true, text })
      await mod.post(`/posts/${guid}/hide`, { reason, until: until.toISOString() })
      guids.push(guid)
    }
    const [purged = '', kept] = guids
    await adm.post(`/posts/${purged}/purge`, { reason, confirm: purged })
    const pod = { ...api.pod, now: () => until }

    expect(await endTemporaryActions(pod)).toBe(1)
    expect(await endTemporaryActions(pod)).toBe(0)

    expect((await api.alice.get(`/posts/${kept}`)).status).toBe(200)
    expect(await api.pod.db('moderation_actions').where({ targetGuid: purged, canBeUndone: true })).toEqual([])
  })

  it('a private hidden post does not exist for moderators because of the case of a filter alone', async () => {
    const { guid } = await addPost(api.pod, rita, { public: false, text: 'Between us' })
    await api.pod.db('moderation_cases').insert({
      targetType: 'post',
      targetGuid: guid,
      kind: 'filter',
      public: false,
      authorGuid: rita.guid,
      authorAddress: rita.address,
    })

    expect((await mod.get(`/posts/${guid}`)).status).toBe(404)
    expect((await mod.post(`/posts/${guid}/hide`, { reason })).status).toBe(404)
  })
})

/** The people whom the user's notifications about the comments on a post name; undefined: there is none. */
async function commentersIn(user: SampleApiPod['alice'], postGuid: string): Promise<readonly string[] | undefined> {
  const { body } = await user.get('/notifications?only_unread=true')
  const found = body.find((each: { type: string; target: { guid: string } }) =>
    each.type.endsWith('commented') || each.type === 'commented_on_post' ? each.target.guid === postGuid : false,
  )
  return found && guidsOf(found.event_creators)
}

describe('the notification about comments of several people', () => {
  it('names those with a visible comment, in any order of actions and undos', async () => {
    const postGuid = await publish(api, api.alice, { text: 'Who comes?', public: true })
    const comment = async (by: SampleApiPod['bob'], text: string) =>
      `/comments/${(await createComment(api.pod, by.viewer, { postGuid, text })).guid}`
    const [bobs, carols] = [await comment(api.bob, 'Me'), await comment(api.carol, 'Me too')]
    const bobsSecond = await comment(api.bob, 'At noon')
    const named = async () => (await commentersIn(api.alice, postGuid))?.toSorted()
    const [bob, carol] = [api.bob.guid, api.carol.guid]
    expect(await named()).toEqual([bob, carol].toSorted())

    const first = await hide(bobs)
    expect(await named()).toEqual([bob, carol].toSorted())
    const second = await hide(bobsSecond)
    expect(await named()).toEqual([carol])
    const third = await hide(carols)
    expect(await named()).toBeUndefined()
    expect((await api.alice.get('/user')).body.unread_notifications).toBe(
      (await api.alice.get('/notifications?only_unread=true')).body.length,
    )
    await undo(third)
    expect(await named()).toEqual([carol])
    await undo(first)
    expect(await named()).toEqual([bob, carol].toSorted())
    await undo(second)

    await hide(bobs)
    await hide(bobsSecond)
    expect(await named()).toEqual([carol])
    await comment(api.bob, 'Sorry')
    expect(await named()).toEqual([bob, carol].toSorted())
  })
})

describe('a hidden reshare', () => {
  it('does not name its author in the notification of the author of the post, until the undo', async () => {
    const guid = await publish(api, api.alice, { text: 'To be passed on', public: true })
    const reshare = (await api.bob.post(`/posts/${guid}/reshares`, {})).body.guid
    await api.carol.post(`/posts/${guid}/reshares`, {})
    const named = async () => {
      const { body } = await api.alice.get('/notifications?type=reshared')
      return guidsOf(body.find((each: { target: { guid: string } }) => each.target.guid === guid).event_creators)
    }
    expect(await named()).toEqual([api.bob.guid, api.carol.guid])

    const action = await hide(`/posts/${reshare}`)

    expect(await named()).toEqual([api.carol.guid])
    await undo(action)
    expect(await named()).toEqual([api.bob.guid, api.carol.guid])
  })
})

describe('a hidden comment', () => {
  it('is neither counted nor listed, and is shown to its author', async () => {
    const postGuid = await publish(api, api.alice, { text: 'Good morning', public: true })
    const { guid } = await createComment(api.pod, api.bob.viewer, { postGuid, text: 'Buy' })
    const { guid: other } = await createComment(api.pod, api.carol.viewer, { postGuid, text: 'Hello' })
    const count = async () => (await api.carol.get(`/posts/${postGuid}`)).body.interaction_counters.comments
    const before = (await api.carol.get(`/posts/${postGuid}/comments`)).body
    const notifications = (await api.alice.get('/notifications')).body

    const action = await hide(`/comments/${guid}`)

    expect(await count()).toBe(1)
    expect(guidsOf((await api.carol.get(`/posts/${postGuid}/comments`)).body)).toEqual([other])
    expect((await api.carol.get(`/posts/${postGuid}/comments/${guid}/likes`)).status).toBe(404)
    expect((await api.app.inject(`/fetch/comment/${guid}`)).statusCode).toBe(404)
    expect((await api.app.inject(`/posts/${postGuid}`)).body).not.toContain('Buy')
    const own = (await api.bob.get(`/posts/${postGuid}/comments`)).body
    expect(own).toMatchObject([{ guid, moderation }, { guid: other }])
    expect(own[1].moderation).toBeUndefined()

    expect(await commentersIn(api.alice, postGuid)).toEqual([api.carol.guid])

    await undo(action)
    expect(await count()).toBe(2)
    expect((await api.carol.get(`/posts/${postGuid}/comments`)).body).toEqual(before)
    expect((await api.alice.get('/notifications')).body).toEqual(notifications)

    await hide(`/comments/${guid}`)
    expect((await api.bob.delete(`/posts/${postGuid}/comments/${guid}`)).status).toBe(204)
    expect(await count()).toBe(1)
  })

  it('of a remote author on a remote post is removed with an undo', async () => {
    const post = await addPost(api.pod, rita, { public: true, text: 'Remote' })
    const guid = newGuid()
    await Comment.query(api.pod.db).insert({ guid, authorId: rita.id, postId: post.id, text: 'Buy' })
    await api.pod.db('posts').where({ id: post.id }).update({ commentsCount: 1 })

    const { body } = await mod.post(`/comments/${guid}/remove`, { reason })
    expect(body).toMatchObject({ retracted: false, action: { undo: { possible: true } } })
    expect((await api.alice.get(`/posts/${post.guid}/comments`)).body).toEqual([])
    await undo(body.action.id)
    expect((await api.alice.get(`/posts/${post.guid}/comments`)).body).toMatchObject([{ guid }])
  })
})

describe('purging', () => {
  it('needs the guid as confirmation, is final, and leaves tombstones that stay', async () => {
    const { guid } = await addPost(api.pod, rita, { public: true, text: 'Rare' })
    const removal = (await mod.post(`/posts/${guid}/remove`, { reason })).body.action.id
    expect((await adm.post(`/posts/${guid}/purge`, { reason })).body).toMatchObject({
      code: 409,
      reason: 'confirmation_needed',
      preview: { author: 'rita@r.example' },
    })

    expect((await adm.post(`/posts/${guid}/purge`, { reason, confirm: guid })).body).toMatchObject({ changed: true })

    expect(await api.pod.db('posts').where({ guid })).toEqual([])
    expect((await mod.post(`/actions/${removal}/undo`, { reason })).body).toMatchObject({ reason: 'not_undoable' })
    expect((await api.pod.db('tombstones').where({ guid })).every(({ permanent }) => permanent)).toBe(true)
    expect((await adm.post(`/posts/${api.alicePost}/purge`, { reason, confirm: api.alicePost })).body).toMatchObject({
      reason: 'not_remote',
    })
  })

  it('a final removal cannot be undone', async () => {
    const guid = await publish(api, api.bob, { text: 'Retracted', public: true })
    const { id } = (await mod.post(`/posts/${guid}/remove`, { reason })).body.action

    expect((await mod.post(`/actions/${id}/undo`, { reason })).body).toMatchObject({
      code: 409,
      reason: 'not_undoable',
    })
    expect((await mod.post('/actions/999999/undo', { reason })).body).toMatchObject({ reason: 'action_not_found' })
    const listed = (await mod.get(`/actions?target=${guid}`)).body
    expect(listed).toMatchObject([{ id, kind: 'remove', undo: { possible: false }, actor: { name: 'mod' } }])
  })
})

it('a restored notification has all columns', async () => {
  const { rows } = await api.pod.db.raw<{ rows: { name: string }[] }>(
    `select column_name as name from information_schema.columns where table_schema = 'public' and table_name = 'notifications'
      and is_generated = 'NEVER'`,
  )

  expect(rows.map(({ name }) => name).toSorted()).toEqual([...NOTIFICATION_COLUMNS].toSorted())
})
