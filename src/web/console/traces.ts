import type { FastifyPluginAsync } from 'fastify'
import { readTrace } from '../../domain/operations/traces.js'
import { Refusal } from '../../domain/refusals.js'
import type { TraceStep } from '../../persistence/operations/traces.js'
import { html, type Markup } from '../pages/markup.js'
import { sendConsolePage } from './console-page.js'
import { formatCount, formatTime } from './quantities.js'
import { dataTable } from './tables.js'

const WORDS: Readonly<Record<TraceStep['event'], string>> = {
  rejected: 'rejected',
  waiting: 'waiting',
  queued: 'queued',
  given_up: 'given up',
  stored: 'stored',
  notified: 'notified',
  sent: 'sent',
  delivered: 'delivered',
  delivery_waiting: 'delivery waiting',
  delivery_given_up: 'delivery given up',
  audited: 'in the audit log',
}

/** `/admin/traces/:id`: what a request or a received message has caused. */
export const traceRoutes: FastifyPluginAsync = async (app) => {
  const config = { power: 'administration' } as const

  app.get('/admin/traces/:id', { config, schema: { hide: true } }, async (request, reply) => {
    const { id } = request.params as { readonly id: string } // part of the route
    const steps = await readTrace(request.services, request.console.actor, id).catch((error) => {
      if (error instanceof Refusal) return []
      throw error
    })
    return sendConsolePage(request, reply, {
      title: `Request: ${steps.length === 0 ? 'nothing is stored' : formatCount(steps.length)}`,
      ...(steps.length === 0 && { status: 404 }),
      content: html`<section class="card"><p>Request <bdi>${id}</bdi></p>${
        steps.length === 0 ? html`<p>No row belongs to this request.</p>` : stepTable(steps)
      }</section>`,
    })
  })
}

/** The link to the page of a trace. */
export function traceLink(trace: string | null): Markup | string {
  return trace === null ? '–' : html`<a href="/admin/traces/${trace}">${trace}</a>`
}

function stepTable(steps: readonly TraceStep[]): Markup {
  return dataTable({
    caption: 'What the request has caused',
    columns: [
      { title: 'Step' },
      { title: 'Time' },
      { title: 'Type' },
      { title: 'Guid', kind: 'wide' },
      { title: 'Number', kind: 'number' },
      { title: 'Pod' },
      { title: 'Detail' },
    ],
    rows: steps.map(({ at, event, type, guid, count: number, pod, detail }) => [
      WORDS[event],
      formatTime(at),
      type ?? '–',
      html`<bdi>${guid ?? '–'}</bdi>`,
      number === null ? '–' : formatCount(number),
      pod ?? '–',
      html`<bdi>${detail ?? '–'}</bdi>`,
    ]),
  })
}
