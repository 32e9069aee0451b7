import { randomBytes } from 'node:crypto'
import { afterEach, describe, expect, inject, it } from 'vitest'
import { copyOldPod, examineOldPod, rehearse, switchOver } from '../../src/take-over/take-over.js'
import { administer } from '../support/databases/test-database.js'
import { contentOf } from '../support/take-over/content-of.js'
import { createOldPod, OLD_HOST } from '../support/take-over/old-pod.js'
import { openTestTarget } from '../support/take-over/take-over-target.js'

const ADDED_BEFORE_0_7_18 = [
  'users.plain_otp_secret',
  'users.consumed_timestep',
  'users.otp_required_for_login',
  'users.otp_backup_codes',
  'account_migrations.completed_at',
  'account_migrations.signature',
  'account_migrations.remote_photo_path',
]
const ADDED_AFTER_0_7_18 = ['notifications.guid']

describe('a take-over', () => {
  const zone = process.env['TZ']
  afterEach(() => {
    if (zone === undefined) delete process.env['TZ']
    else process.env['TZ'] = zone
  })

  it('needs only a role that may read, in every time zone', async () => {
    await using old = await createOldPod()
    const taken = await openTestTarget(old.url, `https://${OLD_HOST}`)
    const { superuser } = inject('testDatabases')
    const role = `reader_${randomBytes(6).toString('hex')}`
    const name = new URL(old.url).pathname.slice(1)
    try {
      process.env['TZ'] = 'Asia/Tokyo'
      await administer(superuser, async (client) => {
        await client.query(`create role ${role} login password 'reads only'`)
        for (const database of [name, new URL(taken.target.url).pathname.slice(1)])
          await client.query(`alter database ${database} set timezone = 'Asia/Tokyo'`)
      })
      await old.db.raw(`grant select on all tables in schema public to ${role}`)
      const before = await contentOf(old.db)
      const from = new URL(old.url)
      from.username = role
      from.password = 'reads only'
      const options = { ...taken.options, from: from.href }
      await copyOldPod(taken.target, options)
      const { verification } = await switchOver(taken.target, options, async () => ({}))
      expect(verification.differences).toEqual([])
      expect(await contentOf(old.db)).toBe(before)
      expect(
        await taken.rowsOf(
          `select to_char(created_at at time zone 'UTC', 'HH24:MI:SS.MS') as time from posts where id = 101`,
        ),
      ).toEqual([{ time: '03:04:05.999' }])
      expect(await taken.rowsOf('select birthday from profiles where person_id = 11')).toEqual([
        { birthday: '1004-02-29' },
      ])
    } finally {
      await taken.close()
      await old.db.raw(`revoke all on all tables in schema public from ${role}`)
      await administer(superuser, (client) => client.query(`drop role ${role}`))
    }
  }, 180_000)

  it('replaces bytes that are not UTF-8, and keeps all others', async () => {
    await using old = await createOldPod(`encoding 'SQL_ASCII' template template0 locale_provider libc locale 'C'`)
    const taken = await openTestTarget(old.url, `https://${OLD_HOST}`)
    try {
      const long = ` 🌻\r\n${'x'.repeat(65_500)} `
      await old.db('posts').where({ id: 101 }).update({ text: long })
      await old.db.raw(`update posts set text = convert_from('\\xc328'::bytea, 'SQL_ASCII') where id = 104`)
      const { findings } = await examineOldPod(taken.target, taken.options)
      expect(findings.filter(({ code }) => code === 'D10')).toEqual([
        { code: 'D10', table: 'posts', count: 1, examples: ['104'] },
      ])
      const { verification, repaired } = await switchOverAfterCopy()
      expect(verification.differences).toEqual([])
      expect(await taken.rowsOf('select text from posts where id in (101, 104) order by id')).toEqual([
        { text: long },
        { text: '\ufffd(' },
      ])
      expect(repaired).toBe(1)
      const [compression] = await taken.rowsOf(`
        select (select pg_column_compression(text) from take_over.posts where id = 101) as used,
          case when 'lz4' = any(enumvals) then 'lz4' else 'pglz' end as expected
        from pg_settings where name = 'default_toast_compression'`)
      expect(compression?.['used']).toBe(compression?.['expected'])
      expect(
        await taken.rowsOf('select table_name as name, repaired::int from take_over.copied_blocks where repaired > 0'),
      ).toEqual([{ name: 'posts', repaired: 1 }])
    } finally {
      await taken.close()
    }

    async function switchOverAfterCopy() {
      await copyOldPod(taken.target, taken.options)
      return switchOver(taken.target, taken.options, async () => ({}))
    }
  }, 180_000)

  it.each([
    ['0.7.0', '20170813222333', [...ADDED_BEFORE_0_7_18, ...ADDED_AFTER_0_7_18]],
    ['0.7.16', '20211027230348', ADDED_AFTER_0_7_18],
  ])(
    'reads the schema of diaspora* %s',
    async (release, version, missing) => {
      await using old = await createOldPod()
      await old.db.raw(`delete from schema_migrations where version <> '0'`)
      await old.db('schema_migrations').insert({ version })
      for (const name of missing) {
        const [table = '', column = ''] = name.split('.')
        await old.db.raw(`alter table ?? drop column ??`, [table, column])
      }
      if (release === '0.7.0') await old.db.raw('drop table account_migrations')
      const taken = await openTestTarget(old.url, `https://${OLD_HOST}`)
      try {
        expect(await examineOldPod(taken.target, taken.options)).toMatchObject({ release, blocks: [] })
        await copyOldPod(taken.target, taken.options)
        const first = await rehearse(taken.target, taken.options)
        expect(first.verification.differences).toEqual([])
        const selectGuids = 'select id::int, guid from notifications order by id'
        const guids = await taken.rowsOf(selectGuids)
        expect(guids.length).toBeGreaterThan(1)
        for (const { guid } of guids) expect(guid).toMatch(/^[0-9a-f]{32}$/)
        await rehearse(taken.target, taken.options)
        expect(await taken.rowsOf(selectGuids)).toEqual(guids)
      } finally {
        await taken.close()
      }
    },
    180_000,
  )

  it('is refused by a database with accounts', async () => {
    await using old = await createOldPod()
    const taken = await openTestTarget(old.url, `https://${OLD_HOST}`)
    try {
      await copyOldPod(taken.target, taken.options)
      await taken.target.db.raw(`
        delete from take_over;
        with person as (
          insert into people (guid, address, public_key, name) values ('0123456789abcdef', 'someone@old.example', '', '') returning id
        ) insert into users (person_id, username) select id, 'someone' from person`)
      const before = await contentOf(taken.target.db)
      const { blocks } = await examineOldPod(taken.target, taken.options)
      expect(blocks.map(({ code }) => code)).toEqual(['F4'])
      for (const step of [copyOldPod, rehearse]) await expect(step(taken.target, taken.options)).rejects.toThrow('F4: ')
      expect(await contentOf(taken.target.db)).toBe(before)
    } finally {
      await taken.close()
    }
  }, 180_000)
})
