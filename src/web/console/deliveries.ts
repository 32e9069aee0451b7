import type { FastifyPluginAsync } from 'fastify'
import { readDeliveriesOfPost } from '../../domain/outbound/post-deliveries.js'
import type { DeliveryReport } from '../../persistence/outbound/delivery-report.js'
import { formatAddressHost } from '../../protocol/address.js'
import { html, type Markup } from '../pages/markup.js'
import { sendConsolePage } from './console-page.js'
import { explainFault } from './fault-words.js'
import { pathText } from './form-fields.js'
import { formatCount, formatTime } from './quantities.js'
import { listCard, stateBadge } from './tables.js'

/** Of each message. */
const MISSING_SHOWN = 200

/** `/admin/deliveries/:guid`: where the messages about a post have arrived. */
export const deliveryRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app

  app.get(
    '/admin/deliveries/:guid',
    { config: { power: 'administration' }, schema: { hide: true } },
    async (request, reply) => {
      const reports = await readDeliveriesOfPost(pod, request.console.actor, pathText(request, 'guid'))
      const missing = reports.reduce((sum, report) => sum + report.missing.length, 0)
      return sendConsolePage(request, reply, {
        title: `Deliveries: ${missing === 0 ? 'none missing' : `${formatCount(missing)} missing`}`,
        content:
          reports.length === 0
            ? html`<section class="card"><p>No message about this post is stored: it is of another pod, had no recipients, or its deliveries are complete and older than a day.</p></section>`
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
      .map(({ state, person, attempts, nextTryAt, fault, status, ...place }) => [
        html`<a href="/admin/pods/${encodeURIComponent(formatAddressHost(place))}"><bdi>${formatAddressHost(place)}</bdi></a>`,
        state === 'dead' ? stateBadge('given up', 'bad') : 'waiting',
        formatCount(attempts),
        nextTryAt === null ? '–' : formatTime(new Date(nextTryAt)),
        fault === null ? '–' : `${fault}${status === null ? '' : ` (${status})`}. ${explainFault(fault)}`,
      ]),
  }
  return html`<section class="card"><h2>Message: ${verb}</h2><p>Written ${formatTime(writtenAt)}, for ${formatCount(sentTo)} recipients; ${formatCount(arrived)} have it.</p>
${listCard(table, { empty: 'Everything has arrived.' })}</section>\n`
}
