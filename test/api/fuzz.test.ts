import { writeFile } from 'node:fs/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { describeApi } from '../../src/web/openapi/document.js'
import { HTTP_LIMITS } from '../../src/web/server/limits.js'
import { addImport } from '../support/databases/rows.js'
import { type ApiResponse, expectError } from '../support/pods/api-pod.js'
import { type PhotoPod, startPhotoPod } from '../support/pods/photo-pod.js'
import { aspectOf, publish } from '../support/pods/sample-api-pod.js'
import { callOf, type Pools } from './concrete-requests.js'
import {
  type ApiCall,
  type Call,
  type Document,
  type GeneratedRequest,
  type Operation,
  requestsOf,
} from './generated-requests.js'

/** `FUZZ_REQUESTS=20000 FUZZ_SEED=5 npx vitest run test/api/fuzz.test.ts`; a failed run reports its seed. */
const REQUESTS = Number(process.env['FUZZ_REQUESTS'] ?? 1_000)
const SEED = process.env['FUZZ_SEED']
/** Number of concurrent requests. */
const CONCURRENT_REQUESTS = 20
const HANGS_AFTER = 60_000
/** Further requests of a call that has not succeeded, or not failed validation, in a short run. */
const FURTHER_REQUESTS = 200

const PLACES = 8

let api: PhotoPod
let document: Document
let pools: Pools
beforeAll(async () => {
  // A machine that has other things to do is no fault of the pod.
  const limits = { ...HTTP_LIMITS, eventLoopDelayMs: HANGS_AFTER }
  api = await startPhotoPod({ limits, environment: { DATABASE_POOL: '20', WRITE_LIMIT: '0' } })
  api.startWorkers()
  document = (await describeApi()) as Document // tested on its own
  pools = await openPools()
  for (let place = 0; place < PLACES; place += 1) await renew()
})
afterAll(() => api.close())

async function openPools(): Promise<Pools> {
  const { alice, bob, carol, dan, eve } = api
  const everybody = [alice, bob, carol, dan, eve]
  const askers = [...everybody, alice, alice, bob, alice]
  const few = [await alice.with(), await bob.with('private:read', 'interactions', 'conversations', 'notifications')]
  return {
    tokens: [...askers, ...few].map(({ token }) => token),
    own_guid: [...askers, alice, bob].map(({ guid }) => guid),
    person_guid: [...everybody, dan, eve, dan].map(({ guid }) => guid),
    tag: ['tea', 'cats', '#TEA', '<3', 'ärger', 'nsfw', '123', 'a_b-c'],
    post_guid: [],
    comment_guid: [],
    photo_guid: [],
    poll_answer: [],
    conversation_guid: [],
    message_guid: [],
    notification_id: [],
    export_id: [],
    import_id: [],
    aspect_id: [],
  }
}

let renewed = 0

/** Most things can be done once only, and some are gone then: now and then there is something new to do them with. */
async function renew(): Promise<void> {
  const { alice, bob, carol } = api
  const place = renewed % PLACES
  renewed += 1
  await beFriends()

  const post = await newPost(place)
  pools.post_guid[place] = post
  pools.comment_guid[place] = (await bob.post(`/posts/${post}/comments`, { body: 'Yes' })).body.guid
  await carol.post(`/posts/${post}/comments`, { body: 'No' })
  if (place % 2 === 0) await likeAll(post, pools.comment_guid[place])
  pools.notification_id[place] = (await alice.get('/notifications?per_page=1')).body[0].guid
  const conversation = { subject: 'Hello', body: 'Hello Bob', recipients: [bob.guid] }
  const { guid } = (await alice.post('/conversations', conversation)).body
  pools.conversation_guid[place] = guid
  pools.message_guid[place] = (await bob.post(`/conversations/${guid}/messages`, { body: 'Hello Alice' })).body.guid
  pools.photo_guid[place] = await newPhoto()
  pools.export_id[place] = await newExport()
  pools.import_id[place] ??= await newImport()
  pools.aspect_id[place] = await newAspect(place)
  await alice.post('/tag_followings', { name: pools.tag[place] })
}

/** Makes all people share with each other, and lets alice and bob block only eve, so that an unblock can succeed. */
async function beFriends(): Promise<void> {
  const { alice, bob, carol, dan, eve, pod } = api
  const all = [alice, bob, carol, dan, eve].map(({ viewer }) => viewer)
  await pod.db('blocks').whereIn('userId', [alice.viewer.userId, bob.viewer.userId]).delete()
  const pairs = all.flatMap(({ userId, personId: own }) =>
    all.flatMap(({ personId }) => (personId === own ? [] : [{ userId, personId, sharing: true, receiving: true }])),
  )
  await pod.db('contacts').insert(pairs).onConflict(['userId', 'personId']).merge()
  const blocked = [alice, bob].map(({ viewer }) => ({ userId: viewer.userId, personId: eve.viewer.personId }))
  await pod.db('blocks').insert(blocked)
}

/** Each of these places has its kind: Bob's, Bob's for Alice alone, or Alice's with a poll. */
async function newPost(place: number): Promise<string> {
  const { alice, bob, pod } = api
  if (place === 0) return publish(api, bob, { text: 'Good evening, @{alice@pod.example} #tea', public: true })
  if (place === 1)
    return publish(api, bob, { text: 'Between us', public: false, aspectIds: [await aspectOf(api, bob, 'Friends')] })
  const poll = { question: 'Noon?', answers: ['yes', 'no'] }
  const post = await publishPost(pod, alice.viewer, { text: 'Lunch? #cats', public: true, poll })
  const answers = pod.db('pollAnswers').join('polls', 'polls.id', 'pollId').where({ postId: post.id })
  pools.poll_answer[place] = (await answers.first('pollAnswers.id')).id
  return post.guid
}

async function likeAll(post: string, comment: string | number | undefined): Promise<void> {
  await api.alice.post(`/posts/${post}/likes`)
  await api.alice.post(`/posts/${post}/comments/${comment}/likes`)
}

async function newPhoto(): Promise<string> {
  const photo = { guid: newGuid(), name: `${newGuid()}.jpg`, pending: true, public: false }
  await api.pod.db('photos').insert({ ...photo, authorId: api.alice.viewer.personId })
  return photo.guid
}

/** A finished export of two days ago, so that others can be requested. */
async function newExport(): Promise<string> {
  const { db, pictures } = api.pod
  const uid = newGuid()
  const path = await pictures.exportDraft(uid)
  await writeFile(path, 'PK')
  await pictures.storeExport(uid, { path, bytes: 2, sha256: '' })
  const { userId } = api.alice.viewer
  await db('exports').where({ userId }).whereNotIn('uid', pools.export_id).delete()
  const createdAt = new Date(Date.now() - 2 * 86_400_000)
  await db('exports').insert({ uid, userId, kind: 'photos', state: 'ready', bytes: 2, createdAt })
  return uid
}

async function newImport(): Promise<string> {
  const uid = newGuid()
  await addImport(api.pod, { uid, userId: api.alice.viewer.userId })
  return uid
}

/** In every other one is who stands in the same place of the people. */
async function newAspect(place: number): Promise<number> {
  const { id } = (await api.alice.post('/aspects', { name: `Aspect ${renewed}` })).body
  const person_guid = pools.person_guid[place]
  if (place % 2 === 1) await api.alice.post(`/aspects/${id}/contacts`, { person_guid })
  return id
}

it(
  `${REQUESTS} generated requests get only responses that the OpenAPI document allows`,
  async () => {
    const answers = new Map<string, Set<number>>()
    const calls = requestsOf(document)
    const requests = fc.oneof(...calls.map(({ arbitrary }) => arbitrary))
    const together = fc.array(requests, { minLength: CONCURRENT_REQUESTS, maxLength: CONCURRENT_REQUESTS })

    const seed = SEED === undefined ? 20_261_130 : Number(SEED)
    const answered = fc
      .asyncProperty(together, async (all) => {
        await Promise.all(all.map(async (request) => keep(answers, request, await send(request))))
      })
      .beforeEach(renew)
    await fc.assert(answered, {
      numRuns: Math.ceil(REQUESTS / CONCURRENT_REQUESTS),
      seed,
      endOnFailure: true,
      reporter: tell,
    })

    // The run proves little if a call never succeeds or never fails validation.
    const uncovered = () => calls.filter((call) => !isCovered(call, answers.get(callName(call.method, call.operation))))
    for (const call of uncovered()) await repeat(call, answers, seed)
    expect(uncovered().map(({ method, operation }) => callName(method, operation))).toEqual([])
  },
  30 * 60_000,
)

it('the check reports a response that the description does not allow', async () => {
  await expect(api.call({ path: '/../docs/json', token: api.alice.token })).rejects.toThrow('answered 200')
})

/** Sends requests of one call until it has succeeded and has failed validation. */
async function repeat(call: Call, answers: Map<string, Set<number>>, seed: number): Promise<void> {
  const requests = fc.sample(call.arbitrary, { numRuns: FURTHER_REQUESTS, seed })
  for (const [index, request] of requests.entries()) {
    if (index % CONCURRENT_REQUESTS === 0) await renew()
    keep(answers, request, await send(request))
    if (isCovered(call, answers.get(callName(call.method, call.operation)))) return
  }
}

function isCovered({ operation }: Call, statuses = new Set<number>()): boolean {
  const hasOneOf = (wanted: readonly number[]) => wanted.some((status) => statuses.has(status))
  return hasOneOf([200, 201, 202, 204]) && (hasOneOf([400, 422]) || !takesSomething(operation))
}

function takesSomething({ parameters = [], requestBody }: Operation): boolean {
  return requestBody !== undefined || parameters.some((parameter) => parameter.in === 'query')
}

/** Without the requests themselves, some of which are a megabyte long. */
function tell({ failed, seed, numRuns, errorInstance }: fc.RunDetails<[GeneratedRequest[]]>): void {
  if (!failed) return
  throw new Error(`With FUZZ_SEED=${seed}, after ${numRuns * CONCURRENT_REQUESTS} requests`, { cause: errorInstance })
}

/** Throws on server errors and timeouts; the call itself throws on undocumented responses. */
async function send(request: GeneratedRequest): Promise<ApiResponse> {
  const call = callOf(request, pools)
  const answer = await orTooLate(api.call(call), call)
  if (answer.status >= 500) throw new Error(`${nameOf(call)} answered ${answer.status}`)
  if (answer.status >= 400) expectError(answer, answer.status)
  return answer
}

async function orTooLate<Result>(work: Promise<Result>, call: ApiCall): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${nameOf(call)} is not answered`)), HANGS_AFTER)
  })
  return Promise.race([work, tooLate]).finally(() => clearTimeout(timer))
}

function nameOf({ method, path, body = '' }: ApiCall): string {
  return `${method} ${path.slice(0, 500)} ${String(body).slice(0, 500)}`
}

/** A request that came by another method than its call has counts for none. */
function callName(method: string, { operationId }: Pick<Operation, 'operationId'>): string {
  return `${method.toUpperCase()} ${operationId}`
}

function keep(answers: Map<string, Set<number>>, request: GeneratedRequest, { status, body }: ApiResponse): void {
  const name = callName(request.method, request)
  answers.set(name, (answers.get(name) ?? new Set()).add(status))
  if (name === 'POST createComment' && status === 201) pools.comment_guid[request.place % PLACES] = body.guid
}
