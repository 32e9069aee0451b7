import type { FastifyPluginAsync } from 'fastify'
import { readDeliveriesOfPost } from '../../domain/outbound/post-deliveries.js'
import type { DeliveryReport } from '../../persistence/outbound/delivery-report.js'
import { formatAddressHost } from '../../protocol/address.js'
import { pathText } from '../forms/form-fields.js'
import { html, type Markup } from '../pages/markup.js'
import { sendConsolePage } from './console-page.js'
import { explainFault } from './explain-fault.js'
import { formatCount, formatTime } from './quantities.js'
import { dataTable, listCard, stateBadge } from './tables.js'

/** Missing deliveries shown of each message. */
const MISSING_SHOWN = 200
const ARRIVED_SHOWN = 200

/** `/admin/deliveries/:guid`: where the messages about a post have arrived. */
export const deliveryRoutes: FastifyPluginAsync = async (app) => {
  app.get(
    '/admin/deliveries/:guid',
    { config: { power: 'administration' }, schema: { hide: true } },
    async (request, reply) => {
      const reports = await readDeliveriesOfPost(request.services, request.console.actor, pathText(request, 'guid'))
      const missing = reports.reduce((sum, report) => sum + report.missing.length, 0)
      return sendConsolePage(request, reply, {
        title: `Deliveries: ${missing === 0 ? 'none missing' : `${formatCount(missing)} missing`}`,
        content:
          reports.length === 0
            ? html`<section class="card"><p>There is no stored message for this post: it is remote, had no recipients, or is older than 14 days.</p></section>`
            : html`${reports.map(reportCard)}`,
      })
    },
  )
}

function reportCard({ verb, writtenAt, sentTo, arrived, missing, arrivedAt, skipped }: DeliveryReport): Markup {
  const arrivals = {
    caption: `Where the ${verb} has arrived, ${ARRIVED_SHOWN} at most`,
    columns: [{ title: 'Pod' }, { title: 'Arrived' }],
    rows: arrivedAt
      .slice(0, ARRIVED_SHOWN)
      .map(({ at, ...hostPort }) => [linkToPod(hostPort), formatTime(new Date(at))]),
  }
  const table = {
    caption: `Where the ${verb} has not arrived, ${MISSING_SHOWN} at most`,
    columns: [
      { title: 'Pod' },
      { title: 'State' },
      { title: 'Attempts', kind: 'number' as const },
      { title: 'Next attempt' },
      { title: 'Last fault', kind: 'wide' as const },
    ],
    rows: missing
      .slice(0, MISSING_SHOWN)
      .map(({ state, person, attempts, nextTryAt, fault, status, ...hostPort }) => [
        linkToPod(hostPort),
        state === 'dead' ? stateBadge('given up', 'bad') : 'waiting',
        formatCount(attempts),
        nextTryAt === null ? '–' : formatTime(new Date(nextTryAt)),
        fault === null ? '–' : `${fault}${status === null ? '' : ` (${status})`}. ${explainFault(fault)}`,
      ]),
  }
  return html`<section class="card"><h2>Message: ${verb}</h2><p>Written ${formatTime(writtenAt)}, for ${formatCount(sentTo)} recipients; ${formatCount(arrived)} have it.</p>
${listCard(table, { empty: sentTo === 0 ? 'It was sent to no pod.' : 'Everything has arrived.' })}
${arrivedAt.length > 0 && dataTable(arrivals)}${skipped.length > 0 && leftOut(skipped)}</section>\n`
}

function leftOut(skipped: DeliveryReport['skipped']): Markup {
  return html`<p>Not stored for these pods:</p><ul class="history list">${skipped.map(
    ({ reason, ...hostPort }) => html`<li>${linkToPod(hostPort)}: ${reason}</li>\n`,
  )}</ul>`
}

function linkToPod(hostPort: { readonly host: string; readonly port: number }): Markup {
  const host = formatAddressHost(hostPort)
  return html`<a href="/admin/pods/${encodeURIComponent(host)}"><bdi>${host}</bdi></a>`
}
