import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { type ApiPod, startApiPod } from '../../support/pods/api-pod.js'

const reason = 'Not needed'

const CREATED = [
  ['/pod_rules', { domain: 'spam.example', state: 'limited' }],
  ['/filters', { kind: 'word', value: 'casino', action: 'count' }],
  ['/invitations', { uses: 1 }],
  ['/mail_rules', { kind: 'domain', value: 'mail.example', severity: 'reject' }],
  ['/ip_rules', { cidr: '198.51.100.0/24', severity: 'sign_up_block' }],
] as const

describe('the deletion of an object', () => {
  let api: ApiPod
  let mod: StaffClient
  beforeAll(async () => {
    api = await startApiPod()
    mod = await makeStaff(api, 'mod', 'moderator')
  })
  afterAll(() => api.close())

  it.each(CREATED)('takes its reason from the query or the body, and needs one (%s)', async (path, fields) => {
    for (const [query, body] of [
      ['?reason=Not%20needed', undefined],
      ['', { reason }],
    ] as const) {
      const { id } = (await mod.post(path, { ...fields, reason: 'Spam' })).body
      expect((await mod.call('DELETE', `${path}/${id}`)).body).toMatchObject({ code: 422, reason: 'reason_needed' })
      expect((await mod.call('DELETE', `${path}/${id}`, {})).body).toMatchObject({ code: 422, reason: 'reason_needed' })

      expect((await mod.call('DELETE', `${path}/${id}${query}`, body)).body).toMatchObject({ changed: true })
      expect((await mod.get('/audit?per_page=1')).body).toMatchObject([{ reason, actor: { name: 'mod' } }])
    }
  })
})
