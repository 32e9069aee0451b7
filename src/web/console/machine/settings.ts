import type { FastifyPluginAsync } from 'fastify'
import { listShownSettings, WHEN_NOT_SET } from '../../../config/shown-settings.js'
import { html } from '../../pages/markup.js'
import { sendConsolePage } from '../console-page.js'
import { dataTable } from '../tables.js'

/** `/admin/settings`: the settings of this web process, without secrets. */
export const settingRoutes: FastifyPluginAsync = async (app) => {
  app.get(
    '/admin/settings',
    { config: { power: 'administration' }, schema: { hide: true } },
    async (request, reply) => {
      const settings = Object.entries(listShownSettings(request.services.config))
      return sendConsolePage(request, reply, {
        title: `Settings: ${settings.length}`,
        content: html`<section class="card"><p>The settings of this web process. To change one, edit its environment and restart it.</p>${dataTable(
          {
            caption: 'Settings, without secrets',
            columns: [{ title: 'Setting' }, { title: 'Value', kind: 'wide' }],
            rows: settings.map(([name, value]) => [
              name,
              html`<bdi>${value ?? WHEN_NOT_SET[name] ?? '(not set)'}</bdi>`,
            ]),
          },
        )}</section>`,
      })
    },
  )
}
