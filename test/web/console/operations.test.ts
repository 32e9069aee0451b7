import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { discardTaskHandlers, listQueues } from '../../../src/domain/operations/queues.js'
import { discoverPersonJob, receivePublicJob } from '../../../src/jobs/definitions.js'
import { countDelivery, countReceived, savePodActivity } from '../../../src/jobs/operations/pod-activity.js'
import { replaceChecks } from '../../../src/persistence/operations/checks.js'
import { savePictureCount } from '../../../src/persistence/photos/picture-counts.js'
import { formatCount } from '../../../src/web/console/quantities.js'
import type { TestBrowser } from '../../support/browser/scriptless-browser.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { agePasswords, type ConsolePod, startConsolePod } from '../../support/pods/console-pod.js'
import { finishBackgroundTasks } from '../../support/pods/finish-background-tasks.js'

let console: ConsolePod
let adm: TestBrowser
beforeAll(async () => {
  console = await startConsolePod()
  adm = await console.signedIn('adm')
})
afterAll(async () => {
  await console.close()
})

async function stateOf(name: string) {
  const queues = (await listQueues(console.pod)) ?? []
  return queues.find((queue) => queue.name === name)?.state
}

describe('an old password', () => {
  it('is requested again before a change, with the form kept; the right one continues the change', async () => {
    await agePasswords(console, 11)
    await adm.visit('/admin/queues/relay')
    const asked = await adm.submit({ reason: 'a "quoted" <b>reason</b>' }, '/admin/queues/relay/pause')

    expect([asked.statusCode, await stateOf('relay')]).toEqual([200, 'running'])
    expect(asked.body).toContain('<h1>Confirm that it is you</h1>')
    expect(asked.body).not.toContain('<b>reason</b>')

    const wrong = await adm.submit({ current_password: 'the password of dan' }, '/admin/queues/relay/pause')
    expect([wrong.statusCode, await stateOf('relay')]).toEqual([422, 'running'])
    expect(wrong.body).toContain('The password is wrong.')
    expect(wrong.body).not.toContain('the password of')
    expect(await console.pod.db('audit_entries').orderBy('id', 'desc').first()).toMatchObject({
      action: 'step_up.failed',
      actor: { name: 'adm', role: 'admin' },
      via: 'console',
      target: { label: 'adm' },
      traceId: expect.any(String),
    })

    const done = await adm.submit({ current_password: 'the password of adm' }, '/admin/queues/relay/pause')
    expect(done.body).toContain('<p class="notice" role="status">The queue is paused.')
    expect(done.body).toContain('a &#34;quoted&#34; &#60;b&#62;reason&#60;/b&#62;')
    expect(await stateOf('relay')).toBe('paused')

    await adm.submit({ reason: 'over' }, '/admin/queues/relay/resume')
    expect(await stateOf('relay')).toBe('running')
  })

  it('ends the session after ten wrong ones', async () => {
    const other = await console.signedIn('adm')
    await agePasswords(console, 11)
    await other.visit('/admin/queues/relay')
    await other.submit({ reason: 'a reason' }, '/admin/queues/relay/pause')
    for (let tried = 0; tried < 10; tried += 1) {
      // Later ones are delayed, which is not an attempt; the clock of the pod moves on.
      if (tried >= 5) console.later(81)
      await other.submit({ current_password: 'wrong' }, '/admin/queues/relay/pause')
    }
    console.later(-5 * 81)
    expect(other.url.pathname).toBe('/users/sign_in')
    expect((await other.visit('/admin')).body).toContain('<h1>Sign in</h1>')
  })
})

it('a page shows times in the time zone of the reader', async () => {
  const setZone = (timeZone: string) => console.pod.db('users').where({ username: 'adm' }).update({ timeZone })
  const timeOnPage = async () =>
    /<time datetime="([^"]+)">(?<text>[^<]+)</.exec((await adm.visit('/admin/queues')).body)?.groups?.['text']

  expect(await timeOnPage()).toMatch(/^\d{1,2} \w+ \d{4}, \d\d:\d\d UTC$/)
  await setZone('Asia/Tokyo')
  expect(await timeOnPage()).toMatch(/^\d{1,2} \w+ \d{4}, \d\d:\d\d GMT\+9$/)
  await setZone('UTC')
})

describe('a queue', () => {
  beforeEach(async () => {
    adm = await console.signedIn('adm')
  })

  it('needs a reason to be stopped', async () => {
    await adm.visit('/admin/queues/fetch')
    const refused = await adm.submit({ reason: ' ' }, '/admin/queues/fetch/pause')

    expect([refused.statusCode, await stateOf('fetch')]).toEqual([422, 'running'])
    expect(refused.body).toContain('This action needs a reason.')
  })

  it('is drained after its name was typed', async () => {
    await adm.visit('/admin/queues/photos')
    const asked = await adm.submit({ reason: 'a move' }, '/admin/queues/photos/drain')
    expect([asked.statusCode, await stateOf('photos')]).toEqual([200, 'running'])
    const wrong = await adm.submit({ confirm: 'fetch' }, '/admin/queues/photos/drain')
    expect([wrong.statusCode, await stateOf('photos')]).toEqual([422, 'running'])

    await adm.submit({ confirm: 'photos' }, '/admin/queues/photos/drain')

    expect(await stateOf('photos')).toBe('drained')
    expect(adm.page.body).toContain('<bdi>a move</bdi>')
    await adm.submit({ reason: 'done' }, '/admin/queues/photos/resume')
    expect(await stateOf('photos')).toBe('running')
  })

  it('a maintenance queue that finds lost work cannot be stopped', async () => {
    const page = await adm.visit('/admin/queues/maintenance')
    expect(page.body).not.toContain('/admin/queues/maintenance/pause')
  })
})

describe('dead letters', () => {
  const payload = 'the secret text of a message'

  beforeEach(async () => {
    adm = await console.signedIn('adm')
    await console.pod.db('outbox').delete()
    await console.pod.db('outbox').insert({
      ...{ queue: 'inbound', name: 'receive-public', payload, data: JSON.stringify({ fault: 'TargetNotFound' }) },
      ...{ acceptedAt: new Date(), failedAt: new Date() },
    })
  })

  const failures = async () => (await console.pod.db('outbox').select('failedAt')).map(({ failedAt }) => failedAt)

  it('are listed and shown without their payload, with an explanation of their fault', async () => {
    const list = await adm.visit('/admin/dead-letters?queue=inbound')
    const [, id = ''] = /dead-letters\/(outbox-\d+)/.exec(list.body) ?? []
    const shown = await adm.visit(`/admin/dead-letters/${id}`)

    expect(list.body).toContain('<h1>Dead letters: 1</h1>')
    expect(shown.body).toContain('never arrived')
    for (const { body } of [list, shown]) expect(body).not.toContain(payload)
  })

  it('run again, and are deleted only after a confirmation', async () => {
    await adm.visit('/admin/dead-letters?queue=inbound')
    await adm.submit({ reason: 'a test' }, '/admin/dead-letters/drop')
    expect(await failures()).toEqual([expect.any(Date)])
    await adm.visit('/admin/dead-letters?queue=inbound')
    await adm.submit({ reason: 'a test' }, '/admin/dead-letters/replay')
    expect(await failures()).toEqual([null])

    await console.pod.db('outbox').update({ failedAt: new Date() })
    await adm.visit('/admin/dead-letters?queue=inbound')
    await adm.submit({ reason: 'a test' }, '/admin/dead-letters/drop')
    expect(adm.page.body).toContain('Deletes the dead letters that match <b><bdi>inbound</bdi></b>')
    expect(adm.page.body).toContain('<dt>Dead letters</dt><dd><bdi>1</bdi>')
    await adm.submit({ confirm: 'inbound' }, '/admin/dead-letters/drop')
    expect(adm.page.statusCode).toBe(422)
    await adm.submit({ confirm: '1' }, '/admin/dead-letters/drop')
    expect(await console.pod.db('outbox').pluck('id')).toEqual([])
  })

  it('are chosen by entity and time too, and the buttons change only those', async () => {
    const old = new Date('2026-01-01T12:00:00Z')
    await console.pod.db('outbox').insert({
      ...{ queue: 'fetch', name: 'fetch', data: JSON.stringify({ fault: 'gone', record: 'post', from: 'p7.example' }) },
      failedAt: old,
    })

    const list = await adm.visit('/admin/dead-letters?entity=post&since=2026-01-01&until=2026-01-02')
    expect(list.body).toContain('<h1>Dead letters: 1</h1>')
    expect(list.body).toContain('<bdi>p7.example</bdi>')
    for (const other of ['entity=comment', 'since=2026-01-02&entity=post', 'until=2026-01-01'])
      expect((await adm.visit(`/admin/dead-letters?${other}`)).body).toContain('<h1>Dead letters: none</h1>')

    await adm.visit('/admin/dead-letters?entity=post&since=2026-01-01&until=2026-01-02')
    await adm.submit({ reason: 'a test' }, '/admin/dead-letters/replay')
    expect(await failures()).toEqual(expect.arrayContaining([null, expect.any(Date)]))
  })

  it('are counted by hour, with a link to those of each', async () => {
    const { body } = await adm.visit('/admin/dead-letters?group_by=hour')
    const [, query = ''] = /href="\/admin\/dead-letters\?(since=[^"]+)"/.exec(body) ?? []
    expect(body).not.toContain('by fault')
    const hour = (await adm.visit(`/admin/dead-letters?${query.replaceAll('&#38;', '&')}`)).body
    expect(hour).toContain('Dead letters: 1')
    // A date input shows no time, and the next search would lose it.
    expect(hour).not.toMatch(/<input[^>]*type="date"/)
  })

  it('show work on them in the background also after it has failed', async () => {
    await console.pod.db('operations').insert({
      ...{ kind: 'dead_letters.replay', target: 'gone', state: 'failed', actor: JSON.stringify({ name: 'adm' }) },
      ...{ reason: 'after the outage', total: 2_000 },
    })
    const { body } = await adm.visit('/admin/dead-letters')
    expect(body).toContain('<bdi>after the outage</bdi>')
    expect(body).toContain('The work has failed.')
    await console.pod.db('operations').delete()
  })

  it.each(['queue=none', 'since=yesterday'])('are not listed with %s', async (query) => {
    expect((await adm.visit(`/admin/dead-letters?${query}`)).statusCode).toBe(422)
  })

  it('are never changed all at once', async () => {
    const form = await adm.visit('/admin/dead-letters?queue=inbound')
    const [, token = ''] =
      /action="\/admin[^>]*>\s*<input type="hidden" name="form" value="([^"]*)"/.exec(form.body) ?? []
    expect(token).not.toBe('')
    await adm.submit({ queue: '', reason: 'a test' }, '/admin/dead-letters/replay')
    expect(adm.page.statusCode).toBe(422)
    expect(await failures()).toEqual([expect.any(Date)])
  })
})

it('a chart has a key that says which line is which, and its figures once', async () => {
  adm = await console.signedIn('adm')
  const { body } = await adm.visit('/admin/queues')
  expect(body).toContain('<span class="key" aria-hidden="true"></span>Delivered: ')
  expect(body).toContain('<span class="key second" aria-hidden="true"></span>Failed: ')
  expect(body).toContain('role="img" aria-label="Delivery attempts">')
})

describe('rejected messages', () => {
  it('have a form for a release only if a filter rejected them, and say when nothing was changed', async () => {
    adm = await console.signedIn('adm')
    const row = { receivedAt: new Date(), host: 'q.example', payload: '<xml/>', bytes: 6 }
    await console.pod.db('quarantine').insert([
      { ...row, fault: 'Filtered', isWhole: false, digest: 'one' },
      { ...row, fault: 'InvalidSignature', isWhole: true, digest: 'two' },
    ])
    const formsOf = async (query: string) =>
      (await adm.visit(`/admin/quarantine?${query}`)).body.includes('action="/admin/quarantine/release"')
    expect([await formsOf('fault=InvalidSignature'), await formsOf('host=q.example')]).toEqual([false, true])

    expect(await formsOf('fault=Filtered')).toBe(true)
    await adm.submit({ reason: 'a test' }, '/admin/quarantine/replay')
    expect(adm.page.body).toContain('No message was changed.')
    await console.pod.db('quarantine').delete()
  })
})

describe('a trace', () => {
  it('is not missing because the database does not answer', async () => {
    adm = await console.signedIn('adm')
    expect((await adm.visit(`/admin/traces/${randomUUID()}`)).statusCode).toBe(404)
    await console.pod.db.raw('alter table quarantine rename to quarantine_away')
    try {
      expect((await adm.visit(`/admin/traces/${randomUUID()}`)).statusCode).toBe(500)
    } finally {
      await console.pod.db.raw('alter table quarantine_away rename to quarantine')
    }
  })
})

describe('the page of a queue', () => {
  beforeEach(async () => {
    adm = await console.signedIn('adm')
    await console.pod.jobs.discard('fetch')
  })

  it('shows the jobs of a state without their data, and the runs by how they ended', async () => {
    await console.pod.jobs.add(discoverPersonJob, { address: 'secret@far.example' }, { delay: 3_600_000 })

    const waiting = (await adm.visit('/admin/queues/fetch')).body
    expect(waiting).toContain('There are no such jobs.')
    const delayed = (await adm.visit('/admin/queues/fetch?state=delayed')).body
    expect(delayed).toContain('<bdi>discover-person</bdi>')
    expect(delayed).not.toContain('secret@')
    for (const end of ['done', 'failed', 'all']) expect(delayed).toContain(`<th scope="row">${end}</th>`)
  })

  it('makes only the jobs of a pod, or with a name, due', async () => {
    for (const address of ['ann@one.example', 'ann@two.example'])
      await console.pod.jobs.add(discoverPersonJob, { address }, { delay: 3_600_000 })
    const delayed = async () => (await console.pod.jobs.counts('fetch')).delayed
    await console.pod.jobs.pause('fetch')

    await adm.visit('/admin/queues/fetch')
    await adm.submit({ reason: 'a test', name: 'fetch-entity' }, '/admin/queues/fetch/promote')
    expect(adm.page.body).toContain('No job was changed')
    expect(await delayed()).toBe(2)
    await adm.visit('/admin/queues/fetch')
    await adm.submit({ reason: 'a test', pod: 'One.example' }, '/admin/queues/fetch/promote')
    expect(await delayed()).toBe(1)
    await console.pod.jobs.resume('fetch')
  })

  it('shows the state, and changes nothing, when another admin was quicker', async () => {
    const other = await console.signedIn('adm')
    await adm.visit('/admin/queues/notify')
    await other.visit('/admin/queues/notify')
    await other.submit({ reason: 'the first' }, '/admin/queues/notify/pause')

    const late = await adm.submit({ reason: 'the second' }, '/admin/queues/notify/drain')
    expect(late.statusCode).toBe(409)
    for (const text of ['Changed in the meantime', '<bdi>the first</bdi>', '<bdi>the second</bdi>'])
      expect(late.body).toContain(text)
    expect(await stateOf('notify')).toBe('paused')
    await other.submit({ reason: 'over' }, '/admin/queues/notify/resume')
  })

  it('says how much space accepted messages take, and when it is used up', async () => {
    const size = vi.spyOn(console.app.inboundEndpoint.packing, 'size')
    try {
      expect((await adm.visit('/admin/queues/inbound')).body).toContain('Accepted messages take 0 B of 256 MiB')
      expect((await adm.visit('/admin/queues/fetch')).body).not.toContain('INBOUND_BYTES')
      await console.pod.db('figures').insert({
        ...{
          name: 'pod_received_messages_total',
          labels: JSON.stringify({ channel: 'public', outcome: 'accepted' }),
          count: 15 * 60 * 1_024,
        },
        minute: console.pod.db.raw(`date_trunc('minute', now()) - interval '3 minutes'`),
      })
      await adm.visit('/admin/queues/inbound')
      await adm.submit({ reason: 'a test' }, '/admin/queues/inbound/pause')
      size.mockReturnValue({ heldBytes: 0, queuedBytes: 128 * 2 ** 20, queuedMessages: 128 * 2 ** 10 })
      expect((await adm.visit('/admin/queues/inbound')).body).toContain('this space is used up in 2 min')
      size.mockReturnValue({ heldBytes: 1, queuedBytes: 256 * 2 ** 20, queuedMessages: 1 })
      expect((await adm.visit('/admin/queues/inbound')).body).toMatch(/role="alert">[^<]*other pods get 503/)
    } finally {
      size.mockRestore()
      await console.pod.db('figures').delete()
      await adm.submit({ reason: 'over' }, '/admin/queues/inbound/resume')
    }
  })
})

describe('pods', () => {
  it('are found by a part of their host, taken literally', async () => {
    const mod = await console.signedIn('mod')
    await addRemotePerson(console.pod, 'quin@under_score.example')
    await addRemotePerson(console.pod, 'sam@underxscore.example')

    const { body } = await mod.visit('/admin/pods?q=r_s')
    expect(body).toContain('under_score.example')
    expect(body).not.toContain('underxscore.example')
    expect((await mod.visit('/admin/pods?q=%25')).body).toContain('No pods match.')
    for (const sort of ['host', 'waiting', 'failures', 'x']) {
      expect((await mod.visit(`/admin/pods?sort=${sort}&state=offline&page=2`)).statusCode).toBe(200)
    }
  })

  it('are blocked by a moderator who has typed the name', async () => {
    const mod = await console.signedIn('mod')
    const eve = await addRemotePerson(console.pod, 'eve@evil.example')
    const { id: userId } = await console.pod.db('users').first('id')
    await console.pod.db('contacts').insert({ userId, personId: eve.id, receiving: true })
    const page = await mod.visit('/admin/pods/evil.example')
    expect(page.body).not.toContain('/sleep')

    await mod.submit({ reason: 'spam' }, '/admin/pods/evil.example/block')
    for (const count of ['People', 'Local followers', 'Contacts'])
      expect(mod.page.body).toContain(`<dt>${count}</dt><dd><bdi>1</bdi>`)
    await mod.submit({ confirm: 'evil.example' }, '/admin/pods/evil.example/block')
    expect(mod.page.body).toContain('<h1>evil.example: blocked</h1>')
    await mod.submit({ reason: 'over' }, '/admin/pods/evil.example/unblock')
    expect(mod.page.body).not.toContain('<h1>evil.example: blocked</h1>')
  })
})

describe('settings', () => {
  it('are shown without secrets', async () => {
    const { body } = await (await console.signedIn('adm')).visit('/admin/settings')
    expect(body).toContain('<th scope="row">POD_URL</th><td class="wide"><bdi>https://pod.example</bdi></td>')
    for (const secret of [console.pod.config.secretKey, new URL(console.pod.config.databaseUrl ?? '').password]) {
      if (secret) expect(body).not.toContain(String(secret))
    }
  })
})

describe('every change', () => {
  it('has an audit entry with person, reason and target', async () => {
    const entries = await console.pod
      .db('audit_entries')
      .orderBy('id')
      .select('actor', 'via', 'action', 'target', 'reason')

    expect(entries.map(({ action }) => action)).toEqual(
      expect.arrayContaining([
        ...['queue.pause', 'queue.resume', 'queue.drain', 'dead_letters.replay', 'dead_letters.drop'],
        ...['pod_rule', 'pod_rule.delete'],
      ]),
    )
    expect(entries).toContainEqual({
      actor: { guid: expect.any(String), name: 'mod', role: 'moderator' },
      via: 'console',
      action: 'pod_rule',
      target: { type: 'pod_rule', guid: 'evil.example', label: 'evil.example' },
      reason: 'spam',
    })
  })
})

describe('the checks of the pod', () => {
  it('are on a page, those that need an action first, and a failed one is a warning of the overview', async () => {
    adm = await console.signedIn('adm')
    expect((await adm.visit('/admin/checks')).body).toContain('No check was made yet.')
    const check = { message: 'Because <b>of it</b>.', certificateEndsAt: null }
    await replaceChecks(console.pod.db, [
      { ...check, name: 'clock', state: 'ok' },
      { ...check, name: 'events', state: 'fail' },
    ])
    const { body } = await adm.visit('/admin/checks')

    expect(body).toContain('<h1>Checks: 1 to look at</h1>')
    expect(body.indexOf('events')).toBeLessThan(body.indexOf('clock'))
    expect(body).not.toContain('<b>of it</b>')
    console.later(3)
    expect((await adm.visit('/admin')).body).toContain('The <a href="/admin/checks">check</a> of events has failed.')
  })
})

describe('the overview', () => {
  const minutesAgo = (minutes: number) => new Date(console.pod.now().getTime() - minutes * 60_000)
  const overview = async () => {
    console.later(3) // the figures are shared for two seconds
    return (await adm.visit('/admin')).body
  }

  it('names the sign-ups that wait for a decision, and the oldest', async () => {
    adm = await console.signedIn('adm')
    expect(await overview()).toContain('Nothing waits for you.')
    const signUp = { passwordHash: 'x', language: 'en', reason: '', needsConfirmation: false, needsApproval: true }
    const rest = { network: '192.0.2.0/24', rules: [], expiresAt: minutesAgo(-60) }
    await console.pod.db('pending_sign_ups').insert([
      { ...signUp, ...rest, username: 'una', createdAt: new Date('2026-01-02T03:04:00Z') },
      { ...signUp, ...rest, username: 'vera', createdAt: new Date('2026-01-03T03:04:00Z') },
    ])

    expect(await overview()).toMatch(/<a href="\/admin\/sign-ups">2 sign-ups<\/a>, the oldest of <time[^>]*>2 Jan 2026/)
    await console.pod.db('pending_sign_ups').delete()
  })

  it('says whether all dead letters are counted, or that their number is unknown', async () => {
    const tile = async () => /<b>([^<]*)<\/b> <a href="\/admin\/dead-letters">dead letters/.exec(await overview())?.[1]
    const addFailedJobs = (from: number, to: number) =>
      console.pod.db.raw(
        `insert into bullmq.job (queue, id, seq, name, state, added_at_ms, finished_at_ms, failed_reason)
         select 'notify', 'failed-' || number, number, 'x', 'failed', 0, number, case number % 2 when 0 then 'gone' else 'crashed' end
         from generate_series(${from}, ${to}) as number`,
      )
    const former = Number(await tile())
    await addFailedJobs(1, 1_000)
    const all = await tile()
    await addFailedJobs(1_001, 1_001)
    const some = await tile()
    const read = vi.spyOn(console.pod.jobs, 'queuesWithFailedJobs').mockRejectedValue(new Error('the queue is away'))
    const none = await tile()
    read.mockRestore()
    await console.pod.db.raw(`delete from bullmq.job where id like 'failed-%'`)

    const total = formatCount(former + 1_000)
    expect([all, some, none]).toEqual([total, `at least ${total}`, 'unknown'])
  })

  it('shows the age of the last backup, and warns of an old one', async () => {
    expect(await overview()).toContain('Last backup</a>: never.')
    const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000) // by the clock of the database
    const at = hoursAgo(27)
    await console.pod.db('backup_runs').insert({ id: 'late', process: 'restic', startedAt: at, endedAt: at })
    const late = await overview()
    await console.pod.db('backup_runs').update({ startedAt: hoursAgo(25) })
    const inTime = await overview()
    await console.pod.db('backup_runs').delete()

    expect(late).toContain('The last <a href="/admin/storage">backup</a> is 27 h old.')
    expect(inTime).toContain('Last backup</a>: 25 h ago.')
    expect(inTime).not.toContain('old.')
  })

  it('warns of processes of different versions after 15 minutes', async () => {
    const warning = 'of different versions run beside each other'
    const newer = randomUUID()
    const facts = JSON.stringify({ rssBytes: 1, heapBytes: 1, busyPercent: 0, queues: [], jobs: [] })
    const row = { kind: 'worker', host: 'a', pid: 1, seenAt: console.pod.now(), facts }
    await console.pod.db('processes').insert([
      { ...row, id: randomUUID(), version: '1.0.0', startedAt: minutesAgo(60) },
      { ...row, id: newer, version: '1.0.1', startedAt: minutesAgo(14) },
    ])
    const workersPage = async () => (await adm.visit('/admin/workers')).body
    const restarting = [await overview(), await workersPage()]
    await console.pod
      .db('processes')
      .where({ id: newer })
      .update({ startedAt: minutesAgo(16) })
    const left = [await overview(), await workersPage()]
    await console.pod.db('processes').delete()

    expect(restarting.map((body) => body.includes(warning))).toEqual([false, false])
    expect(left[0]).toContain(warning)
    expect(left[1]).toContain('The processes have different versions: 1.0.0, 1.0.1.')
    expect(restarting[1]).not.toContain('different versions')
  })
})

describe('the page of a pod', () => {
  it('shows the messages of each day, and the duration of deliveries', async () => {
    const { podId } = await addRemotePerson(console.pod, 'ruth@busy.example')
    countDelivery(console.pod.db, 'busy.example', { isDelivered: true, ms: 40 })
    countReceived(console.pod.db, 'busy.example', 'received')
    await savePodActivity(console.pod)
    await console.pod.db('pod_days').insert({ podId, day: '2020-01-01', failed: 77 })

    const { body } = await adm.visit('/admin/pods/busy.example')
    expect(body).toMatch(/<\/time><\/th><td class="number">1<\/td><td class="number">0<\/td><td class="number">1<\/td>/)
    expect(body).toContain('median 38 ms, 95 % within 49 ms.')
    expect(body).not.toContain('>77<')
  })

  it('shows the oldest delivery, relations, the end of the certificate and whether deliveries are sent now', async () => {
    const { podId, id: personId } = await addRemotePerson(console.pod, 'ruth@related.example')
    const { db } = console.pod
    const { id: userId } = await db('users').where({ username: 'adm' }).first('id')
    await db('contacts').insert({ userId, personId, receiving: true })
    const [{ id: messageId }] = await db('outbound_messages')
      .insert({ record: 'participation', guid: '0123456789abcdef', verb: 'create', public: true, entity: '' })
      .returning('id')
    await db('deliveries').insert({ messageId, podId, createdAt: new Date(console.pod.now().getTime() - 7_200_000) })
    const steps = [{ step: 'tls', ok: true, ms: 3, detail: 'TLS', certificateEndsAt: '2027-02-03T00:00:00.000Z' }]
    await db('pods')
      .where({ id: podId })
      .update({
        failures: 2,
        drainedUntil: new Date(Date.now() + 60_000),
        drainedBy: randomUUID(),
        probe: JSON.stringify({ at: new Date(0).toISOString(), steps }),
      })

    const { body } = await adm.visit('/admin/pods/related.example')
    expect(body).toMatch(/<dt>Certificate ends<\/dt><dd><time datetime="2027-02-03/)
    expect(body).toContain('<dt>Followed by local users</dt><dd>1 relations</dd>')
    expect(body).toContain('<dt>Following local users</dt><dd>0 relations</dd>')
    expect(body).toMatch(/<dt>Oldest<\/dt><dd><time[^>]*>2 h ago/)
    expect(body).toContain('one delivery, to find out whether the pod answers again')
    await db('deliveries').delete()
  })

  it('shows its last ten errors, the latest first, and an error that is stored again only once', async () => {
    const { podId } = await addRemotePerson(console.pod, 'ruth@broken.example')
    const other = () => console.pod.db('pods').where({ id: podId })
    for (let failures = 1; failures <= 12; failures += 1) {
      const health = { failures, status: 'net_failed', lastError: `<i>failure ${failures}` }
      await other().update(health)
      await other().update(health)
    }
    await other().update({ failures: 0, status: 'no_errors', lastError: null })

    const { body } = await adm.visit('/admin/pods/broken.example')
    expect(body.match(/&#60;i&#62;failure \d+/g)).toEqual(
      Array.from({ length: 10 }, (_, index) => `&#60;i&#62;failure ${12 - index}`),
    )
    expect(body).not.toContain('<i>failure')
  })
})

describe('the page of an inbound queue', () => {
  it('shows the progress while many jobs are discarded', async () => {
    await console.pod.jobs.pause('inbound')
    const accepted = { acceptedAt: new Date(0).toISOString(), messages: ['<xml/>'] }
    await console.pod.jobs.addAll(receivePublicJob, Array(201).fill(accepted))
    const { waiting } = await console.pod.jobs.counts('inbound')
    await adm.visit('/admin/queues/inbound')
    await adm.submit({ reason: '<i>a flood' }, '/admin/queues/inbound/discard')

    const { body } = await adm.submit({ confirm: 'inbound' }, '/admin/queues/inbound/discard')
    expect(body).toContain('A worker does this in the background.')
    expect(body).toContain('Discarding of jobs: <bdi>&#60;i&#62;a flood</bdi>')
    expect(body).toContain(`<td class="number">0</td><td class="number">${waiting}</td>`)
    await finishBackgroundTasks(console.pod, discardTaskHandlers)
    expect((await adm.visit('/admin/queues/inbound')).body).not.toContain('Discarding of jobs')
  })
})

describe('the storage page', () => {
  it('shows the last count of the pictures, with those without a photo', async () => {
    expect((await adm.visit('/admin/storage')).body).toContain('none was counted yet')
    const count = { after: 'x', files: 1_234, bytes: 5_000_000, orphans: 56, orphanBytes: 7_000, countedAt: new Date() }
    await savePictureCount(console.pod.db, 'complete', count)

    const { body } = await adm.visit('/admin/storage')
    expect(body).toContain('<dd>1,234</dd>')
    expect(body).toMatch(/<dt>Without a photo<\/dt><dd>56, /)
  })
})
