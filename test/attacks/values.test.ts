import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createComment } from '../../src/domain/interactions/comments.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import type { ApiPerson } from '../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../support/pods/sample-api-pod.js'
import { type ApiOperation, readOperations, TELLING, tryCall } from './api-operations.js'

let api: SampleApiPod
let alice: ApiPerson
let operations: readonly ApiOperation[]
let parameters: Readonly<Record<string, string | number>>
beforeAll(async () => {
  operations = await readOperations()
  api = await startSampleApiPod({ environment: { WRITE_LIMIT: '0' } })
  ;({ alice } = api)
  const comment = await createComment(api.pod, alice.viewer, { postGuid: api.alicePost, text: 'Mine' })
  const conversation = await alice.post('/conversations', { subject: 'x', body: 'x', recipients: [api.bob.guid] })
  parameters = {
    post_guid: api.bobPost,
    comment_guid: comment.guid,
    person_guid: api.bob.guid,
    guid: conversation.body.guid,
    id: api.friendsAspectId,
    aspect_id: api.friendsAspectId,
    photo_guid: newGuid(),
    notification_id: 1,
    name: 'tea',
  }
})
afterAll(() => api.close())

type Answer = Awaited<ReturnType<typeof tryCall>>

/** It was understood, or turned down in so many words: nothing broke. */
function expectHandled(operation: ApiOperation, value: unknown, { statusCode, body }: Answer): void {
  const call = `${operation.method} ${operation.path} with ${JSON.stringify(value)}`
  expect([call, statusCode < 500]).toEqual([call, true])
  if (statusCode >= 400) expect([call, body]).toEqual([call, expect.not.stringMatching(TELLING)])
}

function expectRefused(operation: ApiOperation, value: unknown, answer: Answer, ...statuses: number[]): void {
  expectHandled(operation, value, answer)
  const call = `${operation.method} ${operation.path} with ${JSON.stringify(value)}`
  const accepted = operation.path.startsWith('/api/admin/') ? [...statuses, 403] : statuses // the attacker has no role
  expect([call, accepted]).toEqual([call, expect.arrayContaining([answer.statusCode])])
}

const call = (operation: ApiOperation, attempt: object) =>
  tryCall(api.app, operation, { token: alice.token, parameters, ...attempt })

/** Rows of everything that clients write. */
async function readStored(): Promise<string> {
  const tables = ['posts', 'comments', 'messages', 'conversations', 'aspects', 'profiles', 'reports', 'tags', 'polls']
  const counts = await Promise.all(tables.map((table) => api.pod.db(table).count()))
  return JSON.stringify(counts)
}

describe('S50: a text', () => {
  const textFields = () =>
    operations.flatMap((operation) =>
      Object.entries(operation.fields)
        .filter(([, type]) => [type].flat().includes('string'))
        .map(([name]) => ({ operation, name })),
    )

  it.each([
    ['a NUL', 'a\0b'],
    ['a control character', 'a\u0007b'],
    ['an escape', '\u001b[2J'],
    ['half a pair', 'a\ud800b'],
    ['the other half', '\udfff'],
    ['a character that is none', '\uffff'],
  ])('with %s is refused in every field of every call, and nothing of it is stored', async (_what, text) => {
    const before = await readStored()
    expect(textFields().length).toBeGreaterThan(10)
    for (const { operation, name } of textFields()) {
      const answer = await call(operation, { body: { [name]: text } })
      expectRefused(operation, { [name]: text }, answer, 400, 404, 422)
    }
    expect(await readStored()).toBe(before)
  })

  it('counts in code points', async () => {
    const fits = await alice.post(`/posts/${api.alicePost}/comments`, { body: '🦊'.repeat(65_535) })
    const doesNot = await alice.post(`/posts/${api.alicePost}/comments`, { body: '🦊'.repeat(65_536) })

    expect([fits.status, doesNot.status]).toEqual([201, 422])
  })
})

describe('S51: in the place of a guid', () => {
  it.each([
    ...['short', 'a'.repeat(256), 'a'.repeat(2_000), "'%20or%201=1--", '%00', '%ff', '%ED%A0%80'],
    ...['..%2f..%2fetc', '%2e%2e%2f', '*', '%25', '-', 'null', 'undefined', '[object%20Object]'],
    ...['%F0%9F%A6%8A'.repeat(20), 'x%0d%0aset-cookie:%20a=b', ';', '%20', ':guid'],
  ])('%s is nothing', async (guid) => {
    for (const operation of operations) {
      for (const name of operation.pathParameters.filter((parameter) => /guid$/.test(parameter))) {
        const answer = await call(operation, { parameters: { ...parameters, [name]: guid } })
        expectRefused(operation, guid, answer, 400, 404, 410, 422)
        expect(answer.headers['set-cookie']).toBeUndefined()
      }
    }
  })
})

describe('S52: in the place of a number', () => {
  it.each([
    '1.5',
    '1e3',
    '1e100',
    '-1',
    '0',
    '2147483648',
    '9223372036854775808',
    '9'.repeat(300),
    '0x1',
    '+1',
    'NaN',
    '1%20',
    '1;',
    '1%00',
  ])('%s in a path is nothing', async (number) => {
    const numbered = operations.filter(({ pathParameters }) =>
      pathParameters.some((name) => ['id', 'aspect_id'].includes(name)),
    )
    expect(numbered.length).toBeGreaterThan(4)
    for (const operation of numbered) {
      const answer = await call(operation, { parameters: { ...parameters, id: number, aspect_id: number } })
      expectRefused(operation, number, answer, 400, 404, 410, 422)
    }
  })

  it.each([1.5, '1.5', 1e100, -1, 0, null, [1], {}, true, 2 ** 31, 2 ** 53, 2 ** 63, Number.MIN_VALUE])(
    '%j in a body is nothing',
    async (number) => {
      const vote = await alice.post(`/posts/${api.bobPoll}/vote`, { poll_answer: number })

      expect([400, 404, 422]).toContain(vote.status)
      expect(await api.pod.db('pollParticipations').count()).toEqual([{ count: 0 }])
    },
  )
})

describe('S53: in the place of a time', () => {
  it.each([
    ...['now', 'infinity', '-infinity', 'yesterday', 'epoch', '2023-02-30T00:00:00Z', '9999999-01-01', '0'],
    ...["2024-01-01'", '2024-13-01T00:00:00Z', '2024-01-01T25:00:00Z', '٢٠٢٤-01-01', '-271821-04-20T00:00:00Z', ''],
  ])('%j is refused, or taken as none', async (time) => {
    for (const operation of operations.filter(({ method }) => method === 'GET')) {
      for (const name of operation.queryParameters.filter((parameter) =>
        /^(before|after|only_after)$/.test(parameter),
      )) {
        const answer = await call(operation, { query: `${name}=${encodeURIComponent(time)}` })
        expectHandled(operation, time, answer)
        if (time !== '' && time !== '2023-02-30T00:00:00Z') expectRefused(operation, time, answer, 400, 404, 422)
      }
    }
  })

  it.each(['1984-02-30', 'now', '1984-13-01', '0000-00-00', '99999-01-01', '1984', [1984], { year: 1984 }, 5, true])(
    '%j is rejected as a birthday',
    async (birthday) => {
      expect((await alice.patch('/user', { birthday })).status).toBe(400)
    },
  )
})

describe('S54: a parameter', () => {
  it.each([
    ...[
      'per_page=5&per_page=6',
      'per_page[]=5',
      'per_page[a]=5',
      'per_page=1.5',
      'per_page=NaN',
      'per_page=x',
      'per_page=1e9',
    ],
    ...[
      'page=1&page=2',
      'page[]=2',
      'page=NaN',
      'page=9'.padEnd(40, '9'),
      'type=nothing',
      'type=x&type=y',
      'types=__proto__',
    ],
    ...[
      'before=x&before=y',
      '__proto__[a]=1',
      'constructor=1',
      '%00=1',
      'a=%00',
      'before_id=x',
      'before_id=-1',
      'before_id=1e99',
    ],
  ])('%s breaks nothing', async (query) => {
    for (const operation of operations.filter(({ method }) => method === 'GET')) {
      expectHandled(operation, query, await call(operation, { query }))
    }
  })

  it.each(['-1', '0', '101', '1000000000'])('per_page=%s gives one to a hundred items', async (number) => {
    await api.pod.db.raw(
      `insert into posts (guid, author_id, type, public, text) select md5(n::text || ?), ?, 'StatusMessage', true, 'x' from generate_series(1, 120) n`,
      [number, api.dan.viewer.personId],
    )
    const { status, body } = await alice.get(`/users/${api.dan.guid}/posts?per_page=${number}`)

    expect(status).toBe(200)
    expect(body).toHaveLength(Number(number) > 100 ? 100 : 1)
  })

  it('far beyond the last page is an empty list', async () => {
    const { status, body } = await alice.get('/aspects?page=1000000')

    expect([status, body]).toEqual([200, []])
  })
})

describe('S55: texts that look like SQL', () => {
  const statements = [
    "'; drop table posts; --",
    "' or '1'='1",
    '" or ""="',
    "') union select password_hash from user_secrets --",
    '1; update users set role = $$admin$$',
    "\\'; select pg_sleep(20) --",
    '%',
    '_',
    '%%%',
    '$1',
    '?',
    ':name',
    '{{7*7}}',
  ]

  it.each(statements)('%s is a text like any other, in every parameter', async (text) => {
    const tables = await api.pod.db('pg_tables').where({ schemaname: 'public' }).orderBy('tablename').pluck('tablename')
    const users = await api.pod.db('users').orderBy('id').select('id', 'role', 'username')
    const encoded = encodeURIComponent(text)

    for (const operation of operations) {
      for (const name of operation.pathParameters) {
        expectHandled(operation, text, await call(operation, { parameters: { ...parameters, [name]: encoded } }))
      }
      for (const name of operation.queryParameters) {
        expectHandled(operation, text, await call(operation, { query: `${name}=${encoded}` }))
      }
      if (operation.method === 'DELETE') continue
      for (const name of Object.keys(operation.fields)) {
        expectHandled(operation, text, await call(operation, { body: { [name]: text } }))
      }
    }
    expect(
      await api.pod.db('pg_tables').where({ schemaname: 'public' }).orderBy('tablename').pluck('tablename'),
    ).toEqual(tables)
    expect(await api.pod.db('users').orderBy('id').select('id', 'role', 'username')).toEqual(users)
  })

  it.each(['%', '_', '%25', '%%', '\\%'])('%s matches only its literal characters in people and tags', async (text) => {
    for (const path of ['/search/users?name_or_handle=', '/search/tags?query=']) {
      const { status, body } = await alice.get(`${path}${encodeURIComponent(text)}`)
      expect([200, 422]).toContain(status)
      for (const found of status === 200 ? body : []) expect(JSON.stringify(found)).toContain(text)
    }
  })
})

describe('S56: displayed content', () => {
  const markup = '"><svg onload=alert(1)>\'&<script>'
  const naked = /<svg|<script>alert|onload=alert\(1\)>/

  it('of a person or a post on a page is text', async () => {
    await api.bob.editProfile({
      firstName: '<script>alert(1)',
      lastName: `"'&<svg onload>`,
      bio: markup,
      publicDetails: true,
    })
    const guid = await publish(api, api.bob, {
      text: `${markup} [x](javascript:alert(1)) ![x](data:text/html,x)`,
      public: true,
    })

    for (const url of [`/hcard/users/${api.bob.guid}`, `/people/${api.bob.guid}`, `/posts/${guid}`, '/']) {
      const answer = await api.app.inject(url)
      expect([url, answer.statusCode]).toEqual([url, 200])
      expect(answer.body).not.toMatch(/<svg|<script>alert|href="javascript:|src="data:text/i)
      expect(answer.headers['content-security-policy']).toContain("default-src 'none'")
      expect(answer.headers['x-content-type-options']).toBe('nosniff')
      expect(answer.headers['x-frame-options']).toMatch(/deny/i)
    }
  })

  it('in the API is JSON with the JSON media type', async () => {
    for (const operation of operations.filter(({ method }) => method === 'GET')) {
      const answer = await call(operation, {})
      expect(answer.headers['content-type']).toMatch(/^application\/json/)
      expect(answer.headers['x-content-type-options']).toBe('nosniff')
    }
  })

  it('on a page that repeats its query parameters is text', async () => {
    for (const url of [
      '/people?q=',
      '/users/sign_in?request=',
      '/link?q=',
      '/users/sign_up?invitation=',
      '/nothing/',
    ]) {
      const { body } = await api.app.inject(`${url}${encodeURIComponent(markup)}`)
      expect([url, naked.test(body)]).toEqual([url, false])
    }
  })

  it('as the avatar of a remote person has an http or https URL', async () => {
    const eve = await addRemotePerson(api.pod, 'eve@elsewhere.example')
    for (const imageUrl of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', '"><svg onload>']) {
      await api.pod.db('profiles').where({ personId: eve.id }).update({ imageUrl, imageUrlMedium: imageUrl })
      await api.pod.db('people').where({ id: eve.id }).update({ avatarUrl: imageUrl })
      const { text } = await alice.get(`/users/${eve.guid}`)
      for (const page of [text, (await api.app.inject(`/people/${eve.guid}`)).body]) {
        expect(page).not.toMatch(/(src|href)="(javascript|data|file):|<svg onload/)
      }
    }
  })
})

describe('S57: 64 KiB of', () => {
  it.each([
    ...[
      '@{',
      '@{@{',
      '@{a@b',
      '@{a; ',
      '#',
      '#a#',
      '[',
      '![',
      '[]( ',
      '](',
      '<',
      '&',
      '*',
      '_',
      '**_',
      '`',
      '> ',
      '\n',
      ' \n',
    ],
    ...[
      'http://',
      'http://a.',
      'diaspora://',
      'diaspora://a@b/post/',
      'a@',
      'a.',
      '((',
      '\\',
      '1. ',
      '- ',
      '|',
      '~~',
      '🦊',
      'é\u0301',
    ],
  ])('%j is written, shown and found in a moment', async (part) => {
    const text = part.repeat(Math.floor(65_535 / [...part].length))
    const guid = await publish(api, api.carol, {
      text: `x ${text}`.slice(0, 65_000).replace(/[\ud800-\udbff]$/, ''),
      public: true,
    })

    const comment = await alice.post(`/posts/${guid}/comments`, {
      body: `x${text}`.slice(0, 65_000).replace(/[\ud800-\udbff]$/, ''),
    })
    const page = await api.app.inject(`/posts/${guid}`)
    await alice.get(`/search/users?name_or_handle=${encodeURIComponent(text.slice(0, 200))}`)

    expect([comment.status, page.statusCode]).toEqual([201, 200])
  })
})
