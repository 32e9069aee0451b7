import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSource } from '../../src/take-over/source/open-source.js'
import { SOURCE_TABLES } from '../../src/take-over/source/source-tables.js'
import { copyOldPod, examineOldPod, switchOver } from '../../src/take-over/take-over.js'
import { findProgram } from '../deploy/find-program.js'
import { type MariadbServer, startMariadb } from '../support/databases/mariadb.js'
import { copyToMysql } from '../support/take-over/copy-to-mysql.js'
import { createOldPod, OLD_HOST, type OldPod } from '../support/take-over/old-pod.js'
import { openTestTarget, type TestTarget } from '../support/take-over/take-over-target.js'

const program = await findProgram('mariadbd')

describe.runIf(program !== undefined)('an old pod on MariaDB', () => {
  let old: OldPod
  let server: MariadbServer
  let taken: TestTarget
  beforeAll(async () => {
    old = await createOldPod()
    server = await startMariadb(program ?? '')
    await copyToMysql(old.db, server.session)
    taken = await openTestTarget(server.url, `https://${OLD_HOST}`)
  }, 120_000)
  afterAll(async () => {
    await taken?.close()
    await server?.[Symbol.asyncDispose]()
    await old?.close()
  })

  it('has the same findings as on PostgreSQL', async () => {
    const onPostgres = await openTestTarget(old.url, `https://${OLD_HOST}`)
    try {
      const expected = await examineOldPod(onPostgres.target, onPostgres.options)
      const report = await examineOldPod(taken.target, taken.options)
      expect(report.notChecked).toEqual([])
      expect(report.findings.map(({ code, table, count }) => ({ code, table, count }))).toEqual(
        expected.findings.map(({ code, table, count }) => ({ code, table, count })),
      )
      expect(report).toMatchObject({
        release: expected.release,
        rows: expected.rows,
        accounts: expected.accounts,
        hosts: expected.hosts,
        keyPairs: expected.keyPairs,
        blocks: [],
      })
    } finally {
      await onPostgres.close()
    }
  }, 120_000)

  it('is only read', async () => {
    const source = await openSource(server.url)
    try {
      await expect(source.query(`update users set email = 'x'`)).rejects.toThrow('READ ONLY')
    } finally {
      await source.close()
    }
  })

  it('is copied with the same rows as on PostgreSQL; times have full seconds, and times that do not exist are null', async () => {
    await server.session.query(`update posts set created_at = '0000-00-00 00:00:00' where id = 112`)
    await server.session.query(`update posts set text = concat('a', char(0), 'b') where id = 200`)
    await server.session.query(`update profiles set birthday = '2000-00-01' where person_id = 12`)
    await copyOldPod(taken.target, taken.options)
    const onPostgres = await openTestTarget(old.url, `https://${OLD_HOST}`)
    try {
      await copyOldPod(onPostgres.target, onPostgres.options)
      await onPostgres.rowsOf('update take_over.posts set created_at = null where id = 112 returning id')
      await onPostgres.rowsOf(`update take_over.posts set text = 'a' || chr(65533) || 'b' where id = 200 returning id`)
      for (const { name, key, columns } of SOURCE_TABLES) {
        const selected = Object.entries(columns).flatMap(([column, type]) =>
          type === 'sealed'
            ? []
            : type === 'time'
              ? [`date_trunc('second', "${column}") as "${column}"`]
              : [`"${column}"`],
        )
        const select = `select ${selected.join(', ')} from take_over."${name}" order by "${key}"`
        expect({ name, rows: await taken.rowsOf(select) }).toEqual({ name, rows: await onPostgres.rowsOf(select) })
      }
    } finally {
      await onPostgres.close()
    }
  }, 120_000)

  it('is compared by blocks: a second copy copies nothing, and one changed row copies its block', async () => {
    expect(await copyOldPod(taken.target, taken.options)).toMatchObject({ copied: 0 })
    await server.session.query(`update notifications set unread = 0 where id = 1`)
    expect(await copyOldPod(taken.target, taken.options)).toMatchObject({ copied: 10 })
  }, 120_000)

  it('may lack columns of later releases, have others, and times, flags and texts that only MySQL has', async () => {
    const { session } = server
    for (const column of ['plain_otp_secret', 'consumed_timestep', 'otp_required_for_login', 'otp_backup_codes'])
      await session.query(`alter table users drop column ${column}`)
    await session.query(
      'alter table users add column authentication_token varchar(30), add column strip_exif tinyint(1)',
    )
    await session.query('alter table notifications drop column guid')
    await session.query('alter table posts modify public bit(1)')
    await session.query('alter table posts add column tweet_id varchar(255), add column tumblr_ids text')
    await session.query(`set session sql_mode = 'ANSI_QUOTES,ALLOW_INVALID_DATES,NO_BACKSLASH_ESCAPES'`)
    await session.query(`update posts set created_at = '2020-02-31 10:00:00' where id = 201`)
    await session.query(
      `update comments set created_at = '0000-00-00 00:00:00', updated_at = '0000-00-00 00:00:00' where id = 1`,
    )
    await session.query(`update profiles set birthday = '2001-02-29' where person_id = 21`)
    await session.query(`update posts set text = concat('🌻 \\N \\', char(9), 'ü', char(13, 10), ' ') where id = 202`)
    await session.query('update users set getting_started = 2, disable_mail = null where id = 2')
    expect(await copyOldPod(taken.target, taken.options)).toMatchObject({ repaired: 1 })
    const { findings } = await examineOldPod(taken.target, taken.options)
    expect(findings.filter(({ code }) => code === 'D10')).toEqual([
      { code: 'D10', table: 'posts', count: 1, examples: ['200'] },
    ])
    expect(await taken.rowsOf('select id::int, created_at, text from take_over.posts where id in (201, 202)')).toEqual([
      { id: 201, created_at: null, text: expect.any(String) },
      { id: 202, created_at: expect.any(Date), text: '🌻 \\N \\\tü\r\n ' },
    ])
    const publicPosts = 'select id::int from take_over.posts where public and id between 101 and 104 order by id'
    expect(await taken.rowsOf(publicPosts)).toEqual([{ id: 101 }, { id: 104 }])
    expect(await taken.rowsOf('select getting_started, disable_mail from take_over.users where id = 2')).toEqual([
      { getting_started: true, disable_mail: null },
    ])
    expect(await taken.rowsOf('select birthday from take_over.profiles where person_id = 21 and id < 10')).toEqual([
      { birthday: null },
      { birthday: null },
    ])
    expect(await copyOldPod(taken.target, taken.options)).toMatchObject({ copied: 0 })
  }, 120_000)

  it('is taken over', async () => {
    const { verification } = await switchOver(taken.target, taken.options, async () => ({}))
    expect(verification.differences).toEqual([])
    // Nothing is sent but the closing of an account that the old pod has not completed.
    expect(await taken.rowsOf('select count(*)::int as count from deliveries')).toEqual([{ count: 0 }])
    expect(await taken.rowsOf('select count(*)::int as count from outbox')).toEqual([{ count: 0 }])
    expect(await taken.rowsOf(`select last_value >= 900 as above from posts_id_seq`)).toEqual([{ above: true }])
    // The time of the post, which has one of its own.
    expect(await taken.rowsOf('select created_at from comments where id = 1')).toEqual([
      { created_at: new Date('2020-01-02T03:04:05Z') },
    ])
    const [notification] = await taken.rowsOf('select guid from notifications where id = 1')
    expect(notification?.['guid']).toMatch(/^[0-9a-f]{32}$/)
    expect(await taken.rowsOf('select birthday from profiles where person_id in (11, 12) order by person_id')).toEqual([
      { birthday: '1004-02-29' },
      { birthday: null },
    ])
  }, 120_000)
})
