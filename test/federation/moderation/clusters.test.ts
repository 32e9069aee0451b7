import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { undoAction } from '../../../src/domain/moderation/actions.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { dismissCase, reopenCase } from '../../../src/domain/moderation/change-case.js'
import { cleanCluster } from '../../../src/domain/moderation/clusters/clean-cluster.js'
import { cleaningTaskHandlers } from '../../../src/domain/moderation/clusters/cleaning-work.js'
import { dismissCluster, listSpamClusters, readCluster } from '../../../src/domain/moderation/clusters/clusters.js'
import { buildContentKeys } from '../../../src/domain/moderation/clusters/content-keys.js'
import { findClusters } from '../../../src/domain/moderation/clusters/find-clusters.js'
import { previewCleaning } from '../../../src/domain/moderation/clusters/plan-cleaning.js'
import { reloadFilters } from '../../../src/domain/moderation/filters/active-filters.js'
import { changeFilter } from '../../../src/domain/moderation/filters/filters.js'
import { getPersonState } from '../../../src/domain/moderation/people/people.js'
import { setPodRule } from '../../../src/domain/moderation/pods/pod-rules.js'
import { suspendAccount } from '../../../src/domain/moderation/restrict-user.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import type { Post } from '../../../src/persistence/models/post.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, postBy } from '../../support/federation/entities.js'
import { allStored, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'
import { crashInChunk, finishBackgroundTasks } from '../../support/pods/finish-background-tasks.js'

let pod: FederationPod
let locals: readonly LocalUser[]
let spammers: readonly RemotePerson[]
beforeAll(async () => {
  pod = await openFederationPod()
  locals = Object.values(await pod.localUsers('ann', 'bob', 'carol'))
  const addresses = Array.from({ length: 6 }, (_, index) => `spam${index}@s.example`)
  spammers = await Promise.all(addresses.map((address) => pod.addRemotePerson(address)))
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty(
    'posts, notifications, outbound_messages, outbox, waiting, tombstones, clusters, content_keys, filters, contacts',
  )
  await pod.db('moderation_cases').delete()
  await reloadFilters(pod)
  await findClusters(pod) // remembers where it begins
})

const LINK = 'https://spam.example/watches'
const reason = 'Spam wave'
const only = { hide: false, remove: false, filter: false, authors: 'none', pods: 'none', except: [] } as const
const clusters = async () => (await listSpamClusters(pod, COMMAND_ACTOR, {}, { limit: 50 })).items

/** One comment of each person under the posts of three local people. */
async function comments(text: (index: number) => string, people = spammers): Promise<readonly Post[]> {
  const posts = await Promise.all(locals.map((local) => addPost(pod, local)))
  const messages = people.map((person, index) => {
    const post = posts[index % posts.length]
    if (post === undefined) throw new Error('There is no post.')
    return publicMessage(person, commentBy(person, post, { text: text(index) }))
  })
  expect(await receive(pod, ...messages)).toEqual(allStored)
  return posts
}

describe('six people of one pod who post one link under the posts of three users', () => {
  it('are one cluster with one case, which grows', async () => {
    await comments((index) => `Number ${index}: ${LINK}?from=${index}`)

    expect(await findClusters(pod)).toMatchObject({ opened: 1, items: 6 })
    expect(await findClusters(pod)).toMatchObject({ opened: 0, items: 0 })

    const [cluster] = await clusters()
    expect(cluster).toMatchObject({
      kind: 'link',
      label: 'spam.example/watches',
      state: 'open',
      itemCount: 6,
      authorCount: 6,
      podCount: 1,
    })
    expect(await pod.db('moderationCases')).toMatchObject([{ kind: 'cluster', targetType: 'cluster', state: 'open' }])
    await comments((index) => `Again ${index}: ${LINK}`, spammers.slice(0, 2))
    expect(await findClusters(pod)).toMatchObject({ opened: 0, items: 2 })
    expect(await clusters()).toMatchObject([{ itemCount: 8, authorCount: 6, podCount: 1 }])
  })

  it('are cleaned with one action, and one undo shows the hidden content', async () => {
    await comments((index) => `Number ${index}: ${LINK}`)
    await findClusters(pod)
    const [{ id } = { id: 0 }] = await clusters()
    expect(await pod.rows('notifications')).toEqual([3])

    const parts = { ...only, hide: true, filter: true }
    expect(await previewCleaning(pod, COMMAND_ACTOR, id, parts)).toMatchObject({ hide: 6, remove: 0, people: 6 })
    const { action } = await cleanCluster(pod, COMMAND_ACTOR, { id, ...parts }, { reason })

    expect(await pod.db('comments').where({ hidden: true })).toHaveLength(6)
    expect(await pod.db('posts').where('commentsCount', '>', 0)).toEqual([])
    expect(await pod.rows('notifications')).toEqual([0])
    expect(await pod.db('auditEntries').where({ action: 'cluster.clean' }).orderBy('id', 'desc').first()).toMatchObject(
      { after: { hidden: 6, removed: 0 } },
    )
    expect(await pod.db('moderationCases')).toMatchObject([{ state: 'resolved' }])
    expect(await findClusters(pod)).toMatchObject({ opened: 0 })
    await comments(() => `Later: ${LINK}`, spammers.slice(0, 1))
    expect(await pod.db('comments').where({ hidden: true })).toHaveLength(7)

    await undoAction(pod, COMMAND_ACTOR, action?.id ?? 0, { reason: 'A mistake' })

    expect(await pod.db('comments').where({ hidden: true })).toHaveLength(1)
    expect(await pod.rows('notifications')).toEqual([3])
    expect(await pod.rows('filters')).toEqual([0])
    expect(await clusters()).toMatchObject([{ state: 'open' }])
    expect(await pod.db('moderationCases')).toMatchObject([{ state: 'open', closedAt: null }])
    expect(await pod.db('moderationCaseEvents').orderBy('id').pluck('event')).toContain('reopened')
  })

  it('with a common text offer a filter for the text as it is shown', async () => {
    await comments((index) => `**Cheap** ${index} watches for all who _want_ one`)
    await findClusters(pod)
    const [{ id } = { id: 0 }] = await clusters()

    expect(await previewCleaning(pod, COMMAND_ACTOR, id, { ...only, filter: true })).toMatchObject({
      filter: { kind: 'phrase', value: 'watches for all who want one' },
    })
  })

  it('lose content that local people may retract, which is confirmed with the number', async () => {
    await comments(() => LINK)
    await findClusters(pod)
    const [{ id } = { id: 0 }] = await clusters()
    const clean = (confirm?: string) =>
      cleanCluster(pod, COMMAND_ACTOR, { id, ...only, remove: true, confirm }, { reason })

    await expect(clean()).rejects.toMatchObject({ reason: 'confirmation_needed', details: { preview: { remove: 6 } } })
    expect(await clean('6')).toMatchObject({ changed: true, preview: { hide: 0, remove: 6 } })

    expect(await pod.rows('comments')).toEqual([0])
    expect(await pod.db('tombstones').where({ targetType: 'Comment' })).toHaveLength(6)
  })

  it('stay where they are excepted', async () => {
    await comments(() => LINK)
    await findClusters(pod)
    const [{ id } = { id: 0 }] = await clusters()
    const except = spammers.slice(0, 2).map(({ guid }) => guid)

    expect(await previewCleaning(pod, COMMAND_ACTOR, id, { ...only, hide: true, except })).toMatchObject({ hide: 4 })
  })

  it('are no cluster again for a week once dismissed', async () => {
    await comments(() => LINK)
    await findClusters(pod)
    const [{ id } = { id: 0 }] = await clusters()

    await dismissCluster(pod, COMMAND_ACTOR, id, { reason })
    await comments((index) => `${index} ${LINK}`)

    expect(await findClusters(pod)).toMatchObject({ opened: 0 })
    await expect(dismissCluster(pod, COMMAND_ACTOR, id, { reason })).rejects.toMatchObject({ reason: 'bad_transition' })
    expect(await pod.db('moderationCases')).toMatchObject([{ state: 'dismissed' }])
  })

  it('are open again with their case after the undo of the dismissal', async () => {
    await comments(() => LINK)
    await findClusters(pod)
    const [{ id } = { id: 0 }] = await clusters()
    const { action } = await dismissCluster(pod, COMMAND_ACTOR, id, { reason })

    await undoAction(pod, COMMAND_ACTOR, action?.id ?? 0, { reason: 'A mistake' })

    expect([await clusters(), await pod.db('moderationCases')]).toMatchObject([
      [{ state: 'open' }],
      [{ state: 'open' }],
    ])
  })

  it('are dismissed and opened again with their case, whose reopening makes the dismissal final', async () => {
    await comments(() => LINK)
    await findClusters(pod)
    const [{ id, caseId } = { id: 0, caseId: 0 }] = await clusters()
    const states = async () => [(await clusters())[0]?.state, (await pod.db('moderationCases').first('state')).state]

    await dismissCase(pod, COMMAND_ACTOR, caseId ?? 0, { reason })
    expect(await states()).toEqual(['dismissed', 'dismissed'])
    await reopenCase(pod, COMMAND_ACTOR, caseId ?? 0, { reason })
    expect(await states()).toEqual(['open', 'open'])
    const { action } = await dismissCluster(pod, COMMAND_ACTOR, id, { reason })
    await reopenCase(pod, COMMAND_ACTOR, caseId ?? 0, { reason })
    expect(await states()).toEqual(['open', 'open'])
    await expect(undoAction(pod, COMMAND_ACTOR, action?.id ?? 0, { reason })).rejects.toMatchObject({
      reason: 'not_undoable',
    })
    await dismissCluster(pod, COMMAND_ACTOR, id, { reason })
    await reopenCase(pod, COMMAND_ACTOR, caseId ?? 0, { reason })
    await cleanCluster(pod, COMMAND_ACTOR, { id, ...only, hide: true }, { reason })
    expect(await states()).toEqual(['cleaned', 'resolved'])
    await expect(reopenCase(pod, COMMAND_ACTOR, caseId ?? 0, { reason })).rejects.toMatchObject({
      reason: 'bad_transition',
    })
  })

  it('arrive hidden while their cluster is open, if the pod is set so', async () => {
    const strict = { ...pod, config: { ...pod.config, spamAutoHide: true } }
    await comments(() => LINK)
    await findClusters(strict)
    expect(await pod.db('comments').where({ hidden: true })).toHaveLength(0)

    for (let round = 0; round < 2; round += 1) {
      await comments(() => LINK, spammers.slice(0, 1))
      await findClusters(strict)
    }

    expect(await pod.db('comments').where({ hidden: true })).toHaveLength(2)
    const hides = await pod.db('moderationActions').where({ kind: 'hide', targetType: 'cluster' })
    expect(hides).toMatchObject([{ actor: { name: 'system' } }])

    const [followed] = spammers.slice(1)
    await pod.db('contacts').insert({ userId: locals[0]?.userId, personId: followed?.id, receiving: true })
    await comments(() => LINK, spammers.slice(1, 2))
    await findClusters(strict)
    expect(await pod.db('comments').where({ hidden: true })).toHaveLength(2)
  })
})

describe('a cluster of more than 200 items', () => {
  const ITEMS = 1_100

  /** Comments of six people under three posts, which are inserted without messages. Returns the number of the cluster. */
  async function wave(items = ITEMS): Promise<number> {
    const posts = await comments((index) => `${index} ${LINK}`)
    await pod.db.raw(
      `insert into comments (guid, post_id, author_id, text)
       select md5('wave' || number), (cast(:posts as bigint[]))[number % 3 + 1], (cast(:people as bigint[]))[number % 6 + 1], :text
       from generate_series(1, :count) as number`,
      {
        posts: posts.map(({ id }) => id),
        people: spammers.map(({ id }) => id),
        text: `Win: ${LINK}`,
        count: items - spammers.length,
      },
    )
    await pod.db.raw('update posts set comments_count = (select count(*) from comments where post_id = posts.id)')
    await findClusters(pod)
    return (await clusters())[0]?.id ?? 0
  }

  const state = async () => (await clusters())[0]?.state
  const hidden = async () => (await pod.db('comments').where({ hidden: true })).length
  const sumCommentCounts = async () => (await pod.db('posts').sum('comments_count as sum'))[0]?.['sum']
  const parts = { ...only, hide: true, filter: true } as const

  it('is cleaned and restored in chunks, which go on after the death of a worker', async () => {
    const id = await wave()
    const notifications = await pod.rows('notifications')

    const { action, task } = await cleanCluster(pod, COMMAND_ACTOR, { id, ...parts }, { reason })

    expect(task).toMatchObject({ kind: 'cluster.clean', state: 'queued', total: ITEMS })
    expect([await state(), await hidden(), (await pod.db('filters')).length]).toEqual(['cleaning', 0, 1])
    await expect(finishBackgroundTasks(pod, crashInChunk(cleaningTaskHandlers, 2))).rejects.toThrow('the worker dies')
    expect([await state(), await hidden()]).toEqual(['cleaning', 500])
    expect((await readCluster(pod, COMMAND_ACTOR, id)).task).toMatchObject({ state: 'running', done: 500 })
    await expect(cleanCluster(pod, COMMAND_ACTOR, { id, ...parts }, { reason })).rejects.toMatchObject({
      reason: 'bad_transition',
    })
    await finishBackgroundTasks(pod, cleaningTaskHandlers)
    expect([await state(), await hidden(), Number(await sumCommentCounts())]).toEqual(['cleaned', ITEMS, 0])
    expect(await pod.rows('notifications')).toEqual([0])
    expect(
      await pod.db('auditEntries').where({ action: 'cluster.clean', reason }).orderBy('id', 'desc').limit(1),
    ).toMatchObject([{ after: { hidden: ITEMS } }])

    await undoAction(pod, COMMAND_ACTOR, action?.id ?? 0, { reason: 'A mistake' })

    expect([await state(), await hidden(), await pod.rows('filters')]).toEqual(['restoring', ITEMS - 200, [0]])
    await expect(finishBackgroundTasks(pod, crashInChunk(cleaningTaskHandlers, 2))).rejects.toThrow('the worker dies')
    expect([await state(), await hidden()]).toEqual(['restoring', ITEMS - 700])
    await finishBackgroundTasks(pod, cleaningTaskHandlers)
    expect([await state(), await hidden(), Number(await sumCommentCounts())]).toEqual(['open', 0, ITEMS])
    expect(await pod.rows('notifications')).toEqual(notifications)
  })

  it('is shown again by an undo while it is cleaned', async () => {
    const id = await wave()
    const { action } = await cleanCluster(pod, COMMAND_ACTOR, { id, ...parts }, { reason })
    await expect(finishBackgroundTasks(pod, crashInChunk(cleaningTaskHandlers, 2))).rejects.toThrow('the worker dies')

    await undoAction(pod, COMMAND_ACTOR, action?.id ?? 0, { reason: 'A mistake' })
    await finishBackgroundTasks(pod, cleaningTaskHandlers)

    expect([await state(), await hidden(), Number(await sumCommentCounts())]).toEqual(['open', 0, ITEMS])
    expect(await pod.db('hiddenContent')).toEqual([])
  })

  it('is retracted after its authors are blocked, in chunks of the same action', async () => {
    const id = await wave(60)
    const all = { ...parts, remove: true, authors: 'block', confirm: '60' } as const
    const countComments = async () => (await pod.db('comments')).length

    const { task } = await cleanCluster(pod, COMMAND_ACTOR, { id, ...all }, { reason })
    expect(task).toMatchObject({ total: 60 + spammers.length })
    await expect(finishBackgroundTasks(pod, crashInChunk(cleaningTaskHandlers, 3))).rejects.toThrow('the worker dies')
    expect([await state(), await countComments(), await hidden()]).toEqual(['cleaning', 10, 10])
    await finishBackgroundTasks(pod, cleaningTaskHandlers)

    expect([await state(), await countComments()]).toEqual(['cleaned', 0])
    expect(await pod.db('tombstones').where({ targetType: 'Comment' })).toHaveLength(60)
    expect(await pod.db('people').where({ restriction: 'block' })).toHaveLength(spammers.length)
    await pod.db('person_restrictions').delete()
    await pod.db('people').update({ restriction: null })
  })
})

describe('the ticked authors', () => {
  it('are silenced or blocked with the same action and undo, others stay as they are', async () => {
    await comments(() => LINK)
    await pod.db('contacts').insert({ userId: locals[0]?.userId, personId: spammers[0]?.id, receiving: true })
    await findClusters(pod)
    const [{ id } = { id: 0 }] = await clusters()

    const { action, preview } = await cleanCluster(pod, COMMAND_ACTOR, { id, ...only, authors: 'block' }, { reason })

    expect(preview).toMatchObject({ authors: 5, hide: 0 })
    const listBlocked = () => pod.db('people').where({ restriction: 'block' })
    expect(await listBlocked()).toHaveLength(5)
    expect(await pod.db('comments').where({ hidden: true })).toHaveLength(5)
    await undoAction(pod, COMMAND_ACTOR, action?.id ?? 0, { reason: 'A mistake' })
    expect(await listBlocked()).toEqual([])
    expect(await pod.db('comments').where({ hidden: true })).toEqual([])
  })
})

describe('the local authors of a cleaning with the choice `lock`', () => {
  it('are locked until the undo, except for staff and the podmin account; authors of other pods are blocked', async () => {
    const { gus, hal, ida } = await pod.localUsers('gus', 'hal', 'ida')
    await pod.db('users').where({ username: 'ida' }).update({ role: 'moderator' })
    for (const local of [gus, hal, ida]) await addPost(pod, local, { text: `Buy at ${LINK}` })
    await comments(() => LINK, spammers.slice(0, 3))
    await findClusters(pod)
    const [{ id } = { id: 0 }] = await clusters()
    const withPodmin = { ...pod, config: { ...pod.config, podminAccount: 'hal' } }
    const lock = { ...only, authors: 'lock' } as const
    const locked = () => pod.db('users').whereNotNull('lockedAt').pluck('username')
    const listBlocked = () => pod.db('people').where({ restriction: 'block' })

    const { action, preview } = await cleanCluster(withPodmin, COMMAND_ACTOR, { id, ...lock }, { reason })

    expect(preview).toMatchObject({ authors: 4, hide: 0 })
    expect([await locked(), (await listBlocked()).length]).toEqual([['gus'], 3])
    expect(await getPersonState(pod, COMMAND_ACTOR, gus.guid)).toMatchObject({
      state: 'locked',
      restrictions: [{ kind: 'lock', by: 'person', actionId: action?.id }],
    })
    await undoAction(pod, COMMAND_ACTOR, action?.id ?? 0, { reason: 'A mistake' })
    expect([await locked(), await listBlocked()]).toEqual([[], []])
    expect(await getPersonState(pod, COMMAND_ACTOR, gus.guid)).toMatchObject({ state: 'open', restrictions: [] })

    const again = await cleanCluster(withPodmin, COMMAND_ACTOR, { id, ...lock }, { reason })
    const single = await suspendAccount(pod, COMMAND_ACTOR, gus.guid, { reason })
    await undoAction(pod, COMMAND_ACTOR, again.action?.id ?? 0, { reason: 'A mistake' })
    expect(await locked()).toEqual(['gus'])
    const last = await cleanCluster(withPodmin, COMMAND_ACTOR, { id, ...lock }, { reason })
    await undoAction(pod, COMMAND_ACTOR, single.action?.id ?? 0, { reason: 'A mistake' })
    expect(await locked()).toEqual(['gus'])
    await undoAction(pod, COMMAND_ACTOR, last.action?.id ?? 0, { reason: 'A mistake' })
    expect(await locked()).toEqual([])
  })
})

describe('the pods of the ticked authors', () => {
  it('get a rule, which the undo removes; not where a local user has contacts', async () => {
    await comments(() => LINK)
    await findClusters(pod)
    const [{ id } = { id: 0 }] = await clusters()
    const limit = { ...only, pods: 'limited' } as const
    await pod.db('contacts').insert({ userId: locals[0]?.userId, personId: spammers[0]?.id, receiving: true })
    expect(await previewCleaning(pod, COMMAND_ACTOR, id, limit)).toMatchObject({ pods: [] })
    await pod.db('contacts').delete()

    const { action, preview } = await cleanCluster(pod, COMMAND_ACTOR, { id, ...limit }, { reason })

    expect(preview).toMatchObject({ hide: 0, pods: ['s.example'] })
    expect(await pod.db('podRules')).toMatchObject([{ domain: 's.example', state: 'limited', reason }])
    await undoAction(pod, COMMAND_ACTOR, action?.id ?? 0, { reason: 'A mistake' })
    expect(await pod.db('podRules')).toEqual([])

    const again = await cleanCluster(pod, COMMAND_ACTOR, { id, ...limit, filter: true }, { reason })
    await setPodRule(pod, COMMAND_ACTOR, { domain: 's.example', state: 'limited', publicComment: 'Kept' }, { reason })
    const [filter] = await pod.db('filters')
    await changeFilter(pod, COMMAND_ACTOR, { id: filter.id, action: 'flag' }, { reason })
    await undoAction(pod, COMMAND_ACTOR, again.action?.id ?? 0, { reason: 'A mistake' })
    expect(await pod.db('podRules')).toMatchObject([{ publicComment: 'Kept' }])
    expect(await pod.db('filters').pluck('action')).toEqual(['flag'])
    await pod.db('podRules').delete()
  })
})

describe('the tick', () => {
  it('is not proposed for people whom a local user follows, or who are known for 30 days', async () => {
    await comments(() => LINK)
    const [followed, old] = spammers
    await pod.db('contacts').insert({ userId: locals[0]?.userId, personId: followed?.id, receiving: true })
    await pod
      .db('people')
      .where({ id: old?.id })
      .update({ createdAt: new Date(Date.now() - 31 * 86_400_000) })
    await findClusters(pod)
    const [{ id } = { id: 0 }] = await clusters()

    const { authors } = await readCluster(pod, COMMAND_ACTOR, id)

    expect(
      authors
        .filter(({ isProposed }) => !isProposed)
        .map(({ address }) => address)
        .sort(),
    ).toEqual([followed?.address, old?.address].sort())
    await pod.db('people').where({ id: old?.id }).update({ createdAt: new Date() })
  })
})

describe('the search for clusters', () => {
  it('opens no cluster for four items, for two authors, or for long-known people of several pods', async () => {
    await comments(() => LINK, spammers.slice(0, 4))
    expect(await findClusters(pod)).toMatchObject({ opened: 0 })
    for (let round = 0; round < 3; round += 1) await comments(() => 'https://a.example/x', spammers.slice(0, 2))
    expect(await findClusters(pod)).toMatchObject({ opened: 0 })

    await pod
      .db('people')
      .whereNotNull('podId')
      .update({ createdAt: new Date(Date.now() - 8 * 86_400_000) })
    const others = await Promise.all(['q', 'r', 't'].map((name) => pod.addRemotePerson(`old@${name}.example`)))
    await pod
      .db('people')
      .whereIn(
        'id',
        others.map(({ id }) => id),
      )
      .update({ createdAt: new Date(Date.now() - 8 * 86_400_000) })
    await comments(() => 'https://news.example/today', [...others, ...others])
    expect(await findClusters(pod)).toMatchObject({ opened: 0 })
    await pod.db('people').whereNotNull('podId').update({ createdAt: new Date() })
  })
})

describe('new conversations with people who do not follow their author', () => {
  it('open a case about the author beyond 20 in an hour, which holds their number only', async () => {
    const [author, ann] = [spammers[0], locals[0]]
    const rows = Array.from({ length: 21 }, () => ({ guid: newGuid(), authorId: author?.id, subject: 'Secret' }))
    const begin = async (count: number) => {
      const made = await pod.db('conversations').insert(rows.splice(0, count)).returning('id')
      const createdAt = new Date()
      await pod
        .db('conversationVisibilities')
        .insert(made.map(({ id }) => ({ conversationId: id, personId: ann?.id, createdAt, updatedAt: createdAt })))
      await findClusters(pod)
      return pod.db('moderationCases')
    }

    expect(await begin(20)).toEqual([])
    expect(await begin(1)).toMatchObject([{ targetType: 'person', targetGuid: author?.guid, text: null }])
    expect(await pod.db('moderationCaseEvents').orderBy('id', 'desc').first('text')).toMatchObject({
      text: expect.stringMatching(/^21 new conversations/),
    })

    rows.push(...Array.from({ length: 21 }, () => ({ guid: newGuid(), authorId: author?.id, subject: 'Secret' })))
    const closeAgo = (minutes: number) =>
      pod.db('moderationCases').update({ state: 'resolved', closedAt: new Date(Date.now() - minutes * 60_000) })
    await closeAgo(59)
    expect(await begin(1)).toMatchObject([{ state: 'resolved' }])
    await closeAgo(61)
    expect(await begin(1)).toMatchObject([{ state: 'open', closedAt: null }])
    expect(await pod.db('moderationCaseEvents').orderBy('id').pluck('event')).toEqual([
      'reported',
      'reported',
      'reopened',
    ])
    await pod.db('moderationCases').update({ state: 'dismissed', closedAt: new Date(0), ignoreFurther: true })
    expect(await begin(1)).toMatchObject([{ state: 'dismissed' }])
  })
})

describe('keys', () => {
  const keys = (text: string) => buildContentKeys({ text, photos: [] }, 'pod.example').map(({ key }) => key)

  it('are the same for copies with other mentions, numbers, queries, case and invisible characters', () => {
    const one = keys('@{ann@pod.example} Win 100 Euro today, only at https://win.example/now?id=7')
    expect(keys('@{bob@q.example} win 25 EURO to\u200bday, only at https://win.example/now?id=9')).toEqual(one)
    expect(keys('**Win** 7 _Euro_ to*day*, only at https&#58;//win.example/now?id=3')).toEqual(one)
    expect(one).toHaveLength(2)
  })

  it('are links, sets of three mentions and photos, but no short texts and links to this pod', () => {
    const mentions = '@{a@a.example} @{b@b.example} @{c@c.example}'
    expect(keys('Good morning')).toEqual([])
    expect(keys('See https://pod.example/p')).not.toContainEqual(expect.stringMatching(/^link:/))
    expect(keys(mentions)).toHaveLength(1)
    expect(keys('@{c@c.example} @{a@a.example} @{b@b.example}')).toEqual(keys(mentions))
    expect(buildContentKeys({ text: '', photos: ['https://q.example/1.png'] }, 'pod.example')).toMatchObject([
      { kind: 'photo' },
    ])
  })
})

it('the search takes as many statements for many items as for few', async () => {
  const search = async (count: number) => {
    await receive(
      pod,
      ...Array.from({ length: count }, (_, index) =>
        publicMessage(
          spammers[0] as RemotePerson,
          postBy(spammers[0] as RemotePerson, { text: `Post ${index} about nothing in particular, ${newGuid()}` }),
        ),
      ),
    )
    return statementsDuring(() => findClusters(pod), 'worker')
  }
  expect(await search(40)).toBe(await search(2))
})
