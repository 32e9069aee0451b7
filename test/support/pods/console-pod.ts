import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { changeRole } from '../../../src/domain/moderation/change-role.js'
import type { Services } from '../../../src/services/services.js'
import { openBrowser, type TestBrowser } from '../browser/scriptless-browser.js'
import { buildPod, type PodOptions, type TestPod } from './build-pod.js'

const CONSOLE_PEOPLE = ['dan', 'mod', 'adm'] as const

/** A known pod, so that its page has forms. */
const POD_WITH_FORMS = 'r.example'

type ConsolePerson = (typeof CONSOLE_PEOPLE)[number]

/** A pod with a user without a role (dan), a moderator (mod) and an administrator (adm). */
export interface ConsolePod extends TestPod {
  readonly url: string
  /** A browser in which the person is signed in; a new one for each call. */
  signedIn(name: ConsolePerson): Promise<TestBrowser>
  visitor(): TestBrowser
  /** Moves the clock of the pod forward. */
  later(seconds: number): void
}

export async function startConsolePod(options: PodOptions = {}): Promise<ConsolePod> {
  let clockOffsetSeconds = 0
  const testPod = await buildPod({
    ...options,
    change: (opened) => ({ ...opened, now: () => new Date(Date.now() + clockOffsetSeconds * 1_000) }),
    environment: { SIGN_IN_LIMIT: '0', PAGE_LIMIT: '0', ...options.environment },
  })
  const { pod, app } = testPod
  await testPod.people(...CONSOLE_PEOPLE)
  await giveRole(pod, 'mod', 'moderator')
  await giveRole(pod, 'adm', 'admin')
  await pod.db('pods').insert({ host: POD_WITH_FORMS, port: 443, ssl: true })
  const visitor = () => openBrowser(app, pod.config.url)
  return {
    ...testPod,
    url: pod.config.url,
    visitor,
    later(seconds) {
      clockOffsetSeconds += seconds
    },
    async signedIn(name) {
      const browser = visitor()
      await browser.visit('/users/sign_in')
      await browser.submit({ username: name, password: `the password of ${name}` })
      return browser
    },
  }
}

/** The form token of the session, from a page that every person of the staff may open. */
export async function formTokenOf(browser: TestBrowser | undefined): Promise<string> {
  const { body } = (await browser?.visit(`/admin/pods/${POD_WITH_FORMS}`)) ?? {}
  const token = body?.match(/<form[^>]* action="\/admin[^>]*>\s*<input type="hidden" name="form" value="([^"]*)"/)?.[1]
  if (token === undefined) throw new Error(`The page has no form of the console: ${body}`)
  return token
}

/** Makes the sign-in of all sessions older, so that changes need the password again. */
export async function agePasswords({ pod }: Pick<TestPod, 'pod'>, minutes: number): Promise<void> {
  await pod.db.raw(
    `update oidc_records set payload = jsonb_set(payload, '{loginTs}', to_jsonb((payload ->> 'loginTs')::bigint - ?::integer * 60))
     where model = 'Session'`,
    [minutes],
  )
}

export async function giveRole(pod: Services, username: string, role: 'none' | 'moderator' | 'admin'): Promise<void> {
  const person = await pod.db('people').join('users', 'users.personId', 'people.id').where({ username }).first('guid')
  await changeRole(pod, COMMAND_ACTOR, person.guid, { role, reason: 'For a test', confirm: username })
}
