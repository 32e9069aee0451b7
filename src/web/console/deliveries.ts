import type { FastifyPluginAsync } from 'fastify'
import { readDeliveriesOfPost } from '../../domain/outbound/post-deliveries.js'
import type { DeliveryReport } from '../../persistence/outbound/delivery-report.js'
import { formatAddressHost } from '../../protocol/address.js'
import { pathText } from '../forms/form-fields.js'
import { html, type Markup } from '../pages/markup.js'
import { sendConsolePage } from './console-page.js'
import { explainFault } from './explain-fault.js'
import { formatCount, formatTime } from './quantities.js'
import { listCard, stateBadge } from './tables.js'

/** Missing deliveries shown of each message. */
const MISSING_SHOWN = 200

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
            ? html`<section class="card"><p>There is no stored message for this post: it is remote, had no recipients, or all deliveries were completed more than a day ago.</p></section>`
            : html`${reports.map(reportCard)}`,
      })
    },
  )
}

function reportCard({ verb, writtenAt, sentTo, arrived, missing }: DeliveryReport): Markup {
  const table = {
    caption: `What has not arrived, ${MISSING_SHOWN} at most`,
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
        html`<a href="/admin/pods/${encodeURIComponent(formatAddressHost(hostPort))}"><bdi>${formatAddressHost(hostPort)}</bdi></a>`,
        state === 'dead' ? stateBadge('given up', 'bad') : 'waiting',
        formatCount(attempts),
        nextTryAt === null ? '–' : formatTime(new Date(nextTryAt)),
        fault === null ? '–' : `${fault}${status === null ? '' : ` (${status})`}. ${explainFault(fault)}`,
      ]),
  }
  return html`<section class="card"><h2>Message: ${verb}</h2><p>Written ${formatTime(writtenAt)}, for ${formatCount(sentTo)} recipients; ${formatCount(arrived)} have it.</p>
${listCard(table, { empty: 'Everything has arrived.' })}</section>\n`
}
