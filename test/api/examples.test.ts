import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createComment } from '../../src/domain/interactions/comments.js'
import { makeWaitingExports } from '../../src/federation/archives/make-exports.js'
import { describeApi } from '../../src/web/openapi/document.js'
import { EXAMPLE, OPERATION_EXAMPLES } from '../../src/web/openapi/examples.js'
import { addImport } from '../support/databases/rows.js'
import { plain } from '../support/files/pictures.js'
import { formOf, type PhotoPod, startPhotoPod } from '../support/pods/photo-pod.js'

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly example?: unknown }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example?: object }>> }
  readonly responses: Readonly<Record<string, { readonly description: string }>>
}

const { paths } = (await describeApi()) as { paths: Record<string, Record<string, Operation>> } // what it writes
const operations = Object.entries(paths)
  .filter(([path]) => path.startsWith('/api/v1/'))
  .flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })))

describe('examples of the API description', () => {
  let pod: PhotoPod
  beforeAll(async () => {
    pod = await startPhotoPod()
    await makeExampleObjects(pod)
  })
  afterAll(() => pod.close())

  it('exist for every operation of the client API and for no other', () => {
    expect(Object.keys(OPERATION_EXAMPLES).sort()).toEqual(operations.map(({ operationId }) => operationId).sort())
  })

  it.each(Object.keys(OPERATION_EXAMPLES).filter((id) => id !== 'listen'))('%s succeeds', async (id) => {
    const operation = operations.find(({ operationId }) => operationId === id)
    if (operation === undefined) throw new Error(`${id} is not an operation.`)

    const { status } = await pod.call({ ...requestOf(operation), token: pod.alice.token }) // throws if it is undocumented

    expect(String(status)).toMatch(/^2/)
  })

  it('listen succeeds', async () => {
    const address = await pod.app.listen({ port: 0, host: '127.0.0.1' })
    const stop = new AbortController()
    const headers = { authorization: `Bearer ${pod.alice.token}` }

    const response = await fetch(`${address}/api/v1/streaming`, { headers, signal: stop.signal })
    stop.abort()

    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  })
})

it('describes every success in a sentence of its own', () => {
  for (const { operationId, responses } of operations) {
    for (const [status, { description }] of Object.entries(responses)) {
      if (!status.startsWith('2')) continue
      expect([operationId, description]).toEqual([operationId, expect.stringMatching(/^[A-Z].{3,}\.$/s)])
      expect(description).not.toContain('Default Response')
    }
  }
})

/** The document as served, without the table of examples. */
function requestOf({ method, path, parameters = [], requestBody }: (typeof operations)[number]) {
  const given = parameters.filter(({ example }) => example !== undefined)
  const query = given.filter((each) => each.in === 'query').map(({ name, example }) => `${name}=${example}`)
  const place = path
    .replace('/api/v1', '')
    .replace(/\{([^}]+)\}/g, (_text, name) => String(given.find((each) => each.name === name)?.example))
  const body = requestBody?.content['application/json']?.example
  const upload = requestBody?.content['multipart/form-data'] && picture
  return {
    method: method.toUpperCase() as 'POST',
    path: query.length === 0 ? place : `${place}?${query.join('&')}`,
    ...(body !== undefined && { body }),
    ...(upload !== undefined && { body: upload.body, headers: { 'content-type': upload.type } }),
  }
}

const file = await plain(40, 20).png().toBuffer()
const picture = formOf([{ name: 'image', value: file, fileName: 'picture.png' }])

/** Gives the objects of a test pod the guids and ids that the examples name. */
async function makeExampleObjects(pod: PhotoPod): Promise<void> {
  const { alice, bob, eve } = pod
  pod.startWorkers()
  const photo = (await pod.upload(alice, file, '?pending=true')).body.guid
  const conversation = (await alice.post('/conversations', { subject: 's', body: 'b', recipients: [bob.guid] })).body
    .guid
  const message = (await bob.post(`/conversations/${conversation}/messages`, { body: 'Hello' })).body.guid
  const comment = await createComment(pod.pod, alice.viewer, { postGuid: pod.bobPoll, text: 'Hello' })
  await createComment(pod.pod, bob.viewer, { postGuid: pod.alicePost, text: 'Hello' })
  const [notification] = (await alice.get('/notifications?type=commented_on_post')).body

  expect((await alice.post('/user/exports', { kind: 'photos' })).status).toBe(202)
  await pod.pod.db('exports').update({ uid: EXAMPLE.exportId })
  await makeWaitingExports(pod.pod, new AbortController().signal)
  await addImport(pod.pod, { uid: EXAMPLE.importId, userId: alice.viewer.userId })

  const rename = async (table: string, from: string, to: string) => {
    expect(await pod.pod.db(table).where({ guid: from }).update({ guid: to })).toBe(1)
  }
  await rename('people', alice.guid, EXAMPLE.ownGuid)
  await rename('people', bob.guid, EXAMPLE.contactGuid)
  await rename('people', eve.guid, EXAMPLE.personGuid)
  await rename('posts', pod.bobPoll, EXAMPLE.postGuid)
  await rename('posts', pod.alicePost, EXAMPLE.ownPostGuid)
  await rename('comments', comment.guid, EXAMPLE.commentGuid)
  await rename('photos', photo, EXAMPLE.photoGuid)
  await rename('conversations', conversation, EXAMPLE.conversationGuid)
  await rename('messages', message, EXAMPLE.messageGuid)
  await rename('notifications', notification.guid, EXAMPLE.notificationGuid)
}
