import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { verifyAudit } from '../../../src/domain/moderation/audit.js'
import { changeRole } from '../../../src/domain/moderation/change-role.js'
import { warnPerson } from '../../../src/domain/moderation/people/warn-person.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { type ApiPod, readAllPages, startApiPod } from '../../support/pods/api-pod.js'

let api: ApiPod
let adm: StaffClient
beforeAll(async () => {
  api = await startApiPod()
  adm = await makeStaff(api, 'adm', 'admin')
})
afterAll(() => api.close())

async function changeTwice(name: string, reason: string): Promise<string> {
  const person = (await api.people(name))[name]
  if (person === undefined) throw new Error(`${name} was not created.`)
  for (const role of ['moderator', 'none'] as const) {
    await changeRole(api.pod, COMMAND_ACTOR, person.guid, { role, reason, confirm: name })
  }
  return person.guid
}

describe('the audit log', () => {
  it('lists entries newest first, page by page, by actor, action, target, domain and time', async () => {
    const target = await changeTwice('bob', 'A trial')

    const all = await readAllPages({ ...adm.person, get: adm.get }, '/audit?per_page=1')
    expect(all.length).toBeGreaterThanOrEqual(3)
    expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).toSorted((one, other) => other - one))
    const ofBob = await adm.get(`/audit?target=${target}&actor=command&action=role&action=other&since=2020-01-01`)
    expect(ofBob.body).toMatchObject([
      { before: { role: 'moderator' }, after: { role: 'none' }, reason: 'A trial', via: 'command' },
      { before: { role: 'none' }, after: { role: 'moderator' } },
    ])
    await adm.post(`/people/${target}/warn`, { reason: 'x', text: 'Stop' })
    for (const actor of ['adm', adm.person.guid, adm.person.address, adm.person.address.toUpperCase()]) {
      for (const path of ['/audit?action=warn', '/actions?kind=warn']) {
        expect((await adm.get(`${path}&actor=${actor}`)).body).toMatchObject([{ actor: { name: 'adm' } }])
        expect((await adm.get(`${path}&actor=command`)).body).toEqual([])
      }
    }
    for (const query of ['actor=bob', 'action=hide', 'until=2020-01-01', 'domain=elsewhere.example']) {
      expect((await adm.get(`/audit?${query}`)).body).toEqual([])
    }
    expect((await adm.get('/audit?cursor=x')).body).toMatchObject({ code: 422, field: 'cursor' })
  })

  it('has a page of newer entries before each page but the first', async () => {
    await changeTwice('carol', 'A trial')
    const first = await adm.get('/audit?per_page=2')
    const second = await adm.get(first.links.next ?? '')
    const back = await adm.get(second.links.previous ?? '')

    expect(first.links.previous).toBeUndefined()
    expect(back.body).toEqual(first.body)
  })

  it('is exported as lines of JSON and as CSV without formulas, and the export is an entry', async () => {
    await changeTwice('dan', '=1+1')
    const read = async (format: string) =>
      (
        await api.app.inject({
          url: `/api/admin/v1/audit/export?format=${format}`,
          headers: { authorization: `Bearer ${adm.token}` },
        })
      ).body

    const lines = (await read('ndjson'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const csv = await read('csv')

    expect(lines.map(({ id }) => id)).toEqual(lines.map((_line, index) => index + 1))
    expect(lines.at(-1)).toMatchObject({ action: 'audit.export', actor: { name: 'adm' } })
    expect(csv).toContain(",'=1+1,")
    const [header, ...rows] = csv.trimEnd().split('\r\n')
    expect(header).toBe(
      'id,at,actor,role,via,action,target_type,target_guid,target,reason,before,after,case_id,batch_id,undoes,actor_guid,client_id,trace_id,hash',
    )
    expect(rows.at(-1)).toMatch(new RegExp(`,audit\\.export,.*,${adm.person.guid},[^,]*,[0-9a-f]{32},[0-9a-f]{64}$`))
  })

  it('is exported without the content of entries on cases about the reader, whose number and hash stay', async () => {
    const { gus } = await api.people('gus')
    await api.pod.db('moderation_cases').insert({
      targetType: 'person',
      targetGuid: adm.person.guid,
      authorId: adm.person.viewer.personId,
      public: true,
    })
    const { id: caseId } = await api.pod.db('moderation_cases').first('id')
    await warnPerson(api.pod, COMMAND_ACTOR, gus.guid, { reason: 'About adm', text: 'Stop', caseId })
    const { id, hash } = await api.pod.db('audit_entries').orderBy('id', 'desc').first('id', 'hash')
    const readLine = async (format: string) => {
      const url = `/api/admin/v1/audit/export?format=${format}`
      const { body } = await api.app.inject({ url, headers: { authorization: `Bearer ${adm.token}` } })
      return body.split(/\r?\n/).find((line) => line.includes(hash.toString('hex')))
    }

    const entry = JSON.parse((await readLine('ndjson')) ?? '{}')
    expect(Object.entries(entry).filter(([, value]) => value !== null)).toEqual([
      ['id', id],
      ['hash', hash.toString('hex')],
    ])
    expect(await readLine('csv')).toBe(`${id}${','.repeat(18)}${hash.toString('hex')}`)
    await api.pod.db('moderation_cases').delete()
  })

  it('cannot be changed: the database refuses UPDATE, DELETE and TRUNCATE', async () => {
    const { db } = api.pod
    for (const statement of [
      'update audit_entries set reason = null',
      'delete from audit_entries',
      'truncate audit_entries',
    ]) {
      await expect(db.raw(statement)).rejects.toThrow('append-only')
    }
  })

  it('names the first entry that was changed or deleted with its triggers off', async () => {
    await changeTwice('eve', 'A trial')
    const { db } = api.pod
    const tamper = async (statement: string) => {
      await db.raw('alter table audit_entries disable trigger user')
      await db.raw(statement)
      await db.raw('alter table audit_entries enable trigger user')
    }
    expect(await verifyAudit(api.pod)).toEqual({ entries: expect.any(Number) })

    await tamper(`update audit_entries set reason = reason || '!' where id = 3`)
    expect(await verifyAudit(api.pod)).toMatchObject({ brokenId: 3 })

    await tamper('delete from audit_entries where id = 2')
    expect(await verifyAudit(api.pod)).toMatchObject({ brokenId: 3 })
  })
})
