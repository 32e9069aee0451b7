import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SCOPES } from '../../src/domain/accounts/scopes.js'
import { mintToken } from '../../src/domain/accounts/tokens.js'
import { blockForUser } from '../../src/domain/people/blocks.js'
import type { ApiCall } from '../support/pods/api-pod.js'
import { type SampleApiPod, startSampleApiPod } from '../support/pods/sample-api-pod.js'

const UNKNOWN = '0'.repeat(32)

let api: SampleApiPod
let comment: string
let commentOfBob: string
beforeAll(async () => {
  api = await startSampleApiPod()
  comment = (await api.alice.post(`/posts/${api.alicePost}/comments`, { body: 'One' })).body.guid
  commentOfBob = (await api.bob.post(`/posts/${api.bobPost}/comments`, { body: 'Two' })).body.guid
})
afterAll(() => api.close())

/** Sends the request with a token of this dialect. */
async function send(
  request: Pick<ApiCall, 'method' | 'path' | 'body'>,
  apiDialect: 'standard' | 'diaspora',
  user = 'alice',
) {
  const { accessToken } = await mintToken(api.pod, user, { scopes: SCOPES, lifetime: 60, apiDialect })
  return (await api.call({ ...request, token: accessToken })).body
}

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'
type Refused = readonly [method: Method, path: string, body: object | undefined, code: number, message: string]
type Repeated = readonly [path: string, body: object | undefined, message: string]

/** Replaces the names of the sample pod in a path by their guids. */
function withGuids(path: string): string {
  const { alicePost, bobPost, bobPoll, carolPoll, dan, eve } = api
  const guids: Record<string, string> = {
    POST_OF_ALICE: alicePost,
    POST_OF_BOB: bobPost,
    POLL_OF_BOB: bobPoll,
    POLL_OF_CAROL: carolPoll,
    DAN: dan.guid,
    EVE: eve.guid,
    UNKNOWN,
  }
  return path.replace(/[A-Z]+(_OF_[A-Z]+)?/g, (name) => guids[name] ?? (name === 'COMMENT' ? comment : commentOfBob))
}

const POST_MISSING = 'Post with provided guid could not be found'
const POST_OR_COMMENT_MISSING = 'Post or comment with provided guid could not be found'
const PERSON_MISSING = 'User with provided guid could not be found'
const CONVERSATION_MISSING = 'Conversation with provided guid could not be found'
const CONVERSATION_INVALID = "Couldn't accept or process the conversation"

/** The tables "Errors" of the published documentation, by operation. */
const documented: readonly Refused[] = [
  ['PATCH', '/user', { birthday: 'soon' }, 400, 'Wrong value of a parameter'],
  ['GET', '/users/UNKNOWN', undefined, 404, PERSON_MISSING],
  ['GET', '/users/UNKNOWN/posts', undefined, 404, PERSON_MISSING],
  ['GET', '/users/UNKNOWN/photos', undefined, 404, PERSON_MISSING],
  ['POST', '/users/UNKNOWN/block', undefined, 404, PERSON_MISSING],
  ['DELETE', '/users/DAN/block', undefined, 410, "Block doesn't exist"],
  ['GET', '/posts/UNKNOWN', undefined, 404, POST_MISSING],
  ['POST', '/posts', { public: true }, 422, 'Failed to create the post'],
  ['POST', '/posts', { body: 'No audience' }, 422, 'Failed to create the post'],
  ['DELETE', '/posts/POST_OF_BOB', undefined, 403, 'Not allowed to delete the post'],
  ['GET', '/posts/UNKNOWN/comments', undefined, 404, POST_MISSING],
  ['POST', '/posts/POST_OF_BOB/comments', { body: ' ' }, 422, "Couldn't accept or process the comment"],
  ['POST', '/posts/POST_OF_BOB/comments', {}, 422, "Couldn't accept or process the comment"],
  ['DELETE', '/posts/POST_OF_BOB/comments/UNKNOWN', undefined, 410, 'Comment not found for the given post'],
  ['DELETE', '/posts/POST_OF_BOB/comments/COMMENT_OF_BOB', undefined, 403, 'User not allowed to delete the comment'],
  ['POST', '/posts/POST_OF_BOB/comments/UNKNOWN/report', { reason: 'x' }, 404, 'Comment not found for the given post'],
  ['GET', '/posts/UNKNOWN/likes', undefined, 404, POST_MISSING],
  ['DELETE', '/posts/POST_OF_BOB/likes', undefined, 410, "Like doesn't exist"],
  ['GET', '/posts/POST_OF_ALICE/comments/UNKNOWN/likes', undefined, 404, POST_OR_COMMENT_MISSING],
  ['POST', '/posts/UNKNOWN/comments/UNKNOWN/likes', undefined, 404, POST_OR_COMMENT_MISSING],
  ['DELETE', '/posts/POST_OF_ALICE/comments/UNKNOWN/likes', undefined, 404, POST_OR_COMMENT_MISSING],
  ['DELETE', '/posts/POST_OF_ALICE/comments/COMMENT/likes', undefined, 410, "Like doesn't exist"],
  ['POST', '/posts/POST_OF_ALICE/reshares', undefined, 422, 'User is not allowed to reshare'],
  ['POST', '/posts/POST_OF_BOB/report', {}, 422, 'Request invalid, such as a missing reason'],
  ['POST', '/posts/POST_OF_BOB/mute', undefined, 410, 'Was not subscribed to this post'],
  ['POST', '/posts/POST_OF_BOB/hide', { hide: false }, 410, 'Post is not hidden'],
  ['POST', '/posts/POST_OF_BOB/hide', {}, 422, 'Request invalid'],
  ['POST', '/posts/POLL_OF_BOB/vote', { poll_answer: 0 }, 422, 'The request was invalid, such as a wrong id given'],
  ['GET', '/conversations/UNKNOWN', undefined, 404, CONVERSATION_MISSING],
  ['PATCH', '/conversations/UNKNOWN', { read: true }, 404, CONVERSATION_MISSING],
  ['DELETE', '/conversations/UNKNOWN', undefined, 404, CONVERSATION_MISSING],
  ['GET', '/conversations/UNKNOWN/messages', undefined, 404, CONVERSATION_MISSING],
  ['POST', '/conversations', { subject: 'Tea' }, 422, CONVERSATION_INVALID],
  ['POST', '/conversations/UNKNOWN/messages', { body: 'x' }, 404, CONVERSATION_MISSING],
  ['DELETE', '/tag_followings/unknown', undefined, 410, 'Tag was not followed'],
]

/** Requests that succeed once. */
const repeated: readonly Repeated[] = [
  ['/posts/POST_OF_BOB/likes', undefined, 'Like already exists'],
  ['/posts/POST_OF_ALICE/comments/COMMENT/likes', undefined, 'Like already exists'],
  ['/posts/POLL_OF_BOB/reshares', undefined, 'Reshare already exists'],
  ['/posts/POST_OF_BOB/report', { reason: 'x' }, 'Post has already been reported'],
  ['/posts/POST_OF_ALICE/comments/COMMENT/report', { reason: 'x' }, 'This item already has been reported by this user'],
  ['/posts/POLL_OF_CAROL/subscribe', undefined, 'Already subscribed'],
  ['/posts/POLL_OF_CAROL/hide', { hide: true }, 'Post is already hidden'],
  ['/tag_followings', { name: 'tea' }, 'Tag was already followed'],
  ['/users/EVE/block', undefined, 'Block already exists'],
]

describe('the message of an error', () => {
  it.each(documented)('of %s %s with %j is the documented one in the dialect diaspora only', async (...refused) => {
    const [method, path, body, code, message] = refused
    const request = { method, path: withGuids(path), ...(body && { body }) }

    const diaspora = await send(request, 'diaspora')
    const standard = await send(request, 'standard')

    expect(diaspora).toMatchObject({ code, message })
    expect(standard).toEqual({ ...diaspora, message: expect.any(String) })
    expect(standard.message).not.toBe(message)
  })

  it.each(repeated)('of a repeated POST %s with %j is the documented one', async (path, body, message) => {
    const request = { method: 'POST', path: withGuids(path), ...(body && { body }) } as const
    await send(request, 'diaspora')

    expect(await send(request, 'diaspora')).toMatchObject({ code: 409, message })
  })

  it('about a second vote is the documented one', async () => {
    const { poll } = (await api.alice.get(`/posts/${api.bobPoll}`)).body
    const request = {
      method: 'POST',
      path: `/posts/${api.bobPoll}/vote`,
      body: { poll_answer: poll.poll_answers[0].id },
    } as const
    await send(request, 'diaspora')

    const message = 'There already was a vote recorded for this poll'
    expect(await send(request, 'diaspora')).toMatchObject({ code: 410, message })
  })

  it('about a person whom the author blocks is the documented one', async () => {
    await blockForUser(api.pod, api.alice.viewer, api.dan.guid)
    const post = (path: string, body?: object) =>
      send({ method: 'POST', path: `/posts/${api.alicePost}${path}`, ...(body && { body }) }, 'diaspora', 'dan')

    const messages = [
      (await post('/comments', { body: 'x' })).message,
      (await post('/likes')).message,
      (await post(`/comments/${comment}/likes`)).message,
    ]
    expect(messages).toEqual([
      'User is not allowed to comment',
      'User is not allowed to like',
      'User is not allowed to like',
    ])
  })

  it('about a missing scope names it in both dialects', async () => {
    const mint = (apiDialect: 'standard' | 'diaspora') =>
      mintToken(api.pod, 'alice', { scopes: ['public:modify', 'private:read'], lifetime: 60, apiDialect })
    const [standard, diaspora] = await Promise.all([mint('standard'), mint('diaspora')])
    const read = async ({ accessToken }: typeof standard) =>
      (await api.call({ path: '/user', token: accessToken })).body

    expect(await read(diaspora)).toEqual(await read(standard))
    expect((await read(diaspora)).message).toContain('insufficient_scope')
  })

  it('is the documented one for each client of a pod with CLIENT_API_DIALECT=diaspora', async () => {
    await using other = await startSampleApiPod({ environment: { CLIENT_API_DIALECT: 'diaspora' } })

    expect((await other.alice.get(`/posts/${UNKNOWN}`)).body).toMatchObject({ code: 404, message: POST_MISSING })
  })
})
