import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mintToken } from '../../../src/domain/accounts/tokens.js'
import { getActorByName } from '../../../src/domain/moderation/actor.js'
import { findClusters } from '../../../src/domain/moderation/clusters/find-clusters.js'
import { hideContent } from '../../../src/domain/moderation/hide-content.js'
import { personContentTaskHandlers } from '../../../src/domain/moderation/people/content-of-person.js'
import { purgeTaskHandlers } from '../../../src/domain/moderation/people/purge-person.js'
import { setPodRule } from '../../../src/domain/moderation/pods/pod-rules.js'
import { silencePerson } from '../../../src/domain/moderation/restrict-person.js'
import type { TestBrowser } from '../../support/browser/scriptless-browser.js'
import { addPost } from '../../support/databases/rows.js'
import type { TestPerson } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ConsolePod, startConsolePod } from '../../support/pods/console-pod.js'
import { finishBackgroundTasks } from '../../support/pods/finish-background-tasks.js'

const reason = 'Spam'
const HOSTILE = `<script>alert(1)</script> https://bücher.example/x ${'x'.repeat(100)}`

let console: ConsolePod
let mod: TestBrowser
let adm: TestBrowser
let dan: TestPerson
beforeAll(async () => {
  console = await startConsolePod({ environment: { WRITE_LIMIT: '0' } })
  mod = await console.signedIn('mod')
  adm = await console.signedIn('adm')
  ;({ dan } = await console.people('dan'))
})
afterAll(async () => {
  await console.close()
})

let people = 0

/** A public post of another pod that Dan has reported. */
async function reportedPost(text = HOSTILE) {
  people += 1
  const author = await addRemotePerson(console.pod, `eve${people}@evil.example`)
  const post = await addPost(console.pod, author, { text })
  await dan.post(`/api/v1/posts/${post.guid}/report`, { reason: 'Look <b>here</b>' })
  const found = await console.pod.db('moderation_cases').where({ targetGuid: post.guid }).first('id')
  return { author, guid: post.guid, page: `/admin/reports/${found.id}` }
}

/** A person of another pod whom Dan has reported. */
async function reportedPerson() {
  people += 1
  const author = await addRemotePerson(console.pod, `eve${people}@evil.example`)
  await dan.post(`/api/v1/users/${author.guid}/report`, { reason })
  const found = await console.pod.db('moderation_cases').where({ targetGuid: author.guid }).first('id')
  return { guid: author.guid, page: `/admin/reports/${found.id}`, form: `/admin/people/${author.guid}/silence` }
}

const isVisible = async (guid: string) => (await dan.get(`/api/v1/posts/${guid}`)).statusCode === 200
const actionsOn = (targetGuid: string) =>
  console.pod.db('moderation_actions').where({ targetGuid }).orderBy('id').pluck('kind')

describe('the content of a person', () => {
  it('is hidden, removed and deleted from the page of the person, whose data is then deleted', async () => {
    people += 1
    const address = `wave${people}@evil.example`
    const author = await addRemotePerson(console.pod, address)
    const post = await addPost(console.pod, author, { text: 'Buy' })
    const page = `/admin/people/${author.guid}`
    const act = async (browser: TestBrowser, action: string, confirm?: string) => {
      await browser.visit(page)
      const answer = await browser.submit({ reason }, `${page}/${action}`)
      if (confirm === undefined) return answer
      expect(answer.body).toContain('Nothing has been changed yet.')
      return browser.submit({ confirm }, `${page}/${action}`)
    }
    const finish = () => finishBackgroundTasks(console.pod, { ...personContentTaskHandlers, ...purgeTaskHandlers })

    expect((await mod.visit(page)).body).not.toContain(`${page}/forget`)
    expect((await act(mod, 'hide_content')).body).toContain('A worker does this in the background.')
    await finish()
    expect(await isVisible(post.guid)).toBe(false)
    await act(mod, 'remove_content', address)
    await finish()

    expect((await adm.visit(page)).body).not.toContain(`${page}/purge`)
    await act(mod, 'block')
    await act(adm, 'purge', address)
    await finish()
    expect(await console.pod.db('posts').where({ guid: post.guid })).toEqual([])
    expect((await act(adm, 'forget')).body).toContain('There are rows of this person.')
    await console.pod.db('tombstones').delete()
    const forgotten = await act(adm, 'forget', address)
    expect(forgotten.body).toContain('The person is forgotten.')
    expect(await console.pod.db('people').where({ address })).toEqual([])
    expect((await actionsOn(author.guid)).slice(0, 2)).toEqual(['hide_content', 'remove_content'])
  })

  it('of a local person is removed after the user name was typed', async () => {
    const { carl } = await console.people('carl')
    const { guid } = await console.pod.db('people').where({ address: 'carl@pod.example' }).first('guid')
    const page = `/admin/people/${guid}`
    await carl.post('/api/v1/posts', { body: 'Words', public: true })
    await mod.visit(page)
    const asked = await mod.submit({ reason }, `${page}/remove_content`)

    expect(asked.body).toContain('<bdi>carl</bdi>')
    expect((await mod.submit({ confirm: 'carl' }, `${page}/remove_content`)).body).toContain('in the background')
  })
})

describe('a report', () => {
  it('is listed without text, and shown with inert text, links in ASCII and reporter', async () => {
    const { page } = await reportedPost()
    expect((await mod.visit('/admin')).body).toContain('open report')
    const list = await mod.visit('/admin/reports?type=post&pod=evil.example')
    const { body } = await mod.visit(page)

    expect(list.body).toContain(`href="${page}"`)
    expect(list.body).not.toContain('alert(1)')
    expect(body).toContain('<bdi>&#60;script&#62;alert(1)&#60;/script&#62; ')
    expect(body).toContain('<bdi>xn--bcher-kva.example/x</bdi>')
    expect(body).toContain('<bdi>Look &#60;b&#62;here&#60;/b&#62;</bdi>')
    expect(body).not.toMatch(/<a [^>]*b.*cher/)
  })

  it('is answered in one form: content hidden, author silenced, case resolved; the undo shows the content again', async () => {
    const { author, guid, page } = await reportedPost()
    await mod.visit(page)
    const answered = await mod.submit({ reason, author: 'silence', resolve: 'true' }, `/admin/content/${guid}/hide`)

    expect([mod.url.pathname, await isVisible(guid)]).toEqual([page, false])
    expect(answered.body).toContain(': resolved</h1>')
    expect(answered.body).not.toContain('The public page')
    expect(await actionsOn(guid)).toEqual(['hide'])
    expect(await actionsOn(author.guid)).toEqual(['silence'])

    const [, undo = ''] = /action="(\/admin\/actions\/\d+\/undo)"(?:(?!<\/form>)[\s\S])*/.exec(answered.body) ?? []
    await mod.submit({ reason }, undo)
    expect(mod.page.body).toContain('The action is undone.')
    expect(await actionsOn(author.guid)).toContain('silence.undo')
  })

  it('changes neither content nor author if another moderator has closed the case', async () => {
    const { author, guid, page } = await reportedPost()
    await mod.visit(page)
    await adm.visit(page)
    await adm.submit({ reason, ignore_further: 'true' }, `${page}/dismiss`)
    const refused = await mod.submit(
      { reason, author: 'silence', resolve: 'true', version: '' },
      `/admin/content/${guid}/hide`,
    )

    expect([refused.statusCode, await isVisible(guid)]).toEqual([409, true])
    expect([await actionsOn(author.guid), await actionsOn(guid)]).toEqual([[], []])
  })

  it('about a person is answered after it was taken, and after other actions on the person', async () => {
    const { guid, page, form } = await reportedPerson()
    await mod.visit(`/admin/people/${guid}`)
    await mod.submit({ reason }, `/admin/people/${guid}/silence`)
    await mod.visit(page)
    await mod.submit({}, `${page}/take`)
    const answered = await mod.submit({ reason, resolve: 'true' }, form, `/admin/people/${guid}/block`)

    expect(answered.body).toContain(': resolved</h1>')
    expect(await actionsOn(guid)).toEqual(['silence', 'block'])
  })

  it('about a local post or person offers all actions on the author, which belong to the case', async () => {
    const { lea } = await console.people('lea')
    const { guid: author } = await console.pod.db('people').where({ address: 'lea@pod.example' }).first('guid')
    const { guid } = (await lea.post('/api/v1/posts', { body: 'Buy', public: true })).json()
    await dan.post(`/api/v1/posts/${guid}/report`, { reason })
    await dan.post(`/api/v1/users/${author}/report`, { reason })
    const pages = await console.pod
      .db('moderation_cases')
      .whereIn('targetGuid', [guid, author])
      .orderBy('id')
      .pluck('id')
    const [ofPost = '', ofPerson = ''] = pages.map((id) => `/admin/reports/${id}`)
    await mod.visit(ofPost)
    const unwarned = await mod.submit({ reason, author: 'warn', resolve: 'true' }, `/admin/content/${guid}/hide`)
    expect([unwarned.statusCode, await isVisible(guid)]).toEqual([422, true])
    await mod.visit(ofPost)
    const text = 'No adverts, please.'
    await mod.submit({ reason, author: 'warn', text, resolve: 'true' }, `/admin/content/${guid}/hide`)
    expect(mod.page.body).toContain(': resolved</h1>')

    const act = (action: string, fields: Record<string, string> = {}) =>
      mod.submit({ reason, ...fields }, `/admin/people/${author}/warn`, `/admin/people/${author}/${action}`)
    await mod.visit(ofPerson)
    await act('warn', { text })
    await console.pod.db('profiles').update({ bio: 'Buy' })
    await act('clear_profile')
    await act('close')
    await confirm(mod, 'lea')
    expect([mod.url.pathname, mod.page.body.includes('The closing of the account has begun')]).toEqual([ofPerson, true])
    const caseIds = await console.pod
      .db('moderation_actions')
      .where({ targetGuid: author })
      .orderBy('id')
      .pluck('case_id')
    expect([await actionsOn(author), caseIds]).toEqual([
      ['warn', 'warn', 'clear_profile', 'close'],
      [pages[0], pages[1], pages[1], pages[1]],
    ])
  })

  it('offers no undo that needs another role', async () => {
    const { page, guid } = await reportedPost()
    await mod.visit(page)
    await mod.submit({ reason }, `/admin/content/${guid}/hide`)
    const { id } = await console.pod.db('moderation_actions').where({ targetGuid: guid }).first('id')
    expect((await mod.visit(page)).body).toContain(`/admin/actions/${id}/undo`)
    await console.pod.db('moderation_actions').where({ id }).update({ power: 'administration' })

    for (const path of [page, `/admin/content/${guid}`]) {
      expect((await mod.visit(path)).body).not.toContain(`/admin/actions/${id}/undo`)
      expect((await adm.visit(path)).body).toContain(`/admin/actions/${id}/undo`)
    }
  })

  it('about a person that another moderator has closed causes no action', async () => {
    const { guid, page, form } = await reportedPerson()
    await mod.visit(page)
    await adm.visit(page)
    await adm.submit({ reason }, `${page}/dismiss`)
    const outdated = await mod.submit({ reason, resolve: 'true' }, form)
    expect([outdated.statusCode, outdated.body.includes('Changed in the meantime')]).toEqual([409, true])
    await mod.visit(`/admin/people/${guid}`)
    const caseId = page.split('/').at(-1) ?? ''
    const refused = await mod.submit({ reason, resolve: 'true', case_id: caseId, version: '' }, form)

    expect([refused.statusCode, refused.body.includes('Nothing was changed')]).toEqual([409, true])
    expect(await actionsOn(guid)).toEqual([])
  })

  it('blocks the author of another pod only after the address was typed, and does nothing before', async () => {
    const { author, guid, page } = await reportedPost()
    await dan.post('/api/v1/aspects', { name: 'Others', chat_enabled: false })
    const user = await console.pod.db('users').where({ username: 'dan' }).first('id')
    await console.pod.db('contacts').insert({ userId: user.id, personId: author.id, receiving: true, sharing: false })
    await mod.visit(page)
    const asked = await mod.submit({ reason, author: 'block' }, `/admin/content/${guid}/hide`)

    expect([asked.statusCode, await isVisible(guid), await actionsOn(guid)]).toEqual([200, true, []])
    expect(asked.body).toContain(`Type <span><bdi>${author.address}</bdi></span>`)
    expect((await confirm(mod, 'eve')).statusCode).toBe(422)
    await confirm(mod, author.address)
    expect([await actionsOn(author.guid), await actionsOn(guid)]).toEqual([['block'], ['hide']])
  })

  it('gives the messages that the end of a block sends the trace of its audit entry', async () => {
    const { author, guid, page } = await reportedPost()
    const user = await console.pod.db('users').where({ username: 'dan' }).first('id')
    await console.pod.db('contacts').insert({ userId: user.id, personId: author.id, receiving: true, sharing: true })
    await mod.visit(page)
    await mod.submit({ reason, author: 'block' }, `/admin/content/${guid}/hide`)
    await confirm(mod, author.address)
    const { id } = await console.pod.db('moderation_actions').where({ targetGuid: author.guid }).first('id')
    await mod.visit(page)
    await mod.submit({ reason }, `/admin/actions/${id}/undo`)
    const { traceId } = await console.pod
      .db('audit_entries')
      .whereRaw(`target->>'guid' = ? and action = 'block.undo'`, [author.guid])
      .first('traceId')

    expect(traceId).toMatch(/^[0-9a-f]{32}$/)
    expect(await console.pod.db('outbox').where({ traceId }).pluck('name')).toEqual(['dispatch'])
  })

  it('shows both states to a moderator who was slower, and does nothing', async () => {
    const { page } = await reportedPost()
    await mod.visit(page)
    await adm.visit(page)
    await adm.submit({}, `${page}/take`)
    const late = await mod.submit({ reason, without_action: 'true' }, `${page}/resolve`)

    expect(late.statusCode).toBe(409)
    expect(late.body).toContain('<h1>Changed in the meantime</h1>')
    expect(late.body).toContain('by <bdi>adm</bdi>')
    expect(late.body).toContain(`<bdi>${reason}</bdi>`)
    expect((await mod.visit(page)).body).toContain(': taken</h1>')
    await mod.submit({ force: 'true' }, `${page}/take`)
    expect(mod.page.body).toContain('by <bdi>mod</bdi>')
    await mod.submit({}, `${page}/release`)
    await mod.submit({ reason, ignore_further: 'true' }, `${page}/dismiss`)
    await mod.submit({ reason }, `${page}/reopen`)
    expect(mod.page.body).toContain(': open</h1>')
  })

  it('shows a picture of another pod after a request, as a copy of this pod', async () => {
    const { page, guid } = await reportedPost()
    const photoGuid = 'a-photo-of-the-post'
    await console.pod
      .db('moderation_cases')
      .where({ targetGuid: guid })
      .update({ photoGuids: [photoGuid] })
    const path = `${page}/pictures/${photoGuid}`
    expect((await mod.visit(page)).body).toContain(`<a href="${path}">Picture 1</a>`)
    expect((await mod.visit(path)).body).not.toContain('<img src="/admin')
    await mod.submit({}, path)
    expect(mod.page.body).toContain('A worker fetches the picture.')
    expect((await mod.visit(`${path}/clear`)).statusCode).toBe(404)
    await console.pod.db('case_pictures').update({ state: 'ready', blurred: Buffer.from('b'), clear: Buffer.from('c') })
    expect((await mod.visit(path)).body).toContain(`<img src="${path}/blurred"`)
    expect((await mod.visit(`${path}?variant=clear`)).body).toContain(`<img src="${path}/clear"`)
    const file = await mod.visit(`${path}/blurred`)
    expect([file.body, file.headers['content-type'], file.headers['cache-control']]).toEqual([
      'b',
      'image/webp',
      expect.stringContaining('no-store'),
    ])
    expect((await mod.visit(`${path}/raw`)).statusCode).toBe(404)
  })

  it('has a text for the operator of the pod of the author, and sends nothing without a contact', async () => {
    const { page } = await reportedPost()
    await mod.visit(page)
    await mod.submit({ include_reason: 'true' }, `${page}/forward`)
    expect(mod.page.body).toContain('Nothing has been sent.')
    expect(mod.page.body).toContain('Reason: Look &#60;b&#62;here')
    expect(mod.page.body).toContain('cannot send a message to the operator')
  })

  it('gets one note from two clicks, also at the same time', async () => {
    const { page } = await reportedPost()
    const { body } = await mod.visit(page)
    const [form = ''] = /<form[^>]*\/notes">[\s\S]*?<\/form>/.exec(body) ?? []
    const hidden = Array.from(form.matchAll(/name="(\w+)" value="([^"]*)"/g), ([, name = '', value = '']) => [
      name,
      value,
    ])
    const payload = new URLSearchParams({ ...Object.fromEntries(hidden), text: 'Asked the author' }).toString()
    const cookie = [...mod.cookies].map((each) => each.join('=')).join('; ')
    const headers = { cookie, 'content-type': 'application/x-www-form-urlencoded' }
    const click = () => console.inject({ method: 'POST', url: `${page}/notes`, headers, payload })
    const answers = [...(await Promise.all([click(), click()])), await click()]

    expect(answers.map(({ statusCode, headers: { location } }) => [statusCode, location])).toEqual(
      Array.from({ length: 3 }, () => [303, `${page}?flash=case_noted`]),
    )
    expect((await mod.visit(page)).body.match(/Asked the author/g)).toHaveLength(1)
  })
})

describe('a person', () => {
  it('is found, with all restrictions and their reasons', async () => {
    const author = await addRemotePerson(console.pod, 'sam@sam.example')
    expect((await mod.visit('/admin/people?q=sam%40')).body).toContain(`/admin/people/${author.guid}`)
    expect((await mod.visit('/admin/people?q=nobody-at-all')).body).toContain('Search for a part of a name')
    const page = `/admin/people/${author.guid}`
    await mod.visit(page)
    expect(mod.page.body).not.toContain(`${page}/lock`)
    await mod.submit({ reason, until: '2199-01-01' }, `${page}/silence`)

    expect(mod.page.body).toContain('<b>silence</b> by an action on this person')
    expect(mod.page.body).toContain('1 Jan 2199')
    expect((await mod.visit('/admin/people?state=silenced&pod=sam.example')).body).toContain(page)
  })

  it('gets a role from an admin who has typed the name', async () => {
    const page = `/admin/people/${dan.account.guid}`
    expect((await mod.visit(page)).body).not.toContain(`${page}/role`)
    await adm.visit(page)
    await adm.submit({ role: 'moderator', reason }, `${page}/role`)
    expect(adm.page.body).toContain('Type <span><bdi>dan</bdi></span>')
    await confirm(adm, 'dan')
    expect(adm.page.body).toContain('<h1>Roles: 3 moderators and admins</h1>')
    await adm.visit(page)
    await adm.submit({ role: 'none', reason }, `${page}/role`)
    await confirm(adm, 'dan')
    expect(adm.page.body).toContain('<h1>Roles: 2 moderators and admins</h1>')
  })
})

describe('a rule for pods', () => {
  it('is previewed, set before the pod is known, changed and deleted', async () => {
    await mod.visit('/admin/rules')
    const form = { domain: 'New.Example', subdomains: 'true', state: 'blocked', reason }
    const preview = await sendTo(mod, '/admin/rules/preview', form)
    expect([preview.statusCode, await console.pod.db('pod_rules').pluck('domain')]).toEqual([200, []])
    expect(preview.body).toContain('<h1>Preview: new.example</h1>')
    expect(preview.body).toContain('<bdi>all</bdi>')
    expect((await sendTo(mod, '/admin/rules/preview', { ...form, port: '4320' })).body).toContain('<bdi>4320</bdi>')
    await mod.submit({ ...form, state: 'limited' }, '/admin/rules')

    expect(mod.page.body).toContain('<h1>new.example: limited</h1>')
    const page = mod.url.pathname
    await mod.submit({ state: 'normal', subdomains: 'true', reason: 'An exception' }, `${page}/change`)
    expect(mod.page.body).toContain('<h1>new.example: normal</h1>')
    await console.pod.db('operations').where({ kind: 'pod_rules.restrict' }).delete()
    await console.pod.db('outbox').where({ name: 'run-operation' }).delete()
    await mod.submit({ reason }, `${page}/delete`)
    expect(mod.page.body).toContain('There are no rules.')
    const { traceId } = await console.pod.db('audit_entries').where({ action: 'pod_rule.delete' }).first('traceId')
    expect(await console.pod.db('outbox').where({ traceId }).pluck('name')).toEqual(['run-operation'])
    expect((await sendTo(mod, '/admin/rules', { ...form, domain: 'com' })).statusCode).toBe(422)
  })

  it('is imported from a list: a plan, the ticked rows, and the undo', async () => {
    const { body } = await adm.visit('/admin/rules/import')
    const [, token = ''] = /rules\/import"[^>]*>\s*<input type="hidden" name="form" value="([^"]*)"/.exec(body) ?? []
    const parts = { form: token, mode: 'keep', file: 'one.example\r\ntwo.example\r\n*.example*\r\n' }
    const payload = `${Object.entries(parts)
      .map(
        ([name, value]) =>
          `--x\r\ncontent-disposition: form-data; name="${name}"${name === 'file' ? '; filename="a.csv"\r\ncontent-type: text/csv' : ''}\r\n\r\n${value}\r\n`,
      )
      .join('')}--x--\r\n`
    const cookie = [...adm.cookies].map((each) => each.join('=')).join('; ')
    const headers = { cookie, 'content-type': 'multipart/form-data; boundary=x' }
    const planned = await console.inject({ method: 'POST', url: '/admin/rules/import', headers, payload })
    expect(planned.statusCode).toBe(303)
    const page = String(planned.headers.location).split('?')[0] ?? ''
    await adm.visit(page)
    expect(adm.page.body).toContain('skip: obfuscated')
    const [, id = ''] = /name="ids\[\]" value="(\d+)"/.exec(adm.page.body) ?? []

    await adm.submit({ rows: 'ticked', 'ids[]': id, reason }, `${page}/apply`)
    expect(adm.page.body).toContain('Type <span><bdi>1</bdi></span>')
    await confirm(adm, '1')
    expect(adm.page.body).toContain(': applied</h1>')
    expect(adm.page.body).toContain(`${page}/undo`)
    expect((await adm.visit('/admin/rules/import')).body).toContain(page)
  })
})

describe('a filter', () => {
  it('can be tested without a change, added, changed, applied and removed', async () => {
    await reportedPost('cheap zzwatches here')
    expect((await mod.visit('/admin/filters')).body).toContain('No filters.')
    expect(mod.page.body).not.toContain('value="reject"')
    const form = { kind: 'word', value: 'zzwatches', action: 'hide', state: 'trial' }
    const tried = await sendTo(mod, '/admin/filters/dry_run', form)
    expect(tried.body).toContain('<h1>Dry run: 1 hits in 7 days</h1>')
    expect(tried.body).toContain('cheap zzwatches here')
    expect(await console.pod.db('filters').pluck('id')).toEqual([])

    await mod.submit({ ...form, reason }, '/admin/filters')
    const [, page = ''] = /href="(\/admin\/filters\/\d+)"/.exec(mod.page.body) ?? []
    await mod.visit(page)
    await mod.submit({ ...form, state: 'active', reason }, `${page}/change`)
    expect(mod.page.body).toContain(': active</h1>')
    await mod.submit({ reason, days: '7' }, `${page}/apply`)
    expect(mod.page.body).toContain('Type <span><bdi>1</bdi></span>')
    await confirm(mod, '1')
    await mod.visit(page)
    await mod.submit({ reason }, `${page}/remove`)
    expect(mod.page.body).toContain('The filter is removed.')
  })
})

describe('a spam cluster', () => {
  it('is previewed and cleaned except for excluded items; one undo restores all', async () => {
    await findClusters(console.pod)
    const authors = await Promise.all(
      ['a', 'b', 'c', 'd'].map((name) => addRemotePerson(console.pod, `spam-${name}@wave.example`)),
    )
    const posts = await Promise.all(
      [...authors, ...authors].map((author) => addPost(console.pod, author, { text: 'https://wave.example/buy' })),
    )
    await findClusters(console.pod)
    const [, page = ''] = /href="(\/admin\/clusters\/\d+)"/.exec((await mod.visit('/admin/clusters')).body) ?? []
    await mod.visit(page)
    const parts = { hide: 'true', filter: 'true', 'except[]': authors[0]?.guid ?? '', reason }
    const preview = await sendTo(mod, `${page}/preview`, parts)
    expect(preview.body).toContain('<h1>Preview: 6 items</h1>')
    expect(await isVisible(posts[1]?.guid ?? '')).toBe(true)
    await mod.submit({}, `${page}/clean`)

    expect(mod.page.body).toContain(': cleaned</h1>')
    const visible = await Promise.all(posts.map(({ guid }) => isVisible(guid)))
    expect(visible.filter(Boolean)).toHaveLength(2)
    const [, entry = ''] =
      /href="(\/admin\/audit\/\d+)"/.exec((await mod.visit('/admin/audit?action=cluster.clean')).body) ?? []
    await mod.visit(entry)
    const [, undo = ''] = /action="(\/admin\/actions\/\d+\/undo)"/.exec(mod.page.body) ?? []
    await mod.submit({ reason }, undo)
    expect(await isVisible(posts[1]?.guid ?? '')).toBe(true)
  })
})

describe('an invitation', () => {
  it('shows its link once, and is recalled', async () => {
    await mod.visit('/admin/invitations')
    await mod.submit({ uses: '2', note: 'For a friend', reason }, '/admin/invitations')
    expect(mod.page.body).toMatch(/<code>[^<]*\/users\/sign_up\?invitation=[^<]+<\/code>/)
    expect((await mod.visit('/admin/invitations')).body).not.toContain('sign_up?invitation=')
    const [, recall = ''] = /action="(\/admin\/invitations\/\d+\/recall)"/.exec(mod.page.body) ?? []
    await mod.submit({ reason }, recall)
    expect(mod.page.body).toContain('recalled')
  })
})

describe('a sign-up', () => {
  it('is decided with others, and the approval of an unattended pod is ended by an admin', async () => {
    const signUp = (username: string) =>
      console.pod.db('pending_sign_ups').insert({
        ...{
          username,
          passwordHash: 'x',
          language: 'en',
          reason: HOSTILE,
          needsConfirmation: true,
          needsApproval: true,
        },
        ...{ network: '192.0.2.0/24', rules: ['ip_rule 7'], expiresAt: new Date(Date.now() + 86_400_000) },
      })
    expect((await mod.visit('/admin/sign-ups')).body).toContain('Nobody waits.')
    for (const name of ['gus', 'hal', 'ida']) await signUp(name)
    const { body } = await mod.visit('/admin/sign-ups')
    expect(body).toContain('<h1>Sign-ups: 3 waiting</h1>')
    expect(body).not.toContain('<script>')
    const [ida, hal] = [...body.matchAll(/name="ids\[\]" value="(\d+)"/g)].map(([, id]) => String(id))
    await mod.submit({ decision: 'reject', reason }, '/admin/sign-ups/decide')
    expect(mod.page.statusCode).toBe(422)
    await mod.visit('/admin/sign-ups')
    await mod.submit({ 'ids[]': hal ?? '', decision: 'reject', reason }, '/admin/sign-ups/decide')
    expect(mod.page.body).toContain('<h1>Sign-ups: 2 waiting</h1>')
    await mod.submit({ 'ids[]': ida ?? '', decision: 'approve', reason }, '/admin/sign-ups/decide')
    expect(await console.pod.db('pending_sign_ups').orderBy('id').pluck('username')).toEqual(['gus', 'ida'])
    const entries = await console.pod.db('audit_entries').whereLike('action', 'sign_up.%').orderBy('id')
    expect(entries.map(({ action, via }) => [action, via])).toEqual([
      ['sign_up.reject', 'console'],
      ['sign_up.approve', 'console'],
    ])

    await console.pod.db('unattended_sign_ups').insert({ since: new Date() })
    expect((await mod.visit('/admin/sign-ups')).body).toContain('An admin can end that.')
    await adm.visit('/admin/sign-ups')
    await adm.submit({ reason }, '/admin/sign-ups/attended')
    expect(adm.page.body).not.toContain('No moderator was active')
  })
})

describe('a rule for a network or a mailbox', () => {
  it('is added, changed and removed on the page', async () => {
    await mod.visit('/admin/network-rules')
    await mod.submit(
      { cidr: '198.51.100.0/24', severity: 'no_access', comment: HOSTILE, reason },
      '/admin/network-rules/ip_rules',
    )
    expect(mod.page.body).toContain('198.51.100.0/24')
    expect(mod.page.body).not.toContain('<script>')
    await mod.submit({ cidr: '127.0.0.1', severity: 'no_access', reason }, '/admin/network-rules/ip_rules')
    expect(mod.page.statusCode).toBe(422)
    await mod.visit('/admin/network-rules')
    await mod.submit(
      { kind: 'email', value: 'eve@mail.example', severity: 'approve', reason },
      '/admin/network-rules/mail_rules',
    )
    expect(mod.page.body).toContain('…@mail.example')
    expect(mod.page.body).not.toContain('eve@')
    for (const table of ['ip_rules', 'mail_rules']) {
      const { id } = await console.pod.db(table).first('id')
      const path = `/admin/network-rules/${table}/${id}`
      await mod.submit({ comment: 'Known', reason }, `${path}/change`)
      expect(await console.pod.db(table).where({ id }).first('comment')).toEqual({ comment: 'Known' })
      await mod.submit({ reason }, `${path}/remove`)
      expect(await console.pod.db(table).where({ id })).toEqual([])
    }
    expect(mod.page.body).toContain('No rules for networks.')
  })
})

describe('the audit log', () => {
  it('is filtered by its address, exported by admins only, and records the console', async () => {
    const list = await mod.visit('/admin/audit?actor=mod&action=hide+silence')
    expect(list.body).toContain('<td>silence</td>')
    expect(list.body).not.toContain('<td>block</td>')
    expect(list.body).not.toContain('/admin/audit/export')
    expect((await mod.visit('/admin/audit?actor=nobody')).body).toContain('No entries match.')

    await adm.visit('/admin/audit')
    const exported = await adm.submit({ format: 'csv' }, '/admin/audit/export')
    expect(exported.headers['content-type']).toMatch(/^text\/csv/)
    expect(exported.body).toContain('audit.export')
    expect(await console.pod.db('audit_entries').whereNot({ via: 'console' }).pluck('action')).toEqual(['role', 'role'])
  })
})

/** Sends the form of the open page to another address, as a button with `formaction` does. */
async function sendTo(browser: TestBrowser, action: string, fields: Record<string, string>) {
  const [, first = ''] = /<form class="entry" method="post" action="([^"]*)"/.exec(browser.page.body) ?? []
  return browser.submit(fields, first, action)
}

/** Types the label that the page of a dangerous change asks for. */
function confirm(browser: TestBrowser, label: string) {
  return browser.submit({ confirm: label }, browser.url.pathname)
}

describe('an entry of the audit log', () => {
  it('is the same for an action in the API, in the console and by a command, except for the way', async () => {
    const { pod } = console
    const { accessToken } = await mintToken(pod, 'mod', { scopes: ['moderation'], lifetime: 60 })
    const byCommand = await getActorByName(pod, 'mod', 'moderation')
    const call = (url: string, payload: object) =>
      console.inject({
        ...{ method: 'POST', url: `/api/admin/v1${url}`, payload },
        headers: { authorization: `Bearer ${accessToken}` },
      })
    const ways = ['api', 'console', 'command'] as const
    const entries: Record<string, unknown>[] = []
    for (const via of ways) {
      const author = await addRemotePerson(pod, `same@${via}.example`)
      const { guid } = await addPost(pod, author, { text: 'An offer' })
      const rule = { domain: `rule.${via}.example`, state: 'limited' } as const
      if (via === 'api') {
        await call(`/posts/${guid}/hide`, { reason })
        await call(`/people/${author.guid}/silence`, { reason })
        await call('/pod_rules', { ...rule, reason })
      } else if (via === 'console') {
        await mod.visit(`/admin/content/${guid}`)
        await mod.submit({ reason }, `/admin/content/${guid}/hide`)
        await mod.visit(`/admin/people/${author.guid}`)
        await mod.submit({ reason }, `/admin/people/${author.guid}/silence`)
        await sendTo(mod, '/admin/rules', { ...rule, subdomains: 'true', reason })
      } else {
        await hideContent(pod, byCommand, { type: 'post', guid }, { reason })
        await silencePerson(pod, byCommand, author.guid, { reason })
        await setPodRule(pod, byCommand, rule, { reason })
      }
      const rows = await pod.db('audit_entries').orderBy('id', 'desc').limit(3)
      for (const { id, at, hash, traceId, ...entry } of rows) {
        expect(entry.via).toBe(via)
        const text = JSON.stringify({ ...entry, via: '' })
        entries.push(JSON.parse(text.replaceAll(via, 'WAY').replaceAll(guid, 'POST').replaceAll(author.guid, 'PERSON')))
      }
    }

    expect(entries.slice(0, 3)).toMatchObject([{ action: 'pod_rule' }, { action: 'silence' }, { action: 'hide' }])
    expect(entries.slice(3, 6)).toEqual(entries.slice(0, 3))
    expect(entries.slice(6)).toEqual(entries.slice(0, 3))
  })
})
