import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Power } from '../../domain/accounts/role-powers.js'
import type { BackgroundTask } from '../../domain/operations/background-tasks.js'
import type { RefusalReason } from '../../domain/refusal-reasons.js'
import { Refusal } from '../../domain/refusals.js'
import { pathId, pathText } from '../forms/form-fields.js'
import { formText } from '../forms/form-text.js'
import { withQuery } from '../pages/list-navigation.js'
import { html, type Markup } from '../pages/markup.js'
import { sendConfirmationPage } from './confirmation.js'
import { sendConsolePage } from './console-page.js'
import type { FLASH_MESSAGES } from './flash-messages.js'
import { detailList } from './tables.js'

/** The current version and state of the object of a form. */
export interface CurrentState {
  readonly version: string
  /** Shown next to the form when it is outdated. */
  readonly state: Markup
}

export interface FormAction {
  readonly path: string
  readonly power: Power
  /** The heading of the page that asks for a confirmation. */
  readonly title: string
  readonly flash: keyof typeof FLASH_MESSAGES
  /** The page of the target. */
  readonly page: string | ((request: FastifyRequest) => string)
  /** Returns the current state of the object, for forms with a `version`. */
  readonly current?: (request: FastifyRequest) => Promise<CurrentState>
  /** The text that has to be typed if the use case needs a confirmation; undefined: it never does. */
  readonly label?: (request: FastifyRequest, preview: Preview) => string | Promise<string>
  /** What the change does, above the counts of its preview. */
  readonly effect?: (request: FastifyRequest) => Markup
  /** Runs the use case. A `ShowPage` that it returns is shown instead of the page of the target. */
  run(request: FastifyRequest, confirm: string | undefined, reply: FastifyReply): Promise<unknown>
}

/** The page that a form leads to, if it is not that of the target, and its message, if it is not that of the action. */
export class ShowPage {
  readonly path: string
  readonly flash: keyof typeof FLASH_MESSAGES | undefined

  constructor(path: string, flash?: keyof typeof FLASH_MESSAGES) {
    this.path = path
    this.flash = flash
  }
}

/** The page after a change, which a task in the background does if it concerns much. */
export function showAfterChange(path: string, task: BackgroundTask | undefined): ShowPage {
  return new ShowPage(path, task === undefined ? undefined : 'work_started')
}

type Preview = Readonly<Record<string, unknown>>

/** The first arguments of a use case about the object in the path. The services add the trace of the request to the rows that it causes. */
export function useCaseArguments(request: FastifyRequest) {
  return [request.services, request.console.actor, pathId(request)] as const
}

/** Adds the address to which a form is sent. The change is made, refused with its reason, or shown first for a confirmation. */
export function addFormAction(app: FastifyInstance, action: FormAction): void {
  const { path, power, flash } = action
  const pageOf = (request: FastifyRequest) => (typeof action.page === 'string' ? action.page : action.page(request))
  app.post(path, { config: { power }, schema: { hide: true } }, async (request, reply) => {
    try {
      if (await sendIfOutdated(request, reply, pageOf(request), action.current)) return reply
      const outcome = await action.run(request, formText(request, 'confirm'), reply)
      const { path: page, flash: message } = outcome instanceof ShowPage ? outcome : new ShowPage(pageOf(request))
      return reply.redirect(withQuery(page, { flash: message ?? flash }), 303)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (error.reason !== 'confirmation_needed' || action.label === undefined) {
        return sendRefusalPage(request, reply, error, pageOf(request))
      }
      const preview = previewIn(error)
      const label = await action.label(request, preview)
      const effects = html`${action.effect?.(request) ?? ''}${previewList(preview)}`
      return sendConfirmationPage(request, reply, { title: action.title, label, preview: effects })
    }
  })
}

/**
 * Shows the form and the current state if the form is of an earlier version. Returns whether it is; never the reply, which would be
 * awaited as a promise.
 */
async function sendIfOutdated(
  request: FastifyRequest,
  reply: FastifyReply,
  page: string,
  readCurrent: FormAction['current'],
): Promise<boolean> {
  const version = formText(request, 'version')
  if (version === undefined || readCurrent === undefined) return false
  const current = await readCurrent(request)
  if (version === current.version) return false
  sendOutdatedPage(request, reply, current.state, page)
  return true
}

/** Shows the reason why nothing was changed. */
export function sendRefusalPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { reason, message }: Refusal,
  page = '/admin',
): FastifyReply {
  return sendConsolePage(request, reply, {
    title: 'Nothing was changed',
    status: STATUS_OF_REASON[reason] ?? 422,
    content: html`<section class="card"><p class="alert" role="alert">${message}</p>
<p>Go back in your browser to correct the form, or open <a href="${page}">the page</a> again.</p></section>`,
  })
}

/** The status of a refusal; of all others it is 422. */
const STATUS_OF_REASON: Readonly<Partial<Record<RefusalReason, 403 | 404 | 409>>> = {
  role_needed: 403,
  target_outranks: 403,
  not_found: 404,
  post_not_found: 404,
  comment_not_found: 404,
  person_not_found: 404,
  pod_not_found: 404,
  action_not_found: 404,
  case_not_found: 404,
  picture_not_found: 404,
  cluster_not_found: 404,
  filter_not_found: 404,
  rule_not_found: 404,
  import_not_found: 404,
  sign_up_not_found: 404,
  invitation_not_found: 404,
  operation_not_found: 404,
  dead_letter_not_found: 404,
  quarantined_not_found: 404,
  bad_transition: 409,
  taken_by_other: 409,
  not_undoable: 409,
  last_admin: 409,
  operation_running: 409,
  podmin_account: 409,
  confirmation_needed: 409,
}

/** Shows the form and the changes since it was opened. Nothing is done. */
function sendOutdatedPage(request: FastifyRequest, reply: FastifyReply, state: Markup, page: string): FastifyReply {
  const sent = Object.entries(Object(request.body)).flatMap(([name, value]) =>
    HIDDEN_FIELDS.has(name) || value === ''
      ? []
      : [[wordsOfName(name), html`<bdi>${[value].flat().join(', ')}</bdi>`] as const],
  )
  return sendConsolePage(request, reply, {
    title: 'Changed in the meantime',
    status: 409,
    content: html`<section class="card"><p class="alert" role="alert">This has changed since you opened the page. No change was made.</p>
<div class="choices"><div><h2>Now</h2>${state}</div><div><h2>Your form</h2>${detailList(sent)}</div></div>
<p><a href="${page}">Open the page as it is now</a></p></section>`,
  })
}

const HIDDEN_FIELDS: ReadonlySet<string> = new Set(['form', 'idempotency_key', 'version', 'current_password'])

function previewIn({ details: { preview } }: Refusal): Preview {
  return typeof preview === 'object' && preview !== null ? (preview as Preview) : {}
}

/** The counts of a preview, as the admin API names them. */
export function previewList(preview: object): Markup {
  return detailList(
    Object.entries(preview).map(([name, value]) => {
      const text = name === 'port' ? String(value ?? 'all') : textOf(value)
      return [wordsOfName(name), html`<bdi>${text}</bdi>`] as const
    }),
  )
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return 'none'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return value.toLocaleString('en-GB')
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(textOf).join(', ')
  if (typeof value === 'object' && 'exact' in value && 'count' in value) return `more than ${textOf(value.count)}`
  return typeof value === 'object' ? Object.values(value).map(textOf).join(' ') : String(value)
}

/** `deliveries_waiting` → "Deliveries waiting". */
function wordsOfName(name: string): string {
  const text = name.replaceAll(/[_.]/g, ' ')
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}

/** A page of the console about the object that the parameters of the path name. */
export function pathWithParameters(path: string): (request: FastifyRequest) => string {
  return (request) => path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(pathText(request, name)))
}
