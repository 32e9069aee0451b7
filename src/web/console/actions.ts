import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Power } from '../../domain/accounts/role-powers.js'
import { Refusal } from '../../domain/refusals.js'
import { formText } from '../oidc/form-text.js'
import { withQuery } from '../pages/list-navigation.js'
import { html, type Markup } from '../pages/markup.js'
import { sendConfirmationPage } from './confirmation.js'
import { sendConsolePage } from './console-page.js'
import { pathText } from './form-fields.js'
import type { NOTICES } from './notices.js'
import { factList } from './tables.js'

/** What a form was made from, and what has happened since. */
export interface CurrentState {
  readonly version: string
  /** Shown beside the form when it is outdated. */
  readonly state: Markup
}

export interface FormAction {
  readonly path: string
  readonly power: Power
  /** The heading of the page that asks for a confirmation. */
  readonly title: string
  readonly notice: keyof typeof NOTICES
  /** The page of the target. */
  readonly page: string | ((request: FastifyRequest) => string)
  /** For forms with a `version`. */
  readonly current?: (request: FastifyRequest) => Promise<CurrentState>
  /** What has to be typed if the use case needs a confirmation; without it, the use case never does. */
  readonly label?: (request: FastifyRequest, preview: Preview) => string | Promise<string>
  /** Runs the use case. A path that it returns is shown instead of the page of the target. */
  run(request: FastifyRequest, confirm: string | undefined, reply: FastifyReply): Promise<unknown>
}

type Preview = Readonly<Record<string, unknown>>

/** Adds the address to which a form is sent. The change is made, refused with its reason, or shown first for a confirmation. */
export function addFormAction(app: FastifyInstance, action: FormAction): void {
  const { path, power, notice } = action
  const pageOf = (request: FastifyRequest) => (typeof action.page === 'string' ? action.page : action.page(request))
  app.post(path, { config: { power }, schema: { hide: true } }, async (request, reply) => {
    try {
      const current = await action.current?.(request)
      const version = formText(request, 'version')
      if (current !== undefined && version !== undefined && version !== current.version) {
        return sendOutdatedPage(request, reply, current.state, pageOf(request))
      }
      const shown = await action.run(request, formText(request, 'confirm'), reply)
      return reply.redirect(withQuery(typeof shown === 'string' ? shown : pageOf(request), { notice }), 303)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (error.reason !== 'confirmation_needed' || action.label === undefined) {
        return sendRefusalPage(request, reply, error, pageOf(request))
      }
      const preview = previewIn(error)
      const label = await action.label(request, preview)
      return sendConfirmationPage(request, reply, { title: action.title, label, preview: previewList(preview) })
    }
  })
}

/** Tells why nothing was changed. */
export function sendRefusalPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { reason, message }: Refusal,
  page = '/admin',
): FastifyReply {
  return sendConsolePage(request, reply, {
    title: 'Nothing was changed',
    status: statusOf(reason),
    content: html`<section class="card"><p class="alert" role="alert">${message}</p>
<p>Go back in your browser to correct the form, or open <a href="${page}">the page</a> again.</p></section>`,
  })
}

function statusOf(reason: string): number {
  if (reason.endsWith('_not_found') || reason === 'not_found') return 404
  if (reason === 'role_needed' || reason === 'target_outranks') return 403
  return CONFLICTS.has(reason) ? 409 : 422
}

const CONFLICTS: ReadonlySet<string> = new Set([
  'bad_transition',
  'taken_by_other',
  'not_undoable',
  'last_admin',
  'operation_running',
  'podmin_account',
  'confirmation_needed',
])

/** Shows the form and what has changed since it was opened. Nothing is done. */
function sendOutdatedPage(request: FastifyRequest, reply: FastifyReply, state: Markup, page: string): FastifyReply {
  const sent = Object.entries(Object(request.body)).flatMap(([name, value]) =>
    HIDDEN_FIELDS.has(name) || value === ''
      ? []
      : [[wordsOfName(name), html`<bdi>${[value].flat().join(', ')}</bdi>`] as const],
  )
  return sendConsolePage(request, reply, {
    title: 'Changed in the meantime',
    status: 409,
    content: html`<section class="card"><p class="alert" role="alert">This was changed after you had opened the page. Nothing has been done.</p>
<div class="choices"><div><h2>Now</h2>${state}</div><div><h2>Your form</h2>${factList(sent)}</div></div>
<p><a href="${page}">Open the page as it is now</a></p></section>`,
  })
}

const HIDDEN_FIELDS: ReadonlySet<string> = new Set(['form', 'idempotency_key', 'version', 'current_password'])

function previewIn({ details: { preview } }: Refusal): Preview {
  return typeof preview === 'object' && preview !== null ? (preview as Preview) : {}
}

/** The counts of a preview, as the admin API names them. */
export function previewList(preview: object): Markup {
  return factList(
    Object.entries(preview).map(([name, value]) => [wordsOfName(name), html`<bdi>${textOf(value)}</bdi>`] as const),
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

/** A page of the console about the thing that the parameters of the path name. */
export function pathWithParameters(path: string): (request: FastifyRequest) => string {
  return (request) => path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(pathText(request, name)))
}
