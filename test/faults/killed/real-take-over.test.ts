import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signIn } from '../../../src/domain/accounts/sign-in.js'
import { postForm } from '../../support/http/oidc-client.js'
import { buildPod } from '../../support/pods/build-pod.js'
import { contentOf } from '../../support/take-over/content-of.js'
import { killStep, runStep } from '../../support/take-over/killed-steps.js'
import { openRealPod, REAL_POD, type RealPod } from '../../support/take-over/real-pod.js'

describe.runIf(REAL_POD !== '')('the database of a real diaspora* pod', () => {
  let realPod: RealPod

  beforeAll(async () => {
    realPod = await openRealPod()
  }, 180_000)
  afterAll(() => realPod?.close())

  it('is taken over completely although the process of each step is killed, ten times in all', async () => {
    const { old, taken, uploads } = realPod
    const { folder } = taken
    const environment = { ...taken.environment, TAKE_OVER_FROM: old.url }
    await old.db.raw(`update o_auth_access_tokens set expires_at = localtimestamp + interval '1 day'`)
    const before = await contentOf(old.db)
    const files = await readdir(join(uploads, 'images'))
    const blocks = async () => Number((await taken.rowsOf(COUNT_BLOCKS_SQL))[0]?.['count'] ?? 0)
    const state = async () => (await taken.rowsOf(SELECT_STATE_SQL))[0] ?? {}
    const isWorking = async () => (await taken.rowsOf(SELECT_WORKING_SQL)).length > 0
    const isIn = (step: string, wanted: string) => async () => {
      const found = await state()
      return found['step'] === step && found['state'] === wanted
    }
    const kills: readonly (readonly [step: string, isReached: () => Promise<boolean>])[] = [
      ['copy', isWorking],
      ['copy', async () => (await taken.rowsOf(HAS_STAGING_SQL))[0]?.['exists'] === true && (await blocks()) > 0],
      ['copy', async () => (await blocks()) > 12],
      ['copy', isIn('copy', 'copying')],
      ['rehearse', isIn('rehearse', 'copying')],
      ['rehearse', isWorking],
      ['rehearse', async () => (await state())['state'] === 'built'],
      ['switch', isIn('switch', 'copying')],
      ['switch', async () => (await state())['state'] === 'built'],
      ['switch', isWorking],
    ]
    for (const [step, isReached] of kills)
      await killStep([step, '--uploads', uploads, '--lose-jobs'], environment, isReached)
    await runStep(['switch', '--uploads', uploads, '--lose-jobs'], environment)
    expect(await contentOf(old.db)).toBe(before)
    expect(await readdir(join(uploads, 'images'))).toEqual(files)
    expect((await readdir(join(folder, 'uploads', 'images'))).toSorted()).toEqual(files.toSorted())
    for (const table of ['outbox', 'outbound_messages', 'deliveries'])
      expect(await taken.rowsOf('select count(*)::int as count from ??', [table]), table).toEqual([{ count: 0 }])
    expect(
      await taken.rowsOf(`
        select photos.id from photos join people on people.id = photos.author_id
        where people.pod_id is null and photos.remote_path is not null`),
    ).toEqual([])
    expect(await taken.rowsOf(WRONG_COUNTERS_SQL)).toEqual([])
    for (const table of TABLES_WITH_EQUAL_IDS) {
      const select = `select coalesce(array_agg(id::int order by id), '{}') as ids from ??`
      expect(await taken.rowsOf(select, [table]), table).toEqual((await old.db.raw(select, [table])).rows)
    }
    const pod = await buildPod({ environment: taken.environment })
    try {
      for (const name of ['dora', 'emil', 'gesa'])
        expect(await signIn(pod.pod, name, 'correct horse battery')).toBeDefined()
      expect(await signIn(pod.pod, 'fritz', 'correct horse battery')).toBeUndefined()
      expect((await pod.inject('/fetch/post/3ac7aa60c98a013fa2c35e57e3ab7a53')).statusCode).toBe(200)
      const { rows: tokens } = await old.db.raw(SELECT_TOKENS_SQL)
      expect(tokens.length).toBeGreaterThan(0)
      const statusWith = async (token: string) =>
        (await pod.inject({ url: '/api/v1/user', headers: { authorization: `Bearer ${token}` } })).statusCode
      for (const { token, refreshToken, clientId, clientSecret } of tokens) {
        expect(await statusWith(token)).toBe(200)
        const response = await postForm(pod.app, '/api/openid_connect/access_tokens', {
          grant_type: 'refresh_token',
          refresh_token: refreshToken,
          client_id: clientId,
          client_secret: clientSecret,
        })
        expect(response.statusCode).toBe(200)
        expect(await statusWith(response.json().access_token)).toBe(200)
      }
    } finally {
      await pod.close()
    }
  }, 600_000)
})
const HAS_STAGING_SQL = `select to_regclass('take_over.copied_blocks') is not null as exists`
const COUNT_BLOCKS_SQL = 'select count(*)::int as count from take_over.copied_blocks'
const SELECT_STATE_SQL = `select state, step from take_over`
/** Sessions that copy, build or compare rows. */
const SELECT_WORKING_SQL = `
  select from pg_stat_activity where datname = current_database() and application_name = 'pod command (take-over)'`

/** Posts, comments and answers whose counter is not the number of rows. */
const WRONG_COUNTERS_SQL = `
  select 'posts' as name, id from posts
  where comments_count <> (select count(*) from comments where comments.post_id = posts.id)
    or likes_count <> (select count(*) from likes where likes.post_id = posts.id and positive)
    or reshares_count <> (select count(*) from posts as reshares where reshares.root_id = posts.id)
  union all
  select 'comments', id from comments
  where likes_count <> (select count(*) from likes where likes.comment_id = comments.id and positive)
  union all
  select 'poll_answers', id from poll_answers
  where vote_count <> (select count(*) from poll_participations where poll_participations.poll_answer_id = poll_answers.id)`

const TABLES_WITH_EQUAL_IDS = [
  ...['users', 'people', 'contacts', 'aspects', 'posts', 'photos', 'comments', 'likes', 'polls', 'poll_answers'],
  ...['poll_participations', 'participations', 'conversations', 'messages', 'notifications', 'mentions', 'tags'],
]

const SELECT_TOKENS_SQL = `
  select tokens.token, refresh_token as "refreshToken", client_id as "clientId", client_secret as "clientSecret"
  from o_auth_access_tokens as tokens join authorizations on authorizations.id = tokens.authorization_id
  join o_auth_applications as applications on applications.id = authorizations.o_auth_application_id
  where refresh_token is not null`
