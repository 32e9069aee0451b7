import type { FastifyPluginAsync } from 'fastify'
import { readChecks } from '../../../domain/operations/checks.js'
import { html } from '../../pages/markup.js'
import { sendConsolePage } from '../console-page.js'
import { formatTime } from '../quantities.js'
import { listCard, stateBadge } from '../tables.js'

const STATES = {
  ok: stateBadge('fine', 'good'),
  warn: stateBadge('warning', 'warn'),
  fail: stateBadge('failed', 'bad'),
}

/** `/admin/checks`: the last checks of this pod from outside. */
export const checkRoutes: FastifyPluginAsync = async (app) => {
  app.get('/admin/checks', { config: { power: 'administration' }, schema: { hide: true } }, async (request, reply) => {
    const checks = await readChecks(request.services, request.console.actor)
    const bad = checks.filter(({ state }) => state !== 'ok').length
    const rows = checks.map(({ name, state, message }) => [name, STATES[state], html`<bdi>${message}</bdi>`])
    const columns = [{ title: 'Check' }, { title: 'State' }, { title: 'Result', kind: 'wide' }] as const
    return sendConsolePage(request, reply, {
      title: checks.length === 0 ? 'Checks' : `Checks: ${bad === 0 ? 'all fine' : `${bad} to look at`}`,
      content: html`<section class="card"><p>A worker requests the pod at its own address every six hours. The command <code>pod checks</code> does so at once.</p>
${checks[0] !== undefined && html`<p class="soft small">Checked ${formatTime(checks[0].checkedAt)}. <a href="/admin/checks">Refresh</a></p>`}
${listCard({ caption: 'The last checks', columns, rows }, { empty: 'No check was made yet. The first one follows some minutes after the start of a worker.' })}</section>`,
    })
  })
}
