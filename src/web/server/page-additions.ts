import type { FastifyInstance } from 'fastify'
import type { Services } from '../../services/services.js'
import { escapeHtml } from '../pages/html.js'

const BANNER = '<p role="note"><strong>This copy of the pod is isolated: it sends nothing to other pods.</strong></p>'

/** Adds a banner to every HTML page of an isolated pod. Register it before the compression. */
export function addIsolationBanner(app: FastifyInstance): void {
  changePages(app, (html) => html.replace(/<body[^>]*>/, (body) => `${body}\n${BANNER}`))
}

/** Adds a link to the source code to the foot of every HTML page. Register it before the compression. */
export function addSourceLink(app: FastifyInstance, { locales }: Pick<Services, 'locales'>, sourceUrl: string): void {
  changePages(app, (html) => {
    const [, language = ''] = /<html lang="([^"]*)"/.exec(html) ?? []
    const text = escapeHtml(locales.translator(language)('common.source_code'))
    const link = `<footer class="site"><a href="${escapeHtml(sourceUrl)}">${text}</a></footer>\n`
    return html.replace(/<\/body>(?=\s*<\/html>\s*$)/, () => `${link}</body>`)
  })
}

function changePages(app: FastifyInstance, change: (html: string) => string): void {
  app.addHook('onSend', async (_request, reply, payload) => {
    if (typeof payload !== 'string' || !String(reply.getHeader('content-type')).startsWith('text/html')) return payload
    reply.removeHeader('content-length')
    return change(payload)
  })
}
