import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { readConfig } from '../../../src/config/config.js'
import { POD_LIMITS } from '../../../src/services/limits.js'
import { readTerms } from '../../../src/services/terms.js'
import { openBrowser } from '../../support/browser/scriptless-browser.js'
import { runMails } from '../../support/mail/mail-runs.js'
import { startSmtpServer, type TestSmtpServer } from '../../support/mail/smtp-server.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const PASSWORD = 'correct horse battery'
let folder: string
let file: string
let pod: TestPod
let smtp: TestSmtpServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'terms-'))
  file = join(folder, 'terms.md')
  await writeFile(file, '# Be kind\n\nAnd read the [rules](https://rules.example/). <script>alert(1)</script>\n')
  smtp = await startSmtpServer()
  pod = await buildPod({
    environment: {
      REGISTRATIONS: 'open',
      TERMS_FILE: file,
      SIGN_IN_LIMIT: '0',
      PODMIN_CONTACT: 'help@pod.example',
      SMTP_URL: smtp.url,
      MAIL_FROM: 'pod@pod.example',
      SIGN_UP_CONFIRMATION: 'off',
    },
  })
})
afterAll(async () => {
  await pod.close()
  await smtp.close()
  await rm(folder, { recursive: true })
})
beforeEach(async () => {
  for (const table of ['outbox', 'pending_sign_ups', 'sign_up_attempts']) await pod.pod.db(table).delete()
  smtp.mails.length = 0
})

async function signUp(username: string, fields: Record<string, string>, { app, pod: { config } }: TestPod = pod) {
  const reader = openBrowser(app, config.url)
  await reader.visit('/users/sign_up')
  const email = `${username}@mail.example`
  await reader.submit({ username, email, password: PASSWORD, password_again: PASSWORD, ...fields }, '/users/sign_up')
  return reader
}
const userRow = (username: string) => pod.pod.db('users').where({ username }).first()

describe('the terms of the operator', () => {
  it('have a page, whose Markdown has no HTML, with links from the start page and the sign-up', async () => {
    const { statusCode, body } = await pod.inject('/terms')

    expect(statusCode).toBe(200)
    expect(body).toContain('<h1>Terms of The pod under test</h1>')
    expect(body).toContain('<h2 dir="auto">Be kind</h2>')
    expect(body).toContain('href="https://rules.example/"')
    expect(body).not.toContain('<script')
    for (const path of ['/', '/users/sign_up']) expect((await pod.inject(path)).body).toContain('href="/terms"')
  })

  it('must be ticked for a sign-up, and the entered values are kept', async () => {
    const reader = await signUp('anna', {})

    expect([reader.page.statusCode, await userRow('anna')]).toEqual([422, undefined])
    expect(reader.page.body).toContain('<a href="#terms">Accept the terms of this pod to create an account.</a>')
    expect(reader.page.body).toContain('aria-describedby="terms-error"')
    expect(reader.page.body).toContain('value="anna"')
  })

  it('are stored with the account in the version that was accepted', async () => {
    await signUp('bert', { terms: 'true' })

    expect(await userRow('bert')).toMatchObject({
      termsVersion: pod.pod.terms?.version,
      termsAcceptedAt: expect.any(Date),
    })
  })

  it('are stored with the account when the mailbox is confirmed later', async () => {
    await using later = await buildPod({
      environment: {
        REGISTRATIONS: 'open',
        TERMS_FILE: file,
        SMTP_URL: smtp.url,
        MAIL_FROM: 'pod@pod.example',
        SIGN_UP_CONFIRMATION: 'on',
      },
    })
    await signUp('cara', { terms: 'true' }, later)
    await runMails(later.pod)
    const [, path = ''] = /https:\/\/pod\.example(\/users\/confirm_email\S+)/.exec(smtp.mails[0]?.text ?? '') ?? []
    const reader = openBrowser(later.app, later.pod.config.url)
    await reader.visit(path)
    await reader.submit({})

    expect(await later.pod.db('users').where({ username: 'cara' }).first()).toMatchObject({
      termsVersion: later.pod.terms?.version,
      termsAcceptedAt: expect.any(Date),
    })
  })

  it('must be read again if they have changed since the form', async () => {
    const reader = await signUp('dora', { terms: 'true', terms_version: '0123456789ab' })

    expect([reader.page.statusCode, await userRow('dora')]).toEqual([422, undefined])
    expect(reader.page.body).toContain('The terms of this pod have changed.')
    expect(reader.page.body).toContain(`name="terms_version" value="${pod.pod.terms?.version}"`)
  })

  it.each([
    ['missing', undefined],
    ['empty', ' \n'],
    ['too long', 'a'.repeat(POD_LIMITS.termsBytes + 1)],
  ])('keep a pod from starting if the file is %s', async (name, text) => {
    const path = join(folder, name)
    if (text !== undefined) await writeFile(path, text)

    await expect(readTerms(readConfig({ TERMS_FILE: path }))).rejects.toThrow(/^TERMS_FILE /)
  })
})

describe('a pod without terms', () => {
  it('has no page, no box, and no version', async () => {
    await using plain = await buildPod({ environment: { REGISTRATIONS: 'open' } })

    expect((await plain.inject('/terms')).statusCode).toBe(404)
    expect((await plain.inject('/users/sign_up')).body).not.toContain('name="terms"')
    await signUp('emil', {}, plain)
    expect(await plain.pod.db('users').where({ username: 'emil' }).first()).toMatchObject({
      termsVersion: null,
      termsAcceptedAt: null,
    })
  })
})

describe('the page of the sign-in', () => {
  it('names the contact of the operator, for example for people whose account is locked', async () => {
    expect((await pod.inject('/users/sign_in')).body).toContain(
      'ask the operator: <a href="mailto:help@pod.example">help@pod.example</a>',
    )
  })

  it.each([
    [{ PODMIN_CONTACT: 'https://help.example/pod' }, '<a href="https://help.example/pod">'],
    [{ PODMIN_ACCOUNT: 'podmin' }, '<a href="/u/podmin">podmin@pod.example</a>'],
  ])('leads with %o to %s', async (environment, link) => {
    await using other = await buildPod({ environment })

    expect((await other.inject('/users/sign_in')).body).toContain(link)
  })

  it('names no contact without one', async () => {
    await using other = await buildPod()

    expect((await other.inject('/users/sign_in')).body).not.toContain('ask the operator')
  })
})

it.each(['javascript:alert(1)', 'no address', 'a@b@c', 'https://x.example/"><b>'])(
  'the setting PODMIN_CONTACT cannot be %j',
  (contact) => {
    expect(() => readConfig({ PODMIN_CONTACT: contact })).toThrow('PODMIN_CONTACT must be')
  },
)
