import type { FastifyPluginAsync } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Refusal } from '../../../src/domain/refusals.js'
import { QueueUnavailable } from '../../../src/jobs/queues/queue-unavailable.js'
import { openDatabase } from '../../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../../../src/persistence/database/limits.js'
import { Person } from '../../../src/persistence/models/person.js'
import { apiRoutes } from '../../../src/web/routes/api/api-routes.js'
import { buildApp } from '../../../src/web/server/app.js'
import type { RouteRefusals } from '../../../src/web/server/error-handler.js'
import { buildPod, NO_EVENT_LOOP_LIMIT, type TestPod } from '../../support/pods/build-pod.js'

const SECRET = 'a-text-that-must-stay-inside'

/** Routes that go wrong in every way there is. */
const routes: FastifyPluginAsync = async (app) => {
  await apiRoutes(app, {})
  const fail = (url: string, action: () => unknown, refusals?: RouteRefusals) =>
    app.get(url, { config: { public: true, ...(refusals && { refusals }) } }, async () => action())

  const refuse = () => {
    throw new Refusal('comment_not_found', 'There is no such comment.')
  }
  fail('/refused', refuse, { comment_not_found: 410 })
  fail('/refused-elsewhere', refuse, { comment_not_found: 404 })
  fail('/refused-unforeseen', refuse, { post_not_found: 404 })
  fail('/queue-away', () => {
    throw new QueueUnavailable(SECRET)
  })
  fail('/bug', () => {
    throw Object.assign(new TypeError(SECRET), { statusCode: 200 })
  })
  fail('/no-error', () => {
    throw SECRET
  })
  app.get('/kept', { config: { public: true } }, async (_request, reply) => {
    reply.header('cache-control', 'public, max-age=3600')
    throw new QueueUnavailable(SECRET)
  })
  fail('/nul', () => Person.query(app.services.db).findOne({ guid: 'a\0b' }))
  fail('/integer', () => app.services.db.raw('select ?::int', ['99999999999']))
  fail('/slow', () => app.services.db.raw(`set local statement_timeout = 1; select pg_sleep(10)`))
  fail('/bad-sql', () => app.services.db.raw(`select '${SECRET}' from nowhere`))
}

describe('errors', () => {
  let pod: TestPod
  beforeAll(async () => {
    pod = await buildPod({ api: routes })
  })
  afterAll(() => pod.close())

  async function ask(path: string) {
    const response = await pod.inject(`/api/v1/${path}`)
    return { response, status: response.statusCode, body: response.json() }
  }

  it('answers a refusal with the status of the route', async () => {
    expect((await ask('refused')).body).toEqual({
      code: 410,
      message: 'There is no such comment.',
      reason: 'comment_not_found',
    })
    expect((await ask('refused-elsewhere')).body).toMatchObject({ code: 404, reason: 'comment_not_found' })
  })

  it.each(['refused-unforeseen', 'bug', 'no-error', 'bad-sql'])(
    'reveals nothing about internal errors (%s)',
    async (path) => {
      const { response, status, body } = await ask(path)

      expect(status).toBe(500)
      expect(body).toEqual({ code: 500, message: 'Something went wrong on this pod.', reason: 'internal_error' })
      expect(response.headers['x-request-id']).toEqual(expect.any(String))
    },
  )

  it.each(['queue-away', 'slow'])(
    'answers 503 with Retry-After while a dependency is unavailable (%s)',
    async (path) => {
      const { response, status, body } = await ask(path)

      expect(status).toBe(503)
      expect(body).toEqual({ code: 503, message: expect.not.stringContaining(SECRET), reason: 'unavailable' })
      expect(Number(response.headers['retry-after'])).toBeGreaterThan(0)
    },
  )

  it.each(['nul', 'integer'])('answers 422 for a value the database cannot store (%s)', async (path) => {
    const { status, body } = await ask(path)

    expect(status).toBe(422)
    expect(body).toEqual({ code: 422, message: expect.any(String), reason: 'field_invalid' })
  })

  it('forbids caches to store an error, also if the route allowed it before it failed', async () => {
    const { response, status } = await ask('kept')

    expect(status).toBe(503)
    expect(response.headers['cache-control']).toBe('private, no-store')
  })

  it('shows an HTML page for an unknown path of a page', async () => {
    const response = await pod.inject('/no/such/page')

    expect(response.statusCode).toBe(404)
    expect(response.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(response.headers['cache-control']).toBe('no-store')
    expect(response.body).toContain('There is nothing here.')
    expect(response.body).not.toContain('/no/such/page')
  })
})

describe('without a database', () => {
  const nowhere = { ...WEB_DATABASE_LIMITS, url: 'postgres://nobody@127.0.0.1:9/none', applicationName: 'test' }

  it('answers 503, is live and not ready', async () => {
    await using pod = await buildPod()
    const { alice } = await pod.people('alice')
    const db = openDatabase(nowhere)
    const app = await buildApp({ ...pod.pod, db }, { limits: NO_EVENT_LOOP_LIMIT })

    const headers = { authorization: `Bearer ${alice.token}` }
    const user = await app.inject({ url: '/api/v1/user', headers })
    const ready = await app.inject('/health/ready')
    const live = await app.inject('/health/live')
    await app.close()
    await db.destroy()

    expect(user.statusCode).toBe(503)
    expect(user.json()).toMatchObject({ code: 503 })
    expect(Number(user.headers['retry-after'])).toBeGreaterThan(0)
    expect(ready.statusCode).toBe(503)
    expect(ready.json()).toMatchObject({ ready: false, database: 'unavailable', queue: 'ok' })
    expect(live.statusCode).toBe(200)
  })
})

describe('without a queue', () => {
  it('is ready, and reports that the queue is unavailable', async () => {
    await using pod = await buildPod({
      change: (opened) => ({
        ...opened,
        jobs: { ...opened.jobs, counts: () => Promise.reject(new QueueUnavailable('away')) },
      }),
    })

    const response = await pod.inject('/health/ready')

    expect(response.statusCode).toBe(200)
    expect(response.json()).toMatchObject({ ready: true, database: 'ok', queue: 'unavailable' })
  })
})
